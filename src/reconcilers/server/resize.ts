import type { AppliedValues } from '../../core/catalogue.ts';
import { type Json, member } from '../../core/json.ts';
import type { Diff, Price, Subject, World } from '../../core/kind.ts';
import type { Change, Operation, Spend, Warning } from '../../core/plan.ts';
import type { WriteRequest } from '../../core/ports.ts';
import { command, edit, outside, type Remedy, remedyText } from '../../core/remedy.ts';
import type { Server, ServerType } from '../../core/resources.ts';
import { restoring } from '../../core/restoring.ts';
import type { Binding } from '../../core/state.ts';
import { priceOfSize } from '../prices.ts';
import { blocking, newValues } from '../verdicts.ts';
import { isKnown, recordOf } from './applied-fields.ts';
import { madeAs, modeProblem, planProblem, plansOf, priceApplied, sizes, typeOf } from './body.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { fieldsToReplace } from './existing.ts';

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
  if (wrong !== undefined) return blocking('update', wrong.code, wrong.reason, wrong.remedies(subject.key));
  const loss = diskLoss(subject, differing, type, shown, world);
  const blocked =
    (loss && blockedLoss(subject, loss, differing, world)) ??
    blockedUnconfirmed(subject, differing, shown, world);
  if (blocked !== undefined) return blocked;
  const changes = [...differing.asked, ...differing.moved];
  const sized = { ...made, ...newValues(changes) };
  const bill = { price: priceOfSize(type, sized, world), freed: priceApplied(subject, shown, world) };
  const cause = differing.asked.length > 0 ? 'file' : 'drift';
  const loses = loss === undefined ? {} : { loses: loss.loses };
  const warnings = loss === undefined ? unshownDisk(subject, entry, shown) : [];
  const verdict = { verdict: 'update', changes, cause, ...loses } as const;
  return { verdict, ...bill, spend: spendOf(changes, bill), warnings };
}

/** Another user may have enlarged the disk since this state has set its size. */
function unshownDisk({ key, binding }: Subject, { disk_gb: disk }: ServerEntry, shown?: Server): Warning[] {
  if (disk === undefined || shown?.disk_gb !== undefined) return [];
  const server = `server ${binding?.id}`;
  const message = `the resize sets the disk to ${disk} GB, and the API does not show the disk of ${server}: if the client area has enlarged it to more, the resize destroys data`;
  const remedies = [outside(`check the disk of ${server} in the client area`)];
  return [{ code: 'server_unchecked', key, message, remedies }];
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
  const { entry, body: before, known = [], mayBeOlder } = recordOf(binding);
  const sent = body as object;
  const made =
    before == null
      ? {
          entry: { ...(entry as object), ...sent },
          body: null,
          known: [...new Set([...known, ...Object.keys(sent)])],
        }
      : { entry: { ...(asked as object) }, body: { ...(before as object), ...sent } };
  const applied = { ...made, ...(mayBeOlder === true ? { mayBeOlder } : {}) } as Json;
  return { identity: binding?.identity ?? {}, applied, keep: binding?.keep ?? false };
}

/** Records the sizes of a request that may have been carried out, next to the known sizes. */
export function withUnconfirmed({ applied }: Binding, { body }: WriteRequest): Json {
  return { ...(applied as object | null), doubted: body ?? null } as Json;
}

/** Sizes that the server may have, and that differ from the spec. */
export function diffUnconfirmed(entry: ServerEntry, { binding }: Subject): Change[] {
  return diffShown(entry, recordOf(binding).doubted as Sizes | undefined);
}

/** A resize that makes the disk smaller, or may do so. */
interface DiskLoss {
  /** The size that decides, whether or not that size changes. */
  readonly change: Change;
  /** The data that the resize destroys. */
  readonly loses: string;
  readonly size: Certainty;
}

/**
 * A resize sends every size that the spec declares, so it also sends a disk size that is only believed.
 * Only the catalogue can show whether a plan has a smaller disk. @assumption A54
 */
function diskLoss(
  subject: Subject<ServerEntry>,
  { asked, moved }: SizeChanges,
  type: ServerType | undefined,
  shown: Server | undefined,
  world: World,
): DiskLoss | undefined {
  const { binding, desired } = subject;
  const planned = (plan: unknown) => plansOf(type?.id, world).find(({ id }) => id === plan)?.disk_gb;
  for (const path of ['disk_gb', 'plan_id'] as const) {
    const to = desired?.value[path];
    if (to === undefined) continue;
    const change = [...asked, ...moved].find((each) => each.path === path) ?? { path, from: to, to };
    const size = certaintyOf(subject, path, shown);
    if (size === 'believed' && shown?.disk_gb === undefined) {
      const unknown = `the API does not show the size of the disk of server ${binding?.id}`;
      return { change, size, loses: `the data that does not fit on the new disk (${unknown})` };
    }
    if (change.from === to) continue;
    const had = [change.from, ...(size === 'shown' ? [] : unconfirmedSize(subject, path))];
    const diskOf = (value: unknown) => (path === 'disk_gb' ? (value as number | null) : planned(value));
    const before = shown?.disk_gb === undefined ? had.map(diskOf) : [shown.disk_gb];
    const after = diskOf(to);
    if (after == null || before.some((each) => each == null)) {
      const unknown = 'it is not known whether the disk gets smaller';
      return { change, size, loses: `the data that does not fit on the new disk (${unknown})` };
    }
    const largest = Math.max(...before.map(Number));
    if (after < largest)
      return { change, size, loses: `the data beyond ${after} GB on its disk of ${largest} GB` };
  }
  return undefined;
}

/** The size that the server may have after a resize that was given up. */
function unconfirmedSize({ binding }: Subject, path: string): readonly unknown[] {
  return [recordOf(binding).doubted?.[path]].filter((each) => each !== undefined);
}

/**
 * A smaller disk destroys data, as a replacement of the server does, so the same setting permits both.
 * The setting covers only edits of the spec: a disk that another user enlarged may be in use.
 */
function blockedLoss(
  subject: Subject<ServerEntry>,
  { change, loses, size }: DiskLoss,
  { asked, moved }: SizeChanges,
  { settings }: World,
): Diff | undefined {
  const { key } = subject;
  const { path, from, to } = change;
  const hold = (reason: string, ways: readonly Remedy[]) =>
    blocking('update', 'disk_would_shrink', reason, ways);
  if (asked.length === 0 && settings.drift === 'report') return undefined;
  if (moved.includes(change)) {
    const when = `to keep ${path} ${from}`;
    const reason = `${path} was changed outside vdcsync from ${to} to ${from}. A change back would destroy ${loses}`;
    return hold(reason, [edit(key, { set: { [path]: from }, when })]);
  }
  const allow = wordsLacking(subject);
  if (allow === undefined) return undefined;
  if (size !== 'believed') {
    return hold(`${path}: ${from} → ${to} destroys ${loses}`, [allow, restoring([change], key)]);
  }
  const ways = [confirmingValues(subject, [...asked, ...moved]), allow];
  return hold(`a resize to ${path}: ${to} would destroy ${loses}`, ways);
}

/**
 * Whether a read shows the size of a server, or vdcsync sent it or an operator confirmed it, or it is only believed.
 */
type Certainty = 'shown' | 'known' | 'believed';

/** The differences by an edit of the spec, and those without an edit. */
interface SizeChanges {
  readonly asked: readonly Change[];
  readonly moved: readonly Change[];
}

function certaintyOf({ binding }: Subject, path: string, shown: Server | undefined): Certainty {
  if (member(shown, path) !== undefined) return 'shown';
  return isKnown(recordOf(binding), path) ? 'known' : 'believed';
}

/**
 * A resize sends every size that the spec declares, so it also sends sizes that the edit does not change. @assumption
 * A48
 */
function blockedUnconfirmed(
  subject: Subject<ServerEntry>,
  { asked, moved }: SizeChanges,
  shown: Server | undefined,
  { settings }: World,
): Diff | undefined {
  const { key, desired, binding } = subject;
  const changes = [...asked, ...moved];
  const along = sizes.filter(
    (size) =>
      desired?.value[size] !== undefined &&
      !changes.some(({ path }) => path === size) &&
      certaintyOf(subject, size, shown) === 'believed',
  );
  const allow = wordsLacking(subject);
  if (along.length === 0 || allow === undefined) return undefined;
  if (asked.length === 0 && settings.drift === 'report') return undefined;
  const sent = along.map((size) => `${size}: ${desired?.value[size]}`).join(', ');
  const reason = `a resize also sends ${sent}, and the API does not show whether server ${binding?.id} has that already: the resize could change more than your edit`;
  const less = desired?.id === undefined ? [] : [edit(key, { remove: along })];
  return blocking('update', 'size_unconfirmed', reason, [confirmingValues(subject, changes), ...less, allow]);
}

/** The edit that permits a replacement of the server; `undefined` if the spec permits it already. */
function wordsLacking(subject: Subject<ServerEntry>): Remedy | undefined {
  const set = fieldsToReplace(subject);
  return Object.keys(set).length === 0 ? undefined : edit(subject.key, { set });
}

/** The command by which an operator confirms values that are only believed. */
function confirmingValues({ key, binding }: Subject, changes: readonly Change[]): Remedy {
  const when = `if the server has all values of the spec. If not: first ${remedyText(restoring(changes, key))}, adopt, and then edit the spec again`;
  return command('adopt', [key, binding?.id ?? 'ID'], { when });
}

/** Whether this state has sent, or an operator has confirmed, all fields that decide the price. */
export function isSizeKnown(binding: AppliedValues): boolean {
  const record = recordOf(binding);
  const declared = (['server_type', 'gpu_package', ...sizes] as const).filter(
    (field) => record.entry?.[field] != null,
  );
  return declared.every((field) => isKnown(record, field));
}
