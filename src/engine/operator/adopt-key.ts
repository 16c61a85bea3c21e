import equal from 'fast-deep-equal';
import { type Desired, type DesiredResource, namedAddress } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import { type Json, member } from '../../core/json.ts';
import { nounOf, parseKey, type ResourceKey, retiredFrom, retiringKey, takeApart } from '../../core/keys.ts';
import type { Seen, Subject, World } from '../../core/kind.ts';
import { factsOf, isAddress, type KindName } from '../../core/kind-facts.ts';
import { type CommandResult, command, result } from '../../core/remedy.ts';
import type { Ip } from '../../core/resources.ts';
import type { Binding, StateChange } from '../../core/state.ts';
import { didYouMeanKey } from '../../core/suggest.ts';
import { flowYaml } from '../../core/text.ts';
import { answeredElsewhere, identityChanged, isAnother, makerOf, ownerOf } from '../claims/claims.ts';
import { giveBack } from '../claims/line.ts';
import { exchanging, passingOn, released } from '../claims/release.ts';
import { confirmed } from '../claims/run-state.ts';
import { identified } from '../claims/unidentified.ts';
import { bindingOf } from '../run/adopt.ts';
import { boundIn, type Run } from '../run.ts';
import { bindingsOf, forgetting, stays } from './ignore.ts';

type Bound = Subject & { readonly binding: Binding };

/** Binds a key of the spec to a live resource of any origin. */
export async function adoptKey(run: Run, key: ResourceKey, named: string): Promise<CommandResult> {
  const id = idOf(run, key, named);
  const subject = run.world.subjects.get(key);
  const bound = subject?.binding?.id === id ? subject.binding : undefined;
  // A resource that a failed creation left can be confirmed too.
  const isSeen = run.world.observed.get(key)?.id !== undefined;
  if (subject !== undefined && bound !== undefined && subject.desired === undefined && isSeen)
    return result(await knowAgain(run, subject, bound));
  if (subject?.desired === undefined)
    throw new ConfigError(`The spec has no ${key}${instead(key, run.desired)}`, true);
  refuseUnmanaged(subject.desired);
  refuseContradiction(subject.desired, id);
  const open = run.intents.get(key);
  if (open !== undefined) {
    const isAsked = open.phase === 'blocked';
    throw new ConfigError(
      `${key} has an open write (${open.verb}). ${isAsked ? 'Resolve it' : 'Let it end'} first.`,
      false,
      [isAsked ? command('resolve', [key, '--adopt', id]) : command('apply')],
    );
  }
  refuseMalformed(subject.kind, id);
  const retiring = run.bindings.get(retiringKey(key, id));
  if (retiring !== undefined && retiring.tainted === undefined && run.world.isThere(retiring.key)) {
    const left = await giveBack(run, key, id);
    return result(
      `${key} is bound to ${id} again.${left === undefined ? '' : ` Server ${left} retires: the next apply deletes it.`}`,
    );
  }
  const world = await worldWith(run, subject, id);
  if (world === undefined) {
    if (bound?.recovered === undefined) throw new ConfigError(missing(subject, id));
    return result(await confirmGone(run, bound));
  }
  await run.deps.store.claimProject(run.desired.projectId);
  await run.moves.keep();
  if (bound !== undefined)
    return result([await knowAgain(run, subject, bound), ...warningsOf(run, subject, id)].join(''));
  const binding = bindingOf(run, subject, id, world);
  const before = subject.binding;
  const exchange = exchanging(run, key, 'operator', id);
  const left = before === undefined ? [] : [stays(run, before, bindingsOf(run, exchange))];
  const owner = leftOwner(run, binding);
  const changes =
    owner === undefined
      ? [...takenFrom(run, binding), ...exchange, { type: 'bind', binding } as const]
      : [...exchange, ...passingOn(run, owner, binding)];
  await run.state.change([...changes, ...identified(run, binding)]);
  const ignoring =
    before && factsOf(before.kind).container
      ? [command('ignore', [before.id], { when: `if this spec shall no longer manage server ${before.id}` })]
      : [];
  const text = [
    `${key} is bound to ${id}.`,
    remarksOn(run, { ...subject, binding }, world),
    ...left,
    unverified(subject),
  ].join('');
  return result(text, ignoring);
}

/**
 * The operator confirms that a resource with another identity is still the same. The binding gets the current
 * identity. Its recorded fields stay, but fields that no read shows are taken from the spec.
 */
async function knowAgain(run: Run, subject: Subject, before: Binding): Promise<string> {
  const { key, id } = before;
  // The operator confirms all that the entry says, also the key that its `moved` names: the state merges earlier keys.
  const { identity, protect, formerKeys = [] } = bindingOf(run, subject, id, run.world);
  const { tainted: _trusted, recovered: _confirmed, ...binding } = before;
  const kind = run.kindOf(subject.kind);
  const seen = run.world.observed.get(key);
  const fields = kind.unseen?.fields(subject, seen) ?? [];
  const believedNow = fields.length === 0 ? undefined : kind.unseen?.believe(subject, fields);
  // Whose resource it is says nothing about values that were edited since. The next plan asks about these.
  const isFound = before.recovered !== undefined && believedNow !== undefined;
  const isEdited = isFound && !equal(entryIn(believedNow), entryIn(before.applied));
  const applied = isEdited ? undefined : believedNow;
  const said = subject.desired === undefined ? {} : { protect };
  const taken = { ...(applied && { applied }), ...(formerKeys.length > 0 && { formerKeys }) };
  // The other entries whose key was answered with the resource are created under their next key.
  const answered = await answeredElsewhere(run);
  const others = (binding.formerKeys ?? []).filter((each) => {
    const holder = answered.get(each);
    return holder !== undefined && 'key' in holder && holder.key === key;
  });
  await run.state.change([
    ...others.map((each) => ({ type: 'next_incarnation', key: each }) as const),
    { type: 'bind', binding: { ...binding, ...said, ...taken, identity } },
    // The resources that came with a server are confirmed with it.
    ...confirmed(boundIn(run, key)),
  ]);
  return `${key} was already bound to ${id}. The binding is confirmed, and the state records the current identity of the ${nounOf(subject.kind)}, such as its name or address.${isEdited ? ` The entry was edited since vdcsync ${before.recovered === 'taken' ? 'bound' : 'found'} it: \`vdcsync plan\` asks about its ${fields.join(', ')}.` : believed(run, subject, seen)}`;
}

/** The resource is gone. The resources that it leaves, such as an address, belong to the entry. */
async function confirmGone(run: Run, bound: Binding): Promise<string> {
  const { key, id } = bound;
  await run.state.change(confirmed([bound, ...boundIn(run, key)]));
  return `${key} is confirmed as bound to ${id}, which no longer exists: \`vdcsync plan\` shows the next step.`;
}

function entryIn(applied: Json | undefined): unknown {
  return member(applied ?? null, 'entry') ?? applied;
}

/** The replacement that the spec would then ask for, which would delete the adopted resource. */
function replacementWarning(run: Run, subject: Subject, live: Seen | undefined): string {
  const { verdict } = run.kindOf(subject.kind).diff(subject, live, run.world);
  if (verdict.verdict !== 'replace' || !verdict.allowed) return '';
  const changes = verdict.changes.map(({ path, from, to }) => `${path} ${from} instead of ${to}`).join(', ');
  return ` The resource has ${changes}, which cannot be changed in place: the next apply would delete the resource and create it again. To keep it, correct the entry first.`;
}

function warningsOf(run: Run, subject: Subject, id: string): readonly string[] {
  const differences = misfits(run, subject, id);
  return differences.length === 0
    ? []
    : [
        ` Check the id: ${differences.join('; ')}. If ${id} is the wrong ${nounOf(subject.kind)}, adopt the right ${nounOf(subject.kind)} instead.`,
      ];
}

/** An entry that is not managed would end the new binding with the next plan. */
function refuseUnmanaged({ key, managed, position: { file, line, column } }: DesiredResource): void {
  if (managed) return;
  throw new ConfigError(
    `${file}:${line}:${column}: ${key} has \`managed: false\`, so it cannot be bound to a resource. Remove \`managed: false\` first.`,
  );
}

function missing({ key, kind, parent }: Subject, id: string): string {
  const noun = nounOf(kind);
  return parent === undefined
    ? `The project has no ${noun} ${id}.`
    : `${parent} has no ${noun} ${id} that fits ${key}.`;
}

/** An entry whose `id` is another one would contradict the new binding at once. */
export function refuseContradiction(
  { key, kind, id: named, held, position }: DesiredResource,
  id: string,
): void {
  const { file, line, column } = position;
  if (named === undefined || named === id || held !== undefined) return;
  throw new ConfigError(
    `${file}:${line}:${column}: ${key} has \`id: ${named}\` in the spec, so it cannot adopt ${nounOf(kind)} ${id}. Write \`id: ${id}\`, or remove \`id: ${named}\`, and adopt again.`,
  );
}

/** The operator may name an address by its text, because no list of the operator shows its id. */
function idOf({ world }: Run, key: ResourceKey, named: string): string {
  if (!isAddress(takeApart(key).kind) || !named.includes('.')) return named;
  const live = world.ips.find(({ address }) => address === named);
  if (live === undefined) throw new ConfigError(`The project has no address ${named}.`);
  return String(live.id);
}

/** A suggestion: a similar key, or some keys of the same kind. */
function instead(key: ResourceKey, { resources }: Desired): string {
  const keys = resources.map((each) => each.key);
  const hint = didYouMeanKey(key, keys);
  if (hint !== '') return hint;
  const kind = parseKey(key)?.kind;
  const alike = resources.filter((each) => each.kind === kind).map((each) => each.key);
  const [shown, more] = [alike.slice(0, 10).join(', '), alike.length - 10];
  return alike.length === 0 ? '.' : `. The spec has ${shown}${more > 0 ? ` and ${more} more` : ''}.`;
}

/** The differences between the entry and the server that is about to be bound. */
function misfits({ world }: Run, { kind, desired }: Subject, id: string): readonly string[] {
  if (!factsOf(kind).container) return [];
  const { public_ipv4: wanted, name } = desired?.value ?? {};
  const attached = world.ipsOf(id);
  const holds = `holds ${attached.length === 0 ? 'no address' : attached.map(({ address }) => address).join(', ')}`;
  const address = namedAddress(desired?.value);
  const named = address && world.idOf(address);
  const lacks =
    address === undefined ? attached.length === 0 : !attached.some((each) => String(each.id) === named);
  const shown = world.servers?.find((each) => String(each.id) === id);
  return [
    ...(wanted !== undefined && lacks
      ? [`its entry says \`public_ipv4: ${flowYaml(wanted)}\`, and the server ${holds}`]
      : []),
    ...(wanted === undefined && attached.length > 0
      ? [`its entry asks for no address, and the server ${holds}, which is billed`]
      : []),
    ...(shown !== undefined && shown.name.trim() !== name
      ? [`the server is named "${shown.name}" in the project`]
      : []),
  ];
}

/**
 * A resource has one key. If another key is bound to the same id, there are three cases: both mean the same resource,
 * which stays with the other key; or the resource of the other key is gone, and its id was used again; or the case is
 * unconfirmed. @assumption A17
 */
export function takenFrom(
  run: Run,
  binding: Binding,
  /** Keys that are bound to another resource at the same time. */
  rebound?: ReadonlySet<ResourceKey>,
): StateChange[] {
  const { id } = binding;
  const maker = makerOf(run, binding);
  if (maker !== undefined)
    throw new ConfigError(`${id} was created for ${maker.key}, and the creation is still open.`, false, [
      command('apply'),
      command('resolve', [maker.key, '--abandon'], { when: 'to give up the creation' }),
    ]);
  const owner = ownerOf(run, binding, rebound);
  if (owner === undefined) return [];
  // A resource that a failed write left may be the resource of another write, if its id was free again.
  const isIts = !isAnother(owner, binding) && !identityChanged(run, owner.key);
  if (owner.tainted === undefined && isIts) {
    const before = 'before you run this command again';
    const { desired } = run.world.subjects.get(owner.key) ?? {};
    const isOther = `${before}, if ${owner.key} is another ${nounOf(owner.kind)}: the client area shows its id`;
    const ways = [
      ...(desired === undefined ? [] : [command('adopt', [owner.key, 'ID'], { when: isOther })]),
      forgetting(run, owner.key, `to release ${id} ${before}`),
    ];
    throw new ConfigError(`${id} is already bound to ${owner.key}.`, false, ways);
  }
  return [
    ...released(run, owner.key, `its id ${id} belongs to another resource now`),
    ...releasedAddresses(run, binding, owner),
  ];
}

/** The key that is bound to the resource, if its entry has left the spec, and no write of it is open. */
function leftOwner(run: Run, binding: Parameters<typeof ownerOf>[1]): Binding | undefined {
  const owner = ownerOf(run, binding);
  if (owner === undefined || owner.tainted !== undefined || run.intents.has(owner.key)) return undefined;
  if (retiredFrom(owner.key) !== undefined) return undefined;
  const isLeft = run.world.subjects.get(owner.key)?.desired === undefined;
  return isLeft && makerOf(run, binding) === undefined && !identityChanged(run, owner.key)
    ? owner
    : undefined;
}

/** The changes by which the entry takes over a resource that a key outside the spec is bound to; `undefined` if none is. */
export function passedFromLeft(
  run: Run,
  taker: Parameters<typeof ownerOf>[1] & Pick<DesiredResource, 'protect'>,
): StateChange[] | undefined {
  const owner = leftOwner(run, taker);
  return owner && passingOn(run, owner, taker);
}

/** The addresses under the old key that this server holds. The new key takes them. */
function releasedAddresses(run: Run, live: Binding, owner: Binding): StateChange[] {
  const reason = `created with ${live.id}, which is bound to ${live.key} now`;
  // A list may end early. An address that no list shows belongs to the server, unless the server is another one.
  // @assumption A8
  const isAttached = (ip: Ip | undefined) =>
    ip === undefined ? !isAnother(owner, live) : String(ip.server_id) === live.id;
  return boundIn(run, owner.key)
    .filter(({ kind, id }) => isAddress(kind) && isAttached(run.world.ip(id)))
    .map(({ key }) => ({ type: 'release', key, gone: false, reason }));
}

/** The remarks for the operator on a resource that is bound now. */
export function remarksOn(run: Run, subject: Bound, world: World): string {
  const live = world.observed.get(subject.key);
  return [
    ...warningsOf(run, subject, subject.binding.id),
    replacementWarning(run, subject, live),
    believed(run, subject, live),
  ].join('');
}

/** A remark if no read can show whether a resource with this id exists. */
export function unverified({ kind }: Pick<Subject, 'kind'>): string {
  if (!factsOf(kind).unlisted) return '';
  return ` vdcsync cannot verify the id: no documented read shows ${nounOf(kind)}s.`;
}

/** The fields of the entry that no read shows. */
function believed(run: Run, subject: Subject, live: Seen | undefined): string {
  const fields = run.kindOf(subject.kind).unseen?.fields(subject, live) ?? [];
  return fields.length === 0
    ? ''
    : ` The API does not show its ${fields.join(', ')}: vdcsync assumes the values in the spec.`;
}

/** The project with the resource that has the id, observed as if the key were bound to it; `undefined` if there is none. */
export async function worldWith(run: Run, subject: Subject, id: string): Promise<World | undefined> {
  const { key, kind } = subject;
  const unknown = { identity: {}, applied: null, protect: false, keep: false, boundAt: 0 };
  const asked = [{ ...subject, binding: { key, kind, id, ...unknown } }];
  const seen = await run.fence.read((read) => run.kindOf(kind).observe(read, asked, run.world.idOf));
  return seen?.get(key)?.id === id
    ? { ...run.world, observed: new Map([...run.world.observed, ...seen]) }
    : undefined;
}

/** @source API §2: integers are identifiers unless stated otherwise */
export function refuseMalformed(kind: KindName, id: string): void {
  const { form, example } = factsOf(kind).ids ?? {};
  if (form === undefined || form.test(id)) return;
  throw new ConfigError(`"${id}" is not a valid ${nounOf(kind)} id. Example: ${example}`, true);
}
