import equal from 'fast-deep-equal';
import { member } from '../../core/json.ts';
import { childKey } from '../../core/keys.ts';
import type { Subject } from '../../core/kind.ts';
import type { Change, Warning } from '../../core/plan.ts';
import { command, edit } from '../../core/remedy.ts';
import { predecessorHolding } from '../../core/world.ts';
import { ownAddress } from '../address-pool.ts';
import { chosen } from '../verdicts.ts';
import { madeOf, recordOf } from './applied-fields.ts';
import type { Differences } from './differences.ts';
import type { ServerEntry, ServerObserved } from './entry.ts';
import { type Existing, holdsNamed } from './existing.ts';

/** Warnings about an existing server, for every verdict. */
export function liveWarnings(existing: Existing, differences: Differences): Warning[] {
  const { key } = existing.subject;
  const { notes, moved, unconfirmed, resizable } = differences;
  return [
    ...inCreation(existing),
    ...surplusInterfaces(existing),
    ...misattached(existing),
    ...unasked(existing),
    ...notes.map((message): Warning => ({ code: 'catalogue_changed', key, message })),
    ...shownOtherwise(existing, resizable ? [] : moved),
    ...unconfirmed.map(mayBe(existing.subject)),
  ];
}

/** A server that was adopted before its creation has ended. @source API §3 @assumption A71 */
export function isInCreation({ live: { shown } }: Existing): boolean {
  return shown?.status === 'creating';
}

function inCreation(existing: Existing): Warning[] {
  const { subject, live } = existing;
  if (!isInCreation(existing)) return [];
  return [{ code: 'in_flight', key: subject.key, message: `server ${live.id} is still being created` }];
}

/** A resize that the profile enabled earlier, and does not enable any more. */
function mayBe({ key }: Subject): (change: Change) => Warning {
  return ({ path, from, to }) => {
    const message = `${path} may be ${from} instead of ${to}: you gave up a resize, and its outcome is unknown. Check the size in the client area`;
    return { code: 'server_differs', key, message };
  };
}

/** Differences that the API shows, and that neither the spec nor the profile can change. */
function shownOtherwise(
  { subject: { key, binding, desired }, entry, live: { shown } }: Existing,
  moved: readonly Change[],
): Warning[] {
  const sent = recordOf(binding).body?.name;
  const name = desired?.named === false ? sent : entry.name.trim();
  const renamed = sent !== undefined && shown !== undefined && shown.name.trim() !== name;
  const other = renamed
    ? [`the server is named "${shown.name}" in the project, and the API does not document how to rename it`]
    : [];
  const resize =
    'The API does not document how to resize a server: resize it in the client area, or enable `resize_server` in the API profile';
  const sizes = moved.map(({ path, from, to }) => `${path} is ${from} instead of ${to}. ${resize}`);
  return [...other, ...sizes].map((message) => ({ code: 'server_differs', key, message }));
}

/**
 * No documented read shows the fields that a server was created with. For an adopted server, vdcsync believes the spec,
 * except for fields that the profile's reads show. @assumption A48
 */
export function unreadFields(
  subject: Subject<ServerEntry>,
  live: ServerObserved | undefined,
): ReturnType<typeof madeOf> {
  const { desired } = subject;
  if (desired === undefined || recordOfObject(subject).body != null) return [];
  return madeOf(desired.value).filter((field) => member(live?.shown, field) === undefined);
}

/** Of the binding, or of the object that the entry takes back. */
function recordOfObject({ desired, binding }: Pick<Subject<ServerEntry>, 'desired' | 'binding'>) {
  const object = desired?.held;
  return recordOf(binding ?? (object && { applied: object.applied }));
}

/** Reported at the adoption. */
export function unchecked(subject: Subject<ServerEntry>, live: ServerObserved): Warning[] {
  const { known = [] } = recordOfObject(subject);
  const fields = unreadFields(subject, live).filter((field) => !known.includes(field));
  if (fields.length === 0) return [];
  const names = fields.join(', ');
  const edits =
    subject.binding === undefined
      ? ''
      : `. Until you confirm the values, vdcsync does not replace the server if you edit ${names}`;
  const hint = live.shown === undefined ? '. `read_server` in the API profile may show its size' : '';
  const message = `this state did not create server ${live.id}, and the API does not show its ${names}: vdcsync assumes the values in the spec${edits}${hint}`;
  const remedies = [
    command('adopt', [subject.key, live.id ?? 'ID'], { when: 'if the client area shows these values' }),
    edit(subject.key, {
      choose: chosen(fields),
      when: 'if the client area shows other values; an entry with `id:` may omit them',
    }),
  ];
  return [{ code: 'server_unchecked', key: subject.key, message, remedies }];
}

/** Reported if the entry has changed since, and the operator has not confirmed the new values by another adoption. */
export function uncheckedEdits({ subject, entry, live }: Existing): Warning[] {
  const { entry: before, known = [] } = recordOf(subject.binding);
  const isNew = (field: ReturnType<typeof madeOf>[number]) =>
    !known.includes(field) && !equal(before?.[field], entry[field]);
  return unreadFields(subject, live).some(isNew) ? unchecked(subject, live) : [];
}

/**
 * An address that was created with the server without an entry that asks for it is billed, so vdcsync warns.
 * @assumption A22
 */
function unasked({ subject, live, world }: Existing): Warning[] {
  const own = ownAddress(subject, world);
  return live.addresses
    .filter((each) => world.isUnbound(each) && each.id !== own?.id)
    .map(({ id, address }) => ({
      code: 'address_not_as_declared',
      key: subject.key,
      message: `the server has address ${address}, which no entry of the spec declares. The address is billed, and stays billed after the server is deleted. To manage it, add an entry with \`id: ${id}\` under \`ips\``,
    }));
}

/**
 * Removing a network interface is undocumented, so vdcsync can only report a surplus one; with a profile it removes
 * only those that this spec added. A spec that names no networks permits every network interface. @assumption A15
 */
function surplusInterfaces({ subject, live, world }: Existing): Warning[] {
  const interfaces = world.childrenOf(subject.key).filter(({ kind }) => kind === 'network_interface');
  if (!interfaces.some(({ desired }) => desired !== undefined)) return [];
  const wanted = new Set(
    interfaces.flatMap(({ desired }) =>
      desired === undefined ? [] : world.idOf((desired.value as { readonly network: never }).network),
    ),
  );
  // A network interface that left the entry is reported under its own key.
  const added = new Set(interfaces.flatMap(({ desired, binding }) => (desired ? [] : (binding?.id ?? []))));
  const why =
    world.profile.operations.remove_network_interface === undefined
      ? 'The API does not document how to remove it: remove it in the client area, or add its network to the entry'
      : 'This state did not add it, so vdcsync does not remove it. To remove it, add its network to the entry, apply, and remove the network from the entry again';
  return (live.interfaces ?? [])
    .filter((each) => !each.public && each.network_id !== null && !wanted.has(String(each.network_id)))
    .filter(({ id }) => !added.has(id))
    .map((networkInterface) => ({
      code: 'surplus_network_interface',
      key: subject.key,
      message: `network interface ${networkInterface.id} is in network ${networkInterface.network_id}, which the entry does not declare. ${why}`,
    }));
}

/** A server without the address that its entry asks for. The API documents no way to attach one. */
function misattached(existing: Existing): Warning[] {
  const { subject, entry, live, world } = existing;
  const wanted = entry.public_ipv4;
  if (wanted === undefined || holdsNamed(existing) || isInCreation(existing)) return [];
  const current = live.addresses.map(({ address }) => address).join(', ') || 'no address';
  if (wanted.ip === undefined) {
    const isLost = live.addresses.length === 0 && !world.isThere(childKey(subject.key, 'public_ipv4'));
    return isLost ? [differs(`the server has ${current}, and its entry asks for one. ${attach}`)] : [];
  }
  const predecessor = predecessorHolding(subject, world);
  const how =
    predecessor === undefined
      ? attach
      : `Server ${predecessor}, which retires, has that address until it is deleted`;
  return [differs(`the server has ${current} instead of ips.${wanted.ip}. ${how}`)];

  function differs(message: string): Warning {
    return { code: 'server_differs', key: subject.key, message };
  }
}

const attach =
  'The API does not document how to attach an address to an existing server: attach it in the client area';
