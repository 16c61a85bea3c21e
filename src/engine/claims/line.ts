import { type Claim, type HeldClaim, heldKeysOf, isHeldClaim, objectName } from '../../core/claims.ts';
import type { Desired, DesiredResource } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { partsOf } from '../../core/intent.ts';
import { isInside, type ResourceKey, retiredFrom, retiringKey } from '../../core/keys.ts';
import type { Diff, Subject, World } from '../../core/kind.ts';
import { factsOf } from '../../core/kind-facts.ts';
import { command } from '../../core/remedy.ts';
import { restoring } from '../../core/restoring.ts';
import type { Binding, Intent } from '../../core/state.ts';
import { createWorld } from '../../core/world.ts';
import { draftOne } from '../../plan/draft.ts';
import { emptied } from '../../plan/waits.ts';
import { boundIn, type Move, type Moves, observeAgain, type Run } from '../run.ts';
import { waitingFor, withRenames } from './moves.ts';
import { released } from './release.ts';

type Line = ReadonlySet<ResourceKey>;

interface Known {
  readonly desired: Pick<Desired, 'resources' | 'scope'>;
  readonly bindings: ReadonlyMap<ResourceKey, Binding>;
  readonly claims: Iterable<Claim>;
  /** The open writes. */
  readonly intents?: Iterable<Intent>;
}

/**
 * The lines of the entries of a spec. The line of an entry has every key under which its resource may have been bought:
 * its own key first, the key that its `moved` names, and each key that ever had an object in common with a key of the
 * line. Another entry of the spec, and an object that is bound to it, belong to the line of that entry alone.
 *
 * A purchase needs proof that nothing of its line exists.
 */
export class Lines {
  readonly #entries: readonly DesiredResource[];
  readonly #bindings: Known['bindings'];
  readonly #declared: Line;
  readonly #held: readonly HeldClaim[];
  #taken: ReadonlyMap<ResourceKey, HeldClaim> | undefined;
  /** The keys of each object, by each of these keys. */
  readonly #together: ReadonlyMap<ResourceKey, readonly (readonly ResourceKey[])[]>;

  constructor({ desired, bindings, claims, intents = [] }: Known) {
    this.#entries = desired.resources;
    this.#bindings = bindings;
    this.#declared = new Set(desired.resources.map(({ key }) => key));
    // The keys of another scope say nothing about the entries of this spec.
    this.#held = [...claims]
      .filter(isHeldClaim)
      .filter(({ holder }) => holder.is === 'released' || holder.scope === desired.scope);
    const objects = [
      ...[...bindings.values()].map(({ key, formerKeys = [] }) => [key, ...formerKeys]),
      ...this.#held.map(heldKeysOf),
      ...[...intents].map(({ key, entry }) => [key, ...(entry?.moved ? [entry.moved] : [])]),
    ];
    const pairs = objects.flatMap((keys) => keys.map((key) => ({ key, keys })));
    this.#together = new Map(
      [...Map.groupBy(pairs, ({ key }) => key)].map(([key, each]) => [key, each.map(({ keys }) => keys)]),
    );
  }

  of({ key, moved }: Pick<DesiredResource, 'key' | 'moved'>): Line {
    const line = new Set([key, ...(moved === undefined ? [] : [moved])]);
    // A set also visits the keys that are added during the visit.
    for (const each of line) {
      if (this.#isAnother(each, key)) continue;
      for (const keys of this.#together.get(each) ?? [])
        if (!this.#isAnother(keys[0] ?? key, key))
          for (const one of keys) if (!this.#isAnother(one, key)) line.add(one);
    }
    return line;
  }

  /** An entry names the object by its id, and binds it. */
  #isNamed(claim: HeldClaim): boolean {
    return this.#entries.some(({ kind, id, held }) => !held && kind === claim.kind && id === claim.id);
  }

  #isAnother(each: ResourceKey, own: ResourceKey): boolean {
    return each !== own && this.#declared.has(each);
  }

  /**
   * The objects that entries without a binding take back, or observe if they are not managed: each object was released from a key of the line, or a key of
   * the line was answered with it. An answer goes before a release, the own key before an earlier key, and the latest
   * object before older ones.
   */
  returning(): ReadonlyMap<ResourceKey, HeldClaim> {
    this.#taken ??= this.#takenBack();
    return this.#taken;
  }

  #takenBack(): ReadonlyMap<ResourceKey, HeldClaim> {
    const wanting = this.#entries.filter(
      ({ key, id, held, parent }) =>
        (id === undefined || held !== undefined) && parent === undefined && !this.#bindings.has(key),
    );
    const fitting = wanting.flatMap((entry) => {
      const line = this.of(entry);
      return this.#held
        .filter((claim) => claim.kind === entry.kind && line.has(heldKeysOf(claim)[0]))
        .filter((claim) => claim.holder.is !== 'found' || !this.#isNamed(claim))
        .map((claim) => ({ key: entry.key, claim, rank: rankOf(claim, entry.key) }));
    });
    const taken = new Map<ResourceKey, HeldClaim>();
    const given = new Set<HeldClaim>();
    for (const { key, claim } of fitting.sort((one, other) => (one.rank < other.rank ? -1 : 1))) {
      if (taken.has(key) || given.has(claim)) continue;
      taken.set(key, claim);
      given.add(claim);
    }
    return taken;
  }
}

/** Sorts as text: the claim that an entry takes first comes first. */
function rankOf(claim: HeldClaim, key: ResourceKey): string {
  const age = Number.MAX_SAFE_INTEGER - claim.at;
  return [claim.holder.is, heldKeysOf(claim)[0] === key ? 0 : 1, age, objectName(claim), key].join(' ');
}

/** The spec, in which each entry without a binding takes back the object of its line. The plan shows the adoption. */
export function withHeldObjects(
  desired: Desired,
  claims: ReadonlyMap<string, Claim>,
  bindings: Known['bindings'],
): Desired {
  const objects = new Lines({ desired, bindings, claims: claims.values() }).returning();
  if (objects.size === 0) return desired;
  const resources = desired.resources.map((each): DesiredResource => {
    const claim = objects.get(each.key);
    if (claim === undefined) return each;
    const { id, identity, holder } = claim;
    const applied = holder.is === 'released' && holder.applied;
    return { ...each, id, held: { by: holder.is, identity, ...(applied && { applied }) } };
  });
  return { ...desired, resources };
}

/**
 * Whether the spec has to be combined with the state again: a creation of this run asked an earlier key of its line and
 * found its resource, or an entry names the id of a resource that was bound since.
 */
export function isOutdated(run: Run): boolean {
  const { desired, bindings, moves } = run;
  if (moves.waiting.length > 0) return false;
  const returningId = (key: ResourceKey) => {
    const { held, id } = run.world.subjects.get(key)?.desired ?? {};
    return held && id;
  };
  const isFound = [...run.lines().returning()].some(
    ([key, { holder, id }]) => holder.is === 'found' && returningId(key) !== id,
  );
  const renamed = withRenames(desired, bindings, run.intents).resources;
  return isFound || renamed.some(({ moved }, at) => moved !== desired.resources[at]?.moved);
}

/**
 * Gives a key back to its retiring server if the spec asks for that server again, such as after a reverted edit. No
 * purchase is needed, and the server that had the key retires in its place. A plan shows this, and an apply records it
 * before its first write. Returns whether a key waits for open writes.
 */
export async function takeBack(run: Run): Promise<boolean> {
  // As long as a rename waits, nothing else is planned.
  if (run.moves.waiting.length > 0) return false;
  const next = returnsOf(run, await beingDeleted(run));
  if (next.moves.length + next.waiting.length === 0) return false;
  run.moves.renew(next);
  if (next.moves.length > 0) await run.view.refresh(run.mode.repeating === undefined ? undefined : 0);
  return next.waiting.length > 0;
}

/**
 * The operator gives a key back to its retiring server. Returns the id of the server that then retires.
 *
 * @throws ConfigError if the spec asks for the present server, because the next apply would give the key back to it
 */
export async function giveBack(run: Run, key: ResourceKey, id: string): Promise<string | undefined> {
  const move = { from: retiringKey(key, id), to: key };
  const [before, retiring] = [key, move.from].map((each) => run.bindings.get(each));
  const subject = run.world.subjects.get(key);
  if (subject !== undefined && retiring !== undefined && isSatisfied(run, subject)) {
    const { verdict } = diffWith(run, subject, retiring);
    const kept = verdict.verdict === 'replace' ? [restoring(verdict.changes, key, run.world.subjects)] : [];
    throw new ConfigError(
      `${key} is bound to ${before?.id}, which has the values of the spec. Server ${id} retires, and has other values.`,
      false,
      kept.map((each) => ({
        ...each,
        when: `to keep server ${id}`,
        next: [...(each.next ?? []), command('apply')],
      })),
    );
  }
  const [open] = openIn(run, move);
  if (open !== undefined)
    throw new ConfigError(`${open.key} has an open write (${open.verb}). Let it end first.`, false, [
      command('apply'),
    ]);
  run.moves.renew({ moves: exchange(run, move), waiting: [] });
  await run.moves.keep();
  return before?.id;
}

/** The ids of servers whose deletion the API has accepted, although the operator gave it up. */
async function beingDeleted({ deps, bindings }: Run): Promise<ReadonlySet<string>> {
  if ([...bindings.keys()].every((key) => retiredFrom(key) === undefined)) return new Set();
  const given = await deps.store.intents({ outcome: 'abandoned', limit: 200 });
  const accepted = given.filter(
    ({ kind, verb, ...intent }) =>
      factsOf(kind).container && verb === 'delete' && partsOf(intent).answer !== undefined,
  );
  return new Set(accepted.map(({ request }) => String(request.path.id)));
}

function returnsOf(run: Run, gone: ReadonlySet<string>): Moves {
  const servers = [...run.bindings.values()].filter(
    ({ kind, id }) => factsOf(kind).container && !gone.has(id),
  );
  const retiring = Map.groupBy(servers, ({ key }) => retiredFrom(key));
  const all = run.world.serverSubjects().flatMap((subject) => {
    const back = retiringAsDeclared(run, subject, retiring.get(subject.key));
    return back === undefined ? [] : [{ from: back.key, to: subject.key }];
  });
  const held = all.flatMap((move) => waitingFor(openIn(run, move), move));
  return held.length > 0
    ? { moves: [], waiting: held }
    : { moves: all.flatMap((each) => exchange(run, each)), waiting: held };
}

/**
 * The oldest retiring server of the key that needs no replacement, if the present one needs one: the data of the entry
 * are on its disks.
 */
function retiringAsDeclared(run: Run, subject: Subject, retiring?: readonly Binding[]): Binding | undefined {
  // The differences of a server are found last, because few keys have a retiring server.
  if (retiring === undefined || subject.desired?.managed !== true || isSatisfied(run, subject))
    return undefined;
  return retiring
    .toSorted((one, other) => one.boundAt - other.boundAt)
    .find((each) => run.world.isThere(each.key) && isAsDeclared(diffWith(run, subject, each)));
}

function isSatisfied({ world, deps }: Run, subject: Subject): boolean {
  return subject.binding !== undefined && isAsDeclared(draftOne(deps.kinds, world, subject).diff);
}

function isAsDeclared({ verdict: { verdict } }: Diff): boolean {
  return verdict === 'unchanged' || verdict === 'update';
}

/** The diff of the key if its retiring server had the key. */
function diffWith({ world, deps }: Run, subject: Subject, retiring: Binding): Diff {
  const after = withServerOf(world, subject, retiring);
  return draftOne(deps.kinds, after, after.subjects.get(subject.key) ?? subject).diff;
}

/** The world in which the key has its retiring server. */
function withServerOf(world: World, subject: Subject, retiring: Binding): World {
  const { key } = subject;
  const [subjects, observed] = [new Map(world.subjects), new Map(world.observed)];
  subjects.delete(retiring.key);
  subjects.set(key, { ...subject, binding: { ...retiring, key } });
  const seen = observed.get(retiring.key);
  observed.delete(retiring.key);
  if (seen !== undefined) observed.set(key, seen);
  return createWorld({ ...world, subjects, observed });
}

/** The writes whose effect decides which of the two servers exist. A refused write had no effect. */
function openIn({ intents }: Run, { from, to }: Move) {
  return [...intents.values()].filter((intent) => {
    const isPart = [from, to].some((key) => intent.key === key || isInside(intent.key, key));
    const isRefused = intent.phase === 'blocked' && intent.blocked.until === 'file';
    return isPart && !isRefused;
  });
}

/** The server that has the key retires, and the retiring server takes the key back, both with all resources inside. */
function exchange(run: Run, { from, to }: Move): Move[] {
  const present = run.bindings.get(to)?.id ?? boundIn(run, to)[0]?.parentId;
  const keys = [...run.bindings.keys()];
  const pairs = [
    ...(present === undefined ? [] : [{ from: to, to: retiringKey(to, present) }]),
    { from, to },
  ];
  return pairs.flatMap((pair) =>
    keys.flatMap((key) =>
      key === pair.from || isInside(key, pair.from)
        ? [{ from: key, to: `${pair.to}${key.slice(pair.from.length)}` as ResourceKey }]
        : [],
    ),
  );
}

/**
 * Ends the bindings for which renames wait, and whose resources are gone. A second read confirms that.
 *
 * @param isDry for a plan: neither a second read, nor a change of the state
 */
export async function clearNewKeys(run: Run, isDry = false): Promise<void> {
  const { kinds } = run.deps;
  const gone = () => run.moves.waiting.flatMap((each) => emptied(each, { world: run.world, kinds }));
  const seen = gone();
  if (seen.length === 0) return;
  if (isDry) run.moves.free(seen.flatMap(({ key, reason }) => released(run, key, reason)));
  else {
    const keys = seen.map(({ key }) => key);
    const confirmed = (await observeAgain(run, keys)) === undefined ? [] : gone();
    if (confirmed.length === 0) return;
    await run.state.change(confirmed.flatMap(({ key, reason }) => released(run, key, reason)));
    run.moves.renew();
  }
  run.cache.forgetLists();
  await run.view.refresh();
}
