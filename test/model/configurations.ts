/** The environment variables of the compiled model; `key-protocol.pml` explains each of them. */
export type Settings = Readonly<Record<string, number>>;

export interface Configuration {
  readonly name: string;
  readonly settings: Settings;
}

export type Property = 'safety' | 'no cycles';

/** A verification, and the error that spin has to find; none where every order of events is sound. */
export interface Job extends Configuration {
  readonly group: string;
  readonly property: Property;
  readonly finds?: RegExp;
}

/** No second purchase, nothing sent without a record, every run ends in done or in a question of the closed list. */
const sound = inReadings(`
  one controller | edited=1 keys=3 faults=4
  one controller, a reused key gets 409 | edited=1 reuse409=1 keys=3 faults=4
  two controllers | controllers=2 edited=1 faults=2
  two calibrated controllers | controllers=2 edited=1 calibrated=1 keys=3 | 2 3
  two controllers, the next key is probed after a key conflict | controllers=2 edited=1 walksOn=1 keys=3 faults=2 | 0 1 2
  a restored state, the next key is probed after a key conflict | putBack=1 edited=1 walksOn=1 keys=3 faults=2
  two controllers, reads show the resource | controllers=2 listed=1 edited=1 faults=1
  two new states that probe their keys first | controllers=2 asksFirst=1 keys=3 faults=2
  a restored state | putBack=1 edited=1
  a restored state, reads show the resource | putBack=1 listed=1
  a restored state beside a second one | controllers=2 putBack=1 faults=2 | 0 1
  a restored state beside a second one, calibrated | controllers=2 putBack=1 calibrated=1 faults=2 | 2 3
  keys dropped after 24 h | ages=1 edited=1
  keys dropped after 24 h, reads show the resource | ages=1 edited=1 listed=1
  5xx with effect, reads show the resource | effect5xx=1 listed=1 keys=3 faults=4 | 0 1 3
  5xx with effect, reads show the resource, no late requests | effect5xx=1 listed=1 timely=1 faults=4 | 2
  5xx with effect, unconfirmed_servers: ask | effect5xx=1 askUnseen=1 keys=3 faults=4
  keys not reserved, no late requests | unreserved=1 timely=1 faults=4
`);

/** The same graph has no cycle: no run goes on for ever. */
const ending = inReadings(`
  one controller ends | edited=1
  one controller ends, a reused key gets 409 | edited=1 reuse409=1
  two controllers end | controllers=2 edited=1 faults=1
  two controllers end, a reused key gets 409 | controllers=2 edited=1 reuse409=1 faults=1
  two new states that probe their keys first end | controllers=2 asksFirst=1 faults=1
`);

/** A second purchase that no rule of the controllers can prevent; spin has to find it. */
const limits: readonly Configuration[] = rowsOf(`
  lost 5xx with effect on a server that no read shows | effect5xx=1
  5xx with effect after the read, on an API that does not store refusals of a body | effect5xx=1 listed=1 reading=2
  5xx with effect while two states create | effect5xx=1 listed=1 controllers=2
  a restored state over 24 h, on a server that no read shows | putBack=1 ages=1
  two states in the same minute, 24 h after the first attempt was closed | ages=1 listed=1 controllers=2 faults=1
  keys not reserved, a late request | unreserved=1
  keys not reserved, two states | unreserved=1 timely=1 controllers=2
  a refusal that replaces the stored answer | overwrites=1 reading=1
  a request that arrives after its fence has expired | ages=1 slow24h=1
`);

/** A rule that is broken, and a configuration that is sound as long as it is kept. The last column: the rule that spin finds broken. */
const mistakes = rowsOf(`
  trust a refusal of the probe that was not replayed | reading=1 faults=2 | trustFreshRefusal
  skip the wait | timely=1 unreserved=1 faults=2 | skipWait
  take a new key before the outcome is confirmed | faults=2 | newKeyWhileOpen
  send the probe without a record | faults=2 | unrecordedProbe | a record before each send
  resend after a 5xx without a probe | effect5xx=1 listed=1 faults=2 | resendAfter5xx
  take a new key after a 5xx and leave the old one open | controllers=2 faults=2 | newKeyAfter5xx
  take a new key after a 401, 402, 403 or 429 that was not replayed | controllers=2 faults=2 | newKeyAfterRefusal
  take a 401 or 404 on the resend as the answer to the first send | reading=1 faults=2 | refusalAnswersEarlierSend
  take a new key after a replayed refusal without a read | effect5xx=1 listed=1 faults=2 | noLookAfterFence
  take a new key in the second controller if its first key is used | controllers=2 edited=1 faults=1 | otherRequestIsFence
  put the body into the key | edited=1 faults=2 | bodyInKey
  make the probe from the body | controllers=2 edited=1 faults=1 | probeFromBody | no needless question
  resend the edited body | edited=1 faults=2 | resendEditedBody | no needless question
  ignore the age of the key | ages=1 faults=2 | ignoreAge
  trust a fence on a key older than 23 h | ages=1 faults=2 | fenceWithoutAge
  wait forever if the probe gets 409 | controllers=2 edited=1 reuse409=1 faults=0 | endlessConflict | every run ends
`);

/** What spin prints about a broken rule. */
const broken = {
  'one purchase': /created<=1/,
  'a record before each send': /recorded/,
  'no needless question': /stored/,
  'every run ends': /non-progress cycle/,
};

export const jobs: readonly Job[] = [
  ...sound.map((each): Job => ({ ...each, group: 'sound', property: 'safety' })),
  ...ending.map((each): Job => ({ ...each, group: 'ending', property: 'no cycles' })),
  ...limits.map((each): Job => ({ ...each, group: 'limit', property: 'safety', finds: /created<=1/ })),
  ...mistakes.flatMap(({ name, settings, more: [mistake = '', breaks = 'one purchase'] }): Job[] => {
    const property = breaks === 'every run ends' ? 'no cycles' : 'safety';
    const finds = broken[breaks as keyof typeof broken];
    return [
      { name, settings: { ...settings, [mistake]: 1 }, group: 'mistake', property, finds },
      { name: `not: ${name}`, settings, group: 'kept', property },
    ];
  }),
];

/** The configurations of a table, whose third column names the readings: all four by default. */
function inReadings(table: string): readonly Configuration[] {
  return rowsOf(table).flatMap(({ name, settings, more: [readings = '0 1 2 3'] }) =>
    readings.split(' ').map((reading) => ({
      name: `${name}, reading ${reading}`,
      settings: { ...settings, reading: Number(reading) },
    })),
  );
}

/** A name, the settings as one writes variables before a command, and further columns. */
function rowsOf(table: string) {
  const lines = table.trim().split('\n');
  return lines.map((line) => {
    const [name = '', settings = '', ...more] = line.split('|').map((each) => each.trim());
    const pairs = settings.split(' ').map((each) => each.split('='));
    return { name, settings: Object.fromEntries(pairs.map(([key, value]) => [key, Number(value)])), more };
  });
}
