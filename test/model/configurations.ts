/** The environment variables of the compiled model; `key-protocol.pml` explains each of them. */
export type Settings = Readonly<Record<string, number>>;

export interface Configuration {
  readonly name: string;
  readonly settings: Settings;
}

const allReadings = [0, 1, 2, 3];

function inReadings(name: string, readings: readonly number[], settings: Settings): readonly Configuration[] {
  return readings.map((reading) => ({
    name: `${name}, reading ${reading}`,
    settings: { ...settings, reading },
  }));
}

/** No second purchase, nothing sent without a record, every run ends in done or in a question of the closed list. */
export const sound: readonly Configuration[] = [
  ...inReadings('one controller', allReadings, { edited: 1, keys: 3, faults: 4 }),
  ...inReadings('one controller, a reused key answered by 409', allReadings, {
    edited: 1,
    reuse409: 1,
    keys: 3,
    faults: 4,
  }),
  ...inReadings('two controllers', allReadings, { controllers: 2, edited: 1, faults: 2 }),
  ...inReadings('two calibrated controllers', [2, 3], { controllers: 2, edited: 1, calibrated: 1, keys: 3 }),
  ...inReadings('two controllers, the next key is probed after a key conflict', [0, 1, 2], {
    controllers: 2,
    edited: 1,
    walksOn: 1,
    keys: 3,
    faults: 2,
  }),
  ...inReadings('a state put back, the next key is probed after a key conflict', allReadings, {
    putBack: 1,
    edited: 1,
    walksOn: 1,
    keys: 3,
    faults: 2,
  }),
  ...inReadings('two controllers, reads show the resource', allReadings, {
    controllers: 2,
    listed: 1,
    edited: 1,
    faults: 1,
  }),
  ...inReadings('two new states that ask their keys first', allReadings, {
    controllers: 2,
    asksFirst: 1,
    keys: 3,
    faults: 2,
  }),
  ...inReadings('a state put back', allReadings, { putBack: 1, edited: 1 }),
  ...inReadings('a state put back, reads show the resource', allReadings, { putBack: 1, listed: 1 }),
  ...inReadings('a state put back beside a second one', [0, 1], { controllers: 2, putBack: 1, faults: 2 }),
  ...inReadings('a state put back beside a second one, calibrated', [2, 3], {
    controllers: 2,
    putBack: 1,
    calibrated: 1,
    faults: 2,
  }),
  ...inReadings('keys forgotten after 24 h', allReadings, { ages: 1, edited: 1 }),
  ...inReadings('keys forgotten after 24 h, reads show the resource', allReadings, {
    ages: 1,
    edited: 1,
    listed: 1,
  }),
  ...inReadings('5xx with effect, reads show the resource', [0, 1, 3], {
    effect5xx: 1,
    listed: 1,
    keys: 3,
    faults: 4,
  }),
  ...inReadings('5xx with effect, reads show the resource, no late requests', [2], {
    effect5xx: 1,
    listed: 1,
    timely: 1,
    faults: 4,
  }),
  ...inReadings('5xx with effect, unconfirmed_servers: ask', allReadings, {
    effect5xx: 1,
    askUnseen: 1,
    keys: 3,
    faults: 4,
  }),
  ...inReadings('keys not reserved, no late requests', allReadings, { unreserved: 1, timely: 1, faults: 4 }),
];

/** The same graph has no cycle: no run goes on for ever. */
export const ending: readonly Configuration[] = [
  ...inReadings('one controller ends', allReadings, { edited: 1 }),
  ...inReadings('one controller ends, a reused key answered by 409', allReadings, { edited: 1, reuse409: 1 }),
  ...inReadings('two controllers end', allReadings, { controllers: 2, edited: 1, faults: 1 }),
  ...inReadings('two controllers end, a reused key answered by 409', allReadings, {
    controllers: 2,
    edited: 1,
    reuse409: 1,
    faults: 1,
  }),
  ...inReadings('two new states that ask their keys first end', allReadings, {
    controllers: 2,
    asksFirst: 1,
    faults: 1,
  }),
];

/** A second purchase that no rule of the controllers can prevent; spin has to find it. */
export const limits: readonly Configuration[] = [
  { name: 'lost 5xx with effect on a server that no read shows', settings: { effect5xx: 1 } },
  {
    name: '5xx with effect after the read, on an API that does not store refusals of a body',
    settings: { effect5xx: 1, listed: 1, reading: 2 },
  },
  { name: '5xx with effect while two states create', settings: { effect5xx: 1, listed: 1, controllers: 2 } },
  { name: 'a state put back over 24 h, on a server that no read shows', settings: { putBack: 1, ages: 1 } },
  {
    name: 'two states in the same minute, 24 h after the first attempt was closed',
    settings: { ages: 1, listed: 1, controllers: 2, faults: 1 },
  },
  { name: 'keys not reserved, a late request', settings: { unreserved: 1 } },
  { name: 'keys not reserved, two states', settings: { unreserved: 1, timely: 1, controllers: 2 } },
  { name: 'a refusal that replaces the stored answer', settings: { overwrites: 1, reading: 1 } },
  { name: 'a request that travels until its fence is forgotten', settings: { ages: 1, slow24h: 1 } },
];

/** A rule that is broken, and a configuration that is sound as long as it is kept. */
export interface Mistake extends Configuration {
  readonly mistake: string;
  /** The rule that spin finds broken. */
  readonly breaks: 'one purchase' | 'a record before each send' | 'no needless question' | 'every run ends';
}

export const mistakes: readonly Mistake[] = [
  planted('trust the first refusal of the probe', 'trustFreshRefusal', { reading: 1, faults: 2 }),
  planted('skip the wait', 'skipWait', { timely: 1, unreserved: 1, faults: 2 }),
  planted('take a new key before the question is closed', 'newKeyWhileOpen', { faults: 2 }),
  planted('send the probe without a record', 'unrecordedProbe', { faults: 2 }, 'a record before each send'),
  planted('resend after a 5xx without asking', 'resendAfter5xx', { effect5xx: 1, listed: 1, faults: 2 }),
  planted('take a new key after a 5xx and leave the old one open', 'newKeyAfter5xx', {
    controllers: 2,
    faults: 2,
  }),
  planted('take a new key after a 401, 402, 403 or 429 that was not replayed', 'newKeyAfterRefusal', {
    controllers: 2,
    faults: 2,
  }),
  planted('take a 401 or 404 on the resend as the answer to the first send', 'refusalAnswersEarlierSend', {
    reading: 1,
    faults: 2,
  }),
  planted('take a new key after a replayed refusal without looking', 'noLookAfterFence', {
    effect5xx: 1,
    listed: 1,
    faults: 2,
  }),
  planted('let the second controller take a new key where its first is used', 'otherRequestIsFence', {
    controllers: 2,
    edited: 1,
    faults: 1,
  }),
  planted('put the body into the key', 'bodyInKey', { edited: 1, faults: 2 }),
  planted(
    'make the probe from the body',
    'probeFromBody',
    { controllers: 2, edited: 1, faults: 1 },
    'no needless question',
  ),
  planted('resend the edited body', 'resendEditedBody', { edited: 1, faults: 2 }, 'no needless question'),
  planted('ignore the age of the key', 'ignoreAge', { ages: 1, faults: 2 }),
  planted('believe in a fence on a key older than 23 h', 'fenceWithoutAge', { ages: 1, faults: 2 }),
  planted(
    'wait for ever where the probe is answered by 409',
    'endlessConflict',
    { controllers: 2, edited: 1, reuse409: 1, faults: 0 },
    'every run ends',
  ),
];

function planted(
  name: string,
  mistake: string,
  settings: Settings,
  breaks: Mistake['breaks'] = 'one purchase',
): Mistake {
  return { name, mistake, settings, breaks };
}
