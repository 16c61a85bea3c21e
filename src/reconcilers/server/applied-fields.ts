import equal from 'fast-deep-equal';
import type { AppliedValues } from '../../core/catalogue.ts';
import type { DesiredResource } from '../../core/desired.ts';
import type { World } from '../../core/kind.ts';
import type { Change } from '../../core/plan.ts';
import { findType } from '../prices.ts';
import { findImage, plansOf, type ServerBody } from './body.ts';
import { type ServerEntry, sliders } from './entry.ts';

/** The record of a server in its binding. */
interface ServerRecord {
  /** As it was last applied or believed. */
  readonly entry?: ServerEntry | null;
  /** The request that created the server. `null`: this state did not create it. */
  readonly body?: ServerBody | null;
  /** Fields of a server from outside this state that an operator has confirmed, or this state has sent. */
  readonly known?: readonly string[];
  /** The sizes of a resize that was given up. */
  readonly doubted?: ServerBody | null;
  readonly mayBeOlder?: boolean;
}

export function recordOf(binding: AppliedValues | undefined): ServerRecord {
  return (binding?.applied ?? {}) as ServerRecord;
}

/** Whether this state has sent the field, or an operator has confirmed it. */
export function isKnown({ body, known = [] }: ServerRecord, field: string): boolean {
  return body != null || known.includes(field);
}

/**
 * Compares declared fields with the last applied fields, because no read shows them. Equal notation
 * is equal; otherwise both are compared as resolved (a name and its id are the same).
 * A server that this state did not create was never applied: the fields that its entry left out are
 * unknown, and not compared. If the spec changes a value that was only believed, the value is
 * corrected, and the server remains the same. `notes` name values that the catalogue no longer has.
 *
 * @param harmless fields whose change needs no replacement: shown by a read, or changed in place
 */
export function diffFields(
  entry: ServerEntry,
  record: ServerRecord,
  world: World,
  harmless: (field: string) => boolean,
): { readonly changes: Change[]; readonly notes: readonly string[] } {
  const { entry: before, body } = record;
  if (before == null) return { changes: [], notes: [] };
  const changes = comparable.flatMap((field): Change[] => {
    const [from, to] = [before[field], entry[field]];
    if (to === undefined || equal(from, to)) return [];
    if (body == null && from === undefined) return [];
    if (!isKnown(record, field) && !harmless(field)) return [];
    const same =
      body == null
        ? equal(resolved(field, from, entry, world), resolved(field, to, entry, world))
        : isApplied(field, to, body, entry, world);
    if (same) return [];
    const sent = body?.[field === 'server_type' ? 'server_type_id' : field];
    const ids = {
      from: sent ?? resolved(field, from, before, world),
      to: resolved(field, to, entry, world),
    };
    return [withIds({ path: field, from: from ?? null, to }, ids)];
  });
  return { changes, notes: withdrawn(entry, body, world) };
}

/** Applied fields that the entry leaves out: a new server would not get them. */
export function droppedFields(entry: ServerEntry, record: ServerRecord): readonly Change[] {
  return comparable.flatMap((path) => {
    const from = record.entry?.[path];
    const isDropped = from !== undefined && entry[path] === undefined && isKnown(record, path);
    return isDropped ? [{ path, from, to: null }] : [];
  });
}

/** Names the ids behind the values of a type or image, where these values are names. */
export function withIds(change: Change, ids: Readonly<Record<'from' | 'to', unknown>>): Change {
  if (change.path !== 'server_type' && change.path !== 'image') return change;
  const behind = (side: 'from' | 'to') => {
    const id = ids[side] as string | number | undefined;
    return id === undefined || change[side] === null || String(id) === String(change[side])
      ? {}
      : { [`${side}_id`]: id };
  };
  return { ...change, ...behind('from'), ...behind('to') };
}

const comparable = [
  'server_type',
  'image',
  ...sliders,
  'plan_id',
  'gpu_package',
  'ssh_keys',
  'gpus',
  'disk_type',
] as const;
type Comparable = (typeof comparable)[number];

/** The fields of the entry that only the creation of the server decides. */
export function madeOf(entry: ServerEntry): readonly Comparable[] {
  return comparable.filter((field) => entry[field] !== undefined);
}

/** Whether the entry differs from the entry at the creation or adoption of the server, even in notation alone. */
export function isEdited(
  { value, named }: DesiredResource<ServerEntry>,
  binding: AppliedValues | undefined,
): boolean {
  const before = recordOf(binding).entry;
  const fields = [...comparable, 'public_ipv4', ...(named === false ? [] : (['name'] as const))] as const;
  return before != null && fields.some((field) => !equal(before[field], value[field]));
}

/** Whether a declared value, in any notation, equals the value that the server was created with. */
function isApplied(
  field: Comparable,
  to: unknown,
  body: ServerBody,
  entry: ServerEntry,
  world: World,
): boolean {
  if (field === 'gpu_package') return [to].flat().includes(body[field]);
  const wanted = resolved(field, to, entry, world);
  if (field === 'server_type') return wanted === body.server_type_id;
  return equal(resolved(field, body[field], entry, world), wanted);
}

/** Names become ids if the catalogue has them; all other values remain unchanged. */
function resolved(field: Comparable, value: unknown, entry: ServerEntry, world: World): unknown {
  const { types, images } = world.catalogue;
  if (field === 'server_type') return findType(value, types)?.id ?? value;
  if (field === 'ssh_keys') return Array.isArray(value) ? [...value].sort() : [];
  if (field !== 'image') return value;
  const type = findType(entry.server_type, types);
  const found = type && findImage(String(value), images.get(type.id) ?? []);
  return found !== undefined && 'id' in found ? found.id : value;
}

function withdrawn(entry: ServerEntry, body: ServerRecord['body'], world: World): string[] {
  const bought = body?.gpu_package;
  const pricing = world.catalogue.pricing.get(body?.server_type_id as number);
  if (entry.gpu_package === undefined || bought === undefined || pricing === undefined) return [];
  return pricing.gpu_packages.some(({ key }) => key === bought)
    ? []
    : [`package ${bought} is no longer sold: vdcsync could not create this server again`];
}

/**
 * Fields of a creation that no read can check before the write, and that differ from the fields that the API last
 * accepted for this very server. Each accepted SSH key counts as proven, also without the others.
 */
export function unproven(body: ServerBody, { body: accepted }: ServerRecord, world: World): string[] {
  const sameType = accepted?.server_type_id === body.server_type_id;
  const listed = plansOf(body.server_type_id, world).length > 0;
  return (['name', ...comparable] as const).filter((field) => {
    const [before, now] = [accepted?.[field], body[field]];
    if (now === undefined || checkable.has(field) || (field === 'plan_id' && listed)) return false;
    if (field === 'ssh_keys') return (now as readonly unknown[]).some((id) => ![before].flat().includes(id));
    return !equal(before, now) || (field !== 'name' && !sameType);
  });
}

/** The catalogue shows types, images and packages before the write. */
const checkable: ReadonlySet<string> = new Set(['server_type', 'image', 'gpu_package']);
