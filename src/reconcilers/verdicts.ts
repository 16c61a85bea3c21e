/** The verdicts that kinds share: of a diff, and of the reads after a write. */

import type { BlockCode } from '../core/codes.ts';
import { type DesiredResource, idInSpec } from '../core/desired.ts';
import type { Evidence } from '../core/evidence.ts';
import { given, member } from '../core/json.ts';
import { nounOf, type ResourceKey } from '../core/keys.ts';
import type { Diff, Subject, World } from '../core/kind.ts';
import type { Change, Verb, Warning } from '../core/plan.ts';
import type { ReadPort, WriteName } from '../core/ports.ts';
import { command, edit, idInFile, outside, type Remedy, wayToForget } from '../core/remedy.ts';
import type { Ip, ServerId } from '../core/resources.ts';
import { restoring } from '../core/restoring.ts';
import type { Binding } from '../core/state.ts';
import { flowYaml } from '../core/text.ts';

/** The live side of one top-level subject. */
export interface Existence {
  /** The live resource's id: by binding, by `id:`, or by name where it is not managed. */
  readonly id: string | undefined;
  /** The fields that distinguish the live resource from others. */
  readonly identity: Readonly<Record<string, string>>;
}

/**
 * The verdicts that all top-level kinds share: entries with `id:` or `managed: false`,
 * resources that are gone, and live resources that are not the bound ones.
 * `undefined`: none of these cases applies, so the kind compares the fields.
 *
 * After each of these verdicts that blocks, the live resource of the key is unconfirmed.
 *
 * @param needed the fields that a creation needs
 */
export function diffExistence(
  subject: Subject,
  noun: string,
  live: Existence | undefined,
  needed: readonly string[],
): Diff | undefined {
  const diff = judgeExistence({
    subject,
    noun,
    live,
    lacking: fieldsLacking(subject.desired?.value, needed),
  });
  return diff && withIdentityOpen(diff);
}

/** A subject next to its live side. */
interface Compared {
  readonly subject: Subject;
  readonly noun: string;
  readonly live: Existence | undefined;
  /** The fields that the entry lacks for a creation. */
  readonly lacking: readonly string[];
}

/** Marks a blocked verdict: the live resource of the key is unconfirmed. */
export function withIdentityOpen(diff: Diff): Diff {
  const { verdict } = diff;
  return verdict.verdict === 'blocked' ? { ...diff, verdict: { ...verdict, identity: true } } : diff;
}

function judgeExistence(compared: Compared): Diff | undefined {
  const { subject, live } = compared;
  const { desired, binding } = subject;
  if (desired?.managed === false) return diffUnmanaged(compared);
  if (binding !== undefined) return diffBound(compared, binding);
  if (desired === undefined) return unchanged;
  if (desired.id === undefined) return undefined;
  // If the object of the line is gone, the entry asks for a creation.
  if (desired.held !== undefined && !isSameObject(desired.held, live)) return undefined;
  if (live?.id === undefined) return notFound(compared, desired.id);
  const known = Object.values(live.identity).join(', ');
  const what = `id ${live.id}${known === '' ? '' : ` (${known})`}`;
  const reason = {
    found: `found under its idempotency key: ${what}, created by an earlier state`,
    released: `returns to the spec: ${what} was released before, and still exists`,
    file: `\`id:\` in the spec: ${what}`,
  }[desired.held?.by ?? 'file'];
  return { verdict: { verdict: 'adopt', target: live.id, reason } };
}

/** The identity of a held object that the live resource shows too is the same. @assumption A17 */
function isSameObject(
  { identity }: NonNullable<DesiredResource['held']>,
  live: Existence | undefined,
): live is Existence & { readonly id: string } {
  if (live?.id === undefined) return false;
  return Object.entries(identity).every(([field, value]) => (live.identity[field] ?? value) === value);
}

/** The reason of a creation in place of a resource that existed before; `{}` if there was none. */
export function lostOf({ binding, desired }: Subject, noun: string): { readonly lost?: string } {
  if (binding !== undefined) return { lost: `${noun} ${binding.id} no longer exists` };
  if (desired?.held === undefined) return {};
  const what =
    desired.held.by === 'released' ? 'was released before' : 'was created under its idempotency key';
  return { lost: `${noun} ${desired.id} ${what}, and no longer exists` };
}

/**
 * The resource is observed and never changed: the binding is released, so that nothing can delete the resource later.
 */
function diffUnmanaged({ subject: { key, desired, binding }, noun, live, lacking }: Compared): Diff {
  if (binding !== undefined) {
    const named = idInSpec(desired);
    if (named !== undefined && named !== binding.id) {
      const when = `if ${key} is ${noun} ${named}: ${noun} ${binding.id} stays, no longer managed`;
      // In either setting: with `prune`, each bound resource without an entry would be deleted in between.
      const forgotten = wayToForget(key, { isDeclared: true, when, prune: true });
      const reason = `${key} is bound to ${noun} ${binding.id}, but the spec has \`id: ${named}\` and \`managed: false\``;
      return blocking('update', 'id_conflict', reason, [
        edit(key, { set: { id: idInFile(binding.id) }, when: `if ${key} is ${noun} ${binding.id}` }),
        { ...forgotten, next: [...(forgotten.next ?? []), edit(key, { entry: 'restore' })] },
      ]);
    }
    const gone = live === undefined;
    const reason = gone
      ? `${noun} ${binding.id} no longer exists`
      : `${noun} ${binding.id} is no longer managed, and stays unchanged`;
    return { verdict: { verdict: 'release', gone, reason } };
  }
  if (live !== undefined) return unchanged;
  const wanted = desired?.id === undefined ? `no ${noun} with that name` : `no ${noun} ${desired.id}`;
  const reason = `an entry with \`managed: false\` needs an existing ${noun}, and the project has ${wanted}`;
  return blocking('adopt', 'not_found', reason, [
    outside(`create the ${noun} in the client area, or correct the entry`),
    without(key, 'managed', lacking),
  ]);
}

function diffBound(compared: Compared, binding: Binding): Diff | undefined {
  const { subject, noun, live } = compared;
  const { key, desired } = subject;
  const named = idInSpec(desired);
  if (named !== undefined && named !== binding.id) {
    const reason = `${key} is bound to ${noun} ${binding.id}, but the spec has \`id: ${named}\``;
    return blocking('update', 'id_conflict', reason, [
      command('adopt', [key, named], { when: `if no other entry is bound to ${named}` }),
      edit(key, { set: { id: idInFile(binding.id) } }),
    ]);
  }
  if (live === undefined) {
    if (named !== undefined) return notFound(compared, named);
    if (desired !== undefined) return undefined;
    const reason = `${noun} ${binding.id} no longer exists`;
    return { verdict: { verdict: 'release', gone: true, reason } };
  }
  const differs = Object.entries(binding.identity).find(([field, value]) => live.identity[field] !== value);
  if (differs !== undefined) {
    const [field, value] = differs;
    const reason = `${noun} ${binding.id} had ${field} ${value} when ${key} was bound to it, and has ${live.identity[field] ?? 'none'} now: the id may belong to another ${noun} now`;
    const verb = desired === undefined ? 'delete' : 'update';
    return blocking(verb, 'identity_changed', reason, whoseItIs(subject, binding.id));
  }
  if (binding.tainted === undefined || desired === undefined) return undefined;
  const reason = `a failed write left ${noun} ${binding.id}, which may not work: ${binding.tainted}`;
  return blocking('create', 'tainted', reason, [
    command('adopt', [key, binding.id], { when: `if ${noun} ${binding.id} works` }),
    outside(`delete ${noun} ${binding.id} in the client area`, { about: [binding.id] }),
  ]);
}

/** The decisions that an operator can take about a live resource that may not be the bound one. */
export function whoseItIs({ key, desired }: Subject, id: string): readonly Remedy[] {
  return [
    command('adopt', [key, id], { when: 'if this is still the same resource' }),
    command('resolve', [key, '--absent'], {
      when: 'if the bound resource is gone, and another resource has its id',
    }),
    command('adopt', ['KEY', id], {
      when: 'if the resource belongs to another entry: KEY is the key of that entry',
    }),
    ...(desired === undefined
      ? [command('forget', [key], { when: 'to keep the resource unchanged, and no longer managed' })]
      : []),
  ];
}

/** The resource would have to be replaced, but its entry, which binds it by `id:`, lacks fields for the creation. */
export function incomplete(
  { key, desired }: Subject,
  changes: readonly Change[],
  needed: readonly string[],
): Diff | undefined {
  const missing = fieldsLacking(desired?.value, needed);
  if (missing.length === 0) return undefined;
  const differs = changes.map(
    ({ path, from, to }) => `${path} is ${JSON.stringify(from)}, not ${JSON.stringify(to)}`,
  );
  const reason = `${differs.join('; ')}. This change needs a replacement, and the entry lacks ${missing.join(' and ')}`;
  const remedies = [restoring(changes, key), edit(key, { choose: chosen(missing) })];
  return blocking('update', 'entry_incomplete', reason, remedies);
}

/** The fields of the list that an entry leaves out. */
function fieldsLacking(entry: unknown, needed: readonly string[]): readonly string[] {
  return needed.filter((field) => member(entry, field) === undefined);
}

/** No operation is needed. */
export const unchanged: Diff = { verdict: { verdict: 'unchanged' } };

/** A resource that the spec names by id is never created. */
function notFound({ subject: { key }, noun, lacking }: Compared, id: string): Diff {
  const reason = `the spec has \`id: ${id}\` in ${key}, and the project has no ${noun} ${id}`;
  return blocking('adopt', 'not_found', reason, [
    edit(key, { entry: 'remove', when: 'if the resource is not needed' }),
    edit(key, { choose: { id: [] } }),
    { ...without(key, 'id', lacking), when: 'to create a new resource' },
  ]);
}

/** The entry without the field, and with the fields that the entry then needs. */
function without(key: ResourceKey, field: string, lacking: readonly string[]): Remedy {
  return edit(key, { remove: [field], ...(lacking.length === 0 ? {} : { choose: chosen(lacking) }) });
}

/** Fields that may get any value. */
export function chosen(fields: readonly string[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(fields.map((field) => [field, []]));
}

export function blocking(verb: Verb, code: BlockCode, reason: string, remedies: readonly Remedy[]): Diff {
  return { verdict: { verdict: 'blocked', verb, code, reason, remedies } };
}

/** The changes of a creation: every declared field from nothing. */
export function fromNothing(fields: Readonly<Record<string, unknown>>): Change[] {
  return Object.entries(given(fields)).map(([path, to]) => ({ path, from: null, to }));
}

/** The changes of a deletion: from the known fields of the resource to nothing. */
export function toNothing(fields: Readonly<Record<string, unknown>>): Change[] {
  return Object.entries(given(fields)).map(([path, from]) => ({ path, from, to: null }));
}

/** Observes the resources inside servers in parallel; without a live server there is nothing to observe. */
export async function observeInside<Value, Observed>(
  subjects: readonly Subject<Value>[],
  idOf: (key: ResourceKey) => string | undefined,
  observe: (server: ServerId, subject: Subject<Value>) => Promise<Observed | undefined>,
): Promise<ReadonlyMap<ResourceKey, Observed>> {
  const seen = await Promise.all(
    subjects.map(async (subject) => {
      const server = subject.parent === undefined ? undefined : idOf(subject.parent);
      const found = server === undefined ? undefined : await observe(Number(server) as ServerId, subject);
      return found && ([subject.key, found] as const);
    }),
  );
  return new Map(seen.filter((each) => each !== undefined));
}

/** The live id of the server that contains a resource. */
export function serverOf({ parent }: Subject, world: World): ServerId {
  return Number(parent && world.idOf(parent)) as ServerId;
}

/** The reads do not show the effect. */
export const notDone = { verdict: 'not_done' } as const;

/** The reads show the effect, by an id. */
export function done(id: number | string) {
  return { verdict: 'done', id: String(id), certain: true } as const;
}

export function doneIf(isDone: boolean, id: number | string) {
  return isDone ? done(id) : notDone;
}

/** The reads permit no conclusion: an operator may choose one of these. */
export function unclear(reason: string, among: readonly { readonly id: number | string }[]) {
  return { verdict: 'unclear', reason, candidates: among.map(({ id }) => String(id)) } as const;
}

/** The number of missing ids that are read one by one: more reads would cost more than they prove. */
const mostSingleReads = 5;

/**
 * A list that lacks an existing resource proves no absence. The function reads the ids that the
 * list should contain; `undefined`: no read contradicts the list.
 *
 * @assumption A8
 */
export async function cutShort<Id extends number | string>(
  noun: string,
  listed: readonly Id[],
  expected: Iterable<string>,
  isThere: (id: string) => Promise<boolean>,
): Promise<Extract<Evidence, { verdict: 'unclear' }> | undefined> {
  const shown = new Set(listed.map(String));
  const missing = [...new Set(expected)].filter((id) => !shown.has(id)).slice(-mostSingleReads);
  for (const id of missing) {
    if (!(await isThere(id))) continue;
    return unclear(`the list of ${noun} is incomplete: it lacks ${id}, which exists`, []);
  }
  return undefined;
}

/** Whether the list of addresses lacks an address that exists. */
export function cutShortIps(
  ips: readonly Ip[],
  before: ReadonlySet<string>,
  managedIds: ReadonlySet<string>,
  read: ReadPort,
) {
  const listed = ips.map(({ id }) => id);
  return cutShort(
    'addresses',
    listed,
    [...before, ...managedIds],
    async (id) => (await read.findIp(Number(id))) !== undefined,
  );
}

/** An `id` of an answer's `data`, as text. */
export function idIn(data: unknown): string | undefined {
  const id = member(data, 'id');
  return typeof id === 'number' || (typeof id === 'string' && id !== '') ? String(id) : undefined;
}

/** The same for kinds whose ids are integers: any other value is no id. @source API §2 */
export function integerIdIn(data: unknown): string | undefined {
  const id = idIn(data);
  return id !== undefined && /^[1-9]\d{0,15}$/.test(id) ? id : undefined;
}

/** The ids of a recorded list, as text. */
export function recordedIds(list: readonly (number | string)[] = []): ReadonlySet<string> {
  return new Set(list.map(String));
}

/**
 * The API could refuse the new resource only after the old one is deleted: no read shows these values, and a proof does
 * not show them, or is still to come. No proof shows an open invoice or a full quota that the API checks last, because a
 * body that the API accepts would be carried out. @assumption A36 @assumption A54 @assumption A73
 *
 * @param body the fields of the creation that no read has proven
 */
export function mayBeRefused(
  { key, kind, binding }: Subject,
  write: WriteName,
  body: Readonly<Record<string, unknown>>,
  { proofChecks }: World,
): Warning[] {
  const checked = proofChecks?.[write];
  const left = Object.entries(body).filter(([field]) => checked?.includes(field) !== true);
  const values = [...left.map(([field, value]) => `\`${field}: ${flowYaml(value)}\``), 'payment and quota'];
  const [asked, proof] =
    checked === undefined
      ? ['vdcsync asks the API before the deletion, but the API', 'run `vdcsync plan --prove`, or ']
      : ['The API', ''];
  const noun = nounOf(kind);
  const message = `unproven: ${values.join(', ')}. ${asked} may check this only in a creation, after ${noun} ${binding?.id} is deleted. If the API refuses the new ${noun} then, you have no ${noun}. To be safe, ${proof}first create a second ${noun} with these values under a new key, or check them in the client area`;
  return [{ code: 'replacement_unchecked', key, message }];
}

/** The fields with their new values. */
export function newValues(changes: readonly Change[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(changes.map(({ path, to }) => [path, to]));
}
