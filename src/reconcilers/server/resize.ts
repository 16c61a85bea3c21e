import { type Json, member } from '../../core/json.ts';
import type { Diff, Price, Subject, World } from '../../core/kind.ts';
import type { Change, Operation, Spend } from '../../core/plan.ts';
import type { WriteRequest } from '../../core/ports.ts';
import type { Server } from '../../core/resources.ts';
import type { Binding } from '../../core/state.ts';
import { blocked } from '../existence.ts';
import { priceOfSize } from '../prices.ts';
import { heldUnconfirmed, type SizeChanges } from './believed-size.ts';
import { knownOf, madeAs, modeProblem, planProblem, priceApplied, sizes, typeOf } from './body.ts';
import { diskLoss, heldLoss } from './disk-loss.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';

/** Whether sizes need no replacement. A packaged server is never resized. @source API §4 */
export function canResize(entry: ServerEntry, world: World): boolean {
  return world.profile.operations.resize_server !== undefined && entry.gpu_package === undefined;
}

export function isSize({ path }: Pick<Change, 'path'>): boolean {
  return sizes.some((size) => size === path);
}

/** Another size in place: the request contains neither type nor image, so an entry with an `id:` may omit both. */
export function diffSize(
  subject: Subject<ServerEntry>,
  entry: ServerEntry,
  differing: SizeChanges,
  { shown }: ServerObserved,
  world: World,
): Diff {
  const made = madeAs(subject, shown);
  const type = typeOf(made, world);
  const wrong = type && (modeProblem(entry, type) ?? planProblem(entry, type, world));
  if (wrong !== undefined) return blocked('update', wrong.code, wrong.reason, wrong.remedies(subject.key));
  const loss = diskLoss(subject, differing, type, shown, world);
  const held =
    (loss && heldLoss(subject, loss, differing, world)) ?? heldUnconfirmed(subject, differing, shown, world);
  if (held !== undefined) return held;
  const changes = [...differing.asked, ...differing.moved];
  const sized = { ...made, ...Object.fromEntries(changes.map(({ path, to }) => [path, to])) };
  const bill = { price: priceOfSize(type, sized, world), freed: priceApplied(subject, shown, world) };
  const cause = differing.asked.length > 0 ? 'file' : 'drift';
  const loses = loss === undefined ? {} : { loses: loss.loses };
  return { verdict: { verdict: 'update', changes, cause, ...loses }, ...bill, spend: spendOf(changes, bill) };
}

/** A larger size is new spending, like a purchase. Without known prices the sizes decide. @source API §1.6 */
function spendOf(changes: readonly Change[], { price, freed }: Record<'price' | 'freed', Price>): Spend {
  if ('known' in price && 'known' in freed) {
    const more = Number(price.known) - Number(freed.known);
    return more > 0 ? 'adds' : more < 0 ? 'reduces' : 'none';
  }
  const shrinks = changes.every(
    ({ path, from, to }) => path !== 'plan_id' && typeof from === 'number' && Number(to) < from,
  );
  return shrinks ? 'reduces' : 'adds';
}

type Sizes = Partial<Pick<Server, (typeof sizes)[number]>>;

/** Declared sizes that differ from the API's reads. */
export function diffShown(entry: ServerEntry, shown: Sizes | undefined): Change[] {
  return sizes.flatMap((path) => {
    const [from, to] = [shown?.[path], entry[path]];
    return from === undefined || to === undefined || from === to ? [] : [{ path, from, to }];
  });
}

/** All sizes that the spec declares, so that the same request always means the same server. */
export function resizeRequest(
  { desired }: Subject<ServerEntry>,
  { target }: Pick<Operation, 'target'>,
): WriteRequest {
  const entry = desired?.value;
  const body = Object.fromEntries(
    sizes.flatMap((size) => (entry?.[size] === undefined ? [] : [[size, entry[size]] as const])),
  );
  return { name: 'resize_server', path: { server_id: Number(target) }, body };
}

/**
 * The binding after a resize: the same server, with other sizes. For an adopted server only the sent sizes become
 * known.
 */
export function rebound(
  { binding }: Subject<ServerEntry>,
  { body }: WriteRequest,
  asked: ServerEntry | undefined,
): Pick<Binding, 'identity' | 'applied' | 'keep'> {
  const before = member(binding?.applied, 'body') ?? null;
  const known =
    before === null ? { ...(member(binding?.applied, 'entry') as object), ...(body as object) } : asked;
  const sent = {
    known: [...new Set([...knownOf(binding?.applied ?? null), ...Object.keys(body as object)])],
  };
  const made =
    before === null ? { body: null, ...sent } : { body: { ...(before as object), ...(body as object) } };
  const mayBeOlder = member(binding?.applied, 'mayBeOlder') === true ? { mayBeOlder: true } : {};
  const applied = { entry: { ...known }, ...made, ...mayBeOlder } as Json;
  return { identity: binding?.identity ?? {}, applied, keep: binding?.keep ?? false };
}

/** Records the sizes of a request that may have been carried out, next to the known sizes. */
export function withUnconfirmed({ applied }: Binding, { body }: WriteRequest): Json {
  return { ...(applied as object | null), doubted: body ?? null } as Json;
}

/** Sizes that the server may have, and that differ from the spec. */
export function diffDoubted(entry: ServerEntry, { binding }: Subject): Change[] {
  return diffShown(entry, member(binding?.applied, 'doubted') as Sizes | undefined);
}
