import { z } from 'zod';
import { member } from '../core/json.ts';
import { type ResourceKey, topLevelKey } from '../core/keys.ts';
import type { Diff, ResourceKind, World } from '../core/kind.ts';
import { type Operation, type OperationId, operationId } from '../core/plan.ts';
import type { ReadPort } from '../core/ports.ts';
import { edit, outside } from '../core/remedy.ts';
import type { Iso, ServerId } from '../core/resources.ts';
import {
  contentOf,
  type DriveEntry,
  type DriveObserved,
  drivesWith,
  isoId,
  isoWanted,
} from './drive-content.ts';
import { blocking, doneIf, observeInside, serverOf, unchanged } from './verdicts.ts';

export const driveSchema = z
  .string()
  .min(1)
  .nullable()
  .describe(
    'The ISO in the drive: a name under isos, or an id. null: an empty drive. To change the drive, vdcsync needs insert_iso and eject_iso in the API profile.',
  );

/**
 * The ISO in a server's drive, or none. The document does not fully describe the operations that insert
 * and eject an ISO, so vdcsync reports a difference, and writes only if the profile
 * enables the operations. @source API §3.3, §4 @assumption A30 @assumption A50
 */
export const drive: ResourceKind<DriveEntry, DriveObserved> = {
  name: 'drive',
  entry: {
    schema: driveSchema,
    children: (field) => [{ suffix: 'iso', value: { iso: isoNamed(field as string | null) }, path: [] }],
    references: ({ iso }) => (iso === null || isoId.test(iso) ? [] : [{ path: [], key: iso as ResourceKey }]),
  },
  billing: { billed: false },
  timing: { deadlineMs: 10 * 60_000, urgency: 1 },

  setting: true,

  observe: (read, subjects, idOf) =>
    observeInside(subjects, idOf, async (server) => ({
      id: String(server),
      shown: await readContent(read, server),
    })),

  diff(subject, observed, world): Diff {
    const { desired, binding, key, parent } = subject;
    if (desired === undefined || !desired.managed) return unchanged;
    const wanted = isoWanted(desired.value, world);
    const content = contentOf(subject, world);
    if (wanted !== undefined && wanted === content) return unchanged;
    const { insert_iso, eject_iso } = world.profile.operations;
    if ((wanted === null ? eject_iso : insert_iso) === undefined) {
      const message = `${textOf(wanted, content)}. The API does not document how to ${wanted === null ? 'eject' : 'insert'} an ISO: ${wanted === null ? 'eject' : 'insert'} it in the client area, or enable \`${wanted === null ? 'eject_iso' : 'insert_iso'}\` in the API profile`;
      return { ...unchanged, warnings: [{ code: 'drive_differs', key, message }] };
    }
    const failed = failedIso(desired.value, world);
    if (failed !== undefined && parent !== undefined) {
      const reason = `the download of ${desired.value.iso} failed: ${failed.reason ?? 'the API gives no reason'}`;
      return blocking('update', 'tainted', reason, [
        edit(parent, { remove: ['iso'], when: 'to leave the drive unchanged' }),
        edit(parent, { choose: { iso: [] }, when: 'to insert another ISO' }),
        outside(`delete ISO ${failed.id}, and add it again`),
      ]);
    }
    const from = content === undefined ? 'unknown' : nameOf(content, world);
    const changes = [{ path: 'iso', from, to: desired.value.iso }];
    const moved =
      observed?.shown !== undefined && binding !== undefined && wanted === member(binding.applied, 'iso');
    return { verdict: { verdict: 'update', changes, cause: moved ? 'drift' : 'file' } };
  },

  writes: {
    request({ subject, world }) {
      const path = { server_id: serverOf(subject, world) };
      const wanted = subject.desired && isoWanted(subject.desired.value, world);
      if (wanted === undefined) throw new Error(`${subject.key} is not in the spec`);
      return wanted === null
        ? { name: 'eject_iso', path }
        : { name: 'insert_iso', path, body: { iso_id: wanted } };
    },

    stale: ({ path }) => ({ lists: ['servers'], server: path.server_id, inside: ['findServer'] }),

    accept: (_answer, request) => ({ id: String(request.path.server_id) }),

    /**
     * If no read shows the drive, an accepted write is believed, and an unanswered one is sent again with the same
     * content.
     */
    async evidence(intent, read) {
      const id = Number(intent.request.path.server_id) as ServerId;
      const shown = await readContent(read, id);
      const sent = member(intent.request.body, 'iso_id') ?? null;
      const accepted = intent.phase === 'accepted' && intent.answer?.end !== 'failed';
      return doneIf(shown === undefined ? accepted : shown === sent, id);
    },
  },

  bind: ({ request }) => ({
    identity: {},
    applied: request === undefined ? null : { iso: (member(request.body, 'iso_id') as string) ?? null },
    keep: false,
  }),

  order: {
    /** An ISO that is deleted leaves its drives first. @source API §3.3 */
    sequence: ejectionsFirst,
  },
};

/** The ISO of an entry that is not managed, if its download failed. vdcsync adds a managed one again. */
function failedIso({ iso }: DriveEntry, { subjects, observed }: World): Iso | undefined {
  const key = iso as ResourceKey;
  if (subjects.get(key)?.desired?.managed !== false) return undefined;
  const { live } = (observed.get(key) ?? {}) as { readonly live?: Iso };
  return live?.download === 'failed' ? live : undefined;
}

/** An id needs no entry. */
function isoNamed(field: string | null): string | null {
  return field === null || isoId.test(field) ? field : topLevelKey('isos', field);
}

async function readContent(read: ReadPort, server: ServerId): Promise<string | null | undefined> {
  const shown =
    (await read.findServer?.(server)) ?? (await read.servers?.())?.find(({ id }) => id === server);
  return shown?.iso;
}

function nameOf(iso: string | null, world: World): string | null {
  return iso === null ? null : (world.keyOf({ kind: 'iso', id: iso }) ?? iso);
}

function textOf(wanted: string | null | undefined, content: string | null | undefined): string {
  const now =
    content === undefined ? 'the ISO in the drive is not known' : `the drive holds ${content ?? 'no ISO'}`;
  return `${now}, and the spec declares ${wanted === null ? 'none' : (wanted ?? 'an ISO that does not exist yet')}`;
}

function ejectionsFirst(
  operations: readonly Operation[],
  world: World,
): ReadonlyMap<OperationId, readonly OperationId[]> {
  return new Map(
    operations
      .filter(({ kind, verb }) => kind === 'iso' && verb === 'delete')
      .map(({ id, target = '' }) => [
        id,
        drivesWith(target, world).map(({ key }) => operationId('update', key)),
      ]),
  );
}
