import { questionClass, settlesAnOutcome } from '../../../src/core/codes.ts';
import { member } from '../../../src/core/json.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { Blocked } from '../../../src/core/plan.ts';
import type { FaultRule } from '../../../src/emulator/faults.ts';
import type { Readings } from '../../../src/emulator/readings.ts';
import type { Disturbance, SpecModel, Story } from '../../../src/simulation/story.ts';
import type { StoryObserver } from '../story-observer.ts';

/** The facts that the questions of a story are checked against. */
export interface Judge {
  readonly story: Story;
  readonly observer: Pick<StoryObserver, 'asked' | 'count'>;
  /** Time that no machine's clock can bend, in ms. */
  readonly elapsed: () => number;
  readonly fail: (rule: string, message: string) => void;
  /** Whether a resource exists that was created under the key, or under the one that `moved` names. */
  readonly exists: (key: ResourceKey) => boolean;
}

/** The age of an idempotency key at which no request is sent under it any more. */
const keyLifeMs = 23 * 3_600_000;

/**
 * The rules about questions (I16). A code must be in the closed list, or come from the API. If a machine can know every
 * outcome of the story, no question may ask for an outcome.
 */
export class QuestionRules {
  readonly #codes = new Set<string>();
  readonly #refusals = new Set<string>();
  readonly #judge: Judge;
  readonly #settlesItself: boolean;

  constructor(judge: Judge) {
    this.#judge = judge;
    this.#settlesItself = settlesItself(judge.story);
    if (this.#settlesItself) judge.observer.count('stories in which a machine can know every outcome');
  }

  /** The API has refused a request with that code. */
  refused(code: string): void {
    this.#refusals.add(code);
  }

  asked(blocked: Blocked): void {
    const { code, key, reason } = blocked;
    this.#judge.observer.asked(code, takeApart(key).kind, !this.#codes.has(code));
    this.#codes.add(code);
    const wrong = this.#wrongWith(blocked);
    if (wrong !== undefined) this.#judge.fail('I16', `${key} asks by ${code}, ${wrong}: ${reason}`);
  }

  #wrongWith({ code, key, verb }: Blocked): string | undefined {
    const { story, elapsed, exists } = this.#judge;
    const asks = questionClass(code);
    if (asks === undefined)
      return this.#refusals.has(code) ? undefined : 'which is neither in the closed list nor a refusal';
    if (asks === 'expired') {
      const isOld = elapsed() >= keyLifeMs || story.incidents.some(({ what }) => what.do === 'set_clock');
      return isOld ? undefined : 'and no key is 23 hours old';
    }
    // If the entry has a resource as well, the operator decides between the two.
    const mayKnow = verb === 'create' && isUndisturbed(story) && elapsed() < keyLifeMs;
    if (code === 'moved_from_unknown' && mayKnow && exists(key)) return 'although the earlier key answers';
    const mayAsk =
      !this.#settlesItself || elapsed() >= keyLifeMs || (asks !== 'task' && !settlesAnOutcome(code));
    return mayAsk ? undefined : 'although a machine can know';
  }
}

/**
 * The operator alone disturbs the story and ignores nothing, and the keys have one scope: the API answers each request
 * as documented. An old copy of the state may have asked a key before a newer one has used the next attempt.
 */
function isUndisturbed({ faults, incidents, readings, profile, cut, actions = [] }: Story): boolean {
  const others = [...faults, ...incidents, ...Object.keys(readings)];
  const scopes = actions.filter((each) =>
    ['start_other_file', 'give_scope', 'put_state_back', 'ignore'].includes(
      String(member(member(each, 'what'), 'do')),
    ),
  );
  return others.length + scopes.length === 0 && profile === undefined && cut === undefined;
}

/**
 * Whether a machine can learn every outcome of the story. Its only faults are crashes, lost, truncated and malformed
 * answers, 409, 429, failed reads, and single server errors on kinds whose lists identify the created resource.
 */
function settlesItself({ specs, faults, incidents, actions, readings, cut, profile }: Story): boolean {
  const strikes = faults.filter(isServerError).map(({ when }) => when.path);
  return (
    cut === undefined &&
    actions === undefined &&
    profile === undefined &&
    !(specs.length > 1 && specs.some(keepsAddress)) &&
    incidents.every(({ what }) => isHarmless(what)) &&
    faults.every(isSettled) &&
    new Set(strikes).size === strikes.length &&
    Object.entries(readings).every(([name, value]) => unlike[name as keyof Readings]?.(value) !== true)
  );
}

/** The address stays after its server has left the spec. If the entry returns, the operator decides about the address. */
function keepsAddress({ servers }: SpecModel): boolean {
  return Object.values(servers).some(({ keep_ip }) => keep_ip === true);
}

/** Readings under which the API hides a resource or the end of its creation, or keeps no refusal under its key. */
const unlike: { readonly [Name in keyof Readings]?: (value: unknown) => boolean } = {
  pageSize: (value) => value !== null,
  bodyCheck: (value) => value === 'beforeKeyUnstored',
  omitTaskField: (value) => value === true,
  reuseIds: (value) => value === true,
};

function isHarmless(what: Disturbance): boolean {
  const ends: readonly Disturbance['do'][] = ['crash', 'stop', 'halt', 'edit'];
  return ends.includes(what.do) || (what.do === 'outage' && isAnswered(what.action.do));
}

/** The writes whose resource the documented lists identify. An address shows no request. @assumption A72 */
export const identified: ReadonlySet<string | undefined> = new Set([
  ...['create_network', 'delete_network', 'release_ip', 'add_iso', 'delete_iso', 'delete_server'],
  ...['add_network_interface', 'replace_firewall', 'take_backup'],
]);

function isSettled(rule: FaultRule): boolean {
  const { when, then } = rule;
  if (when.method === 'GET') return isAnswered(then.do) || then.do === 'answer';
  if ('stored' in then && then.stored === false) return false;
  if (then.do !== 'answer') return isAnswered(then.do);
  return then.status === 409 || then.status === 429 || (isServerError(rule) && identified.has(when.path));
}

function isServerError({ when, then }: FaultRule): boolean {
  const single = when.nth !== undefined && (when.times ?? 1) === 1;
  return then.do === 'answer' && then.status >= 500 && when.method !== 'GET' && single;
}

/** The answer is lost, late, or says nothing. */
function isAnswered(action: FaultRule['then']['do']): boolean {
  return ['reset', 'refuse', 'truncate', 'malformed', 'html', 'redirect', 'slow', 'stored_429'].includes(
    action,
  );
}
