import { z } from 'zod';
import { bindingBy } from '../core/desired.ts';
import { given, member } from '../core/json.ts';
import { entryKeyOf } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import { command, edit } from '../core/remedy.ts';
import type { Iso } from '../core/resources.ts';
import { grouped } from '../core/world.ts';
import { drivesWith, isLeaving, isoId, letsGo } from './drive-content.ts';
import {
  asAnother,
  freeingName,
  nameExists,
  nameTaken,
  renaming,
  takenName,
  withNameOf,
} from './unique-names.ts';
import {
  blocking,
  cutShort,
  diffExistence,
  done,
  doneIf,
  fromNothing,
  idIn,
  lostOf,
  mayBeRefused,
  newValues,
  notDone,
  recordedIds,
  toNothing,
  unchanged,
  unclear,
} from './verdicts.ts';

/** An image added by URL: the API fetches it, which may fail. */
type IsoEntry = Readonly<z.infer<typeof isoSchema>> & { readonly name: string };

interface IsoObserved {
  readonly id: string | undefined;
  readonly live: Iso | undefined;
  readonly sameName: readonly Iso[];
}

const neededToCreate = ['url'];

const text = z.string().trim();

export const isoSchema = z.strictObject({
  name: text.min(1).max(50).optional().describe('Name in the API. Default: the name of the entry.'),
  url: text
    .min(8)
    .max(2048)
    .optional()
    .describe(
      'URL from which the API downloads the ISO; it must be reachable from the internet. A change is a replacement.',
    ),
});

/** The API fetches it from the internet. @assumption A66 */
function isWebAddress(text: string): boolean {
  return URL.canParse(text.trim()) && /^https?:\/\//i.test(text.trim());
}

export const iso: ResourceKind<IsoEntry, IsoObserved> = {
  name: 'iso',
  entry: {
    schema: isoSchema,
    section: {
      description: "The project's own ISOs, by name.",
      example: { rescue: { url: 'https://mirror.example.com/rescue.iso' } },
      names: {
        pattern: /^[A-Za-z0-9_.-]([A-Za-z0-9 _.-]{0,48}[A-Za-z0-9_.-])?$/,
        text: '1 to 50 letters, digits, spaces, underscores, dots or hyphens, and no space at either end. For another name, write `name:`',
      },
      id: z.string().regex(isoId, "an ISO's id is written like uiso-12"),
      sameName: 'but a project allows each ISO name once',
    },
    neededToCreate,
    check: ({ name, url }) => {
      const isNamed = name.trim().length >= 1 && name.trim().length <= 50;
      const notNamed = `"${name}" cannot be an ISO's name: 1 to 50 characters`;
      const noAddress = '`url` must be an http or https address, such as https://example.com/x.iso';
      return [
        ...(isNamed ? [] : [{ path: ['name'], message: notNamed }]),
        ...(url === undefined || isWebAddress(url) ? [] : [{ path: ['url'], message: noAddress }]),
      ];
    },
    likeness: ({ desired, binding }) => {
      const url = desired?.value.url ?? member(binding?.applied, 'url');
      return typeof url === 'string' ? url : undefined;
    },
  },
  /** @assumption A44 */
  billing: { billed: 'perhaps' },
  timing: { deadlineMs: 6 * 3_600_000, showsWithinMs: 15 * 60_000, urgency: 5 },

  /** A list alone never proves absence. @assumption A8 */
  async observe(read, subjects) {
    const isos = await read.isos();
    const byId = new Map(isos.map((each) => [String(each.id), each]));
    const byName = grouped(isos.map((each) => [each.name.trim(), each]));
    const bound = new Set(subjects.map(({ binding, desired }) => binding?.id ?? desired?.id));
    const unbound = isos.flatMap(({ id }) => (bound.has(id) ? [] : [id]));
    const seen = subjects.map(async ({ key, binding, desired }) => {
      const sameName = withNameOf(desired, byName);
      const named = desired?.managed === false ? sameName[0] : undefined;
      const id = binding?.id ?? desired?.id;
      const live = id === undefined ? named : (byId.get(id) ?? (await read.findIso(id)));
      return [key, { id: live?.id, live, sameName, unbound }] as const;
    });
    return new Map(await Promise.all(seen));
  },

  diff(subject, observed, world) {
    const { desired, binding } = subject;
    const live = observed?.live;
    const found = live && { id: live.id, identity: { name: live.name.trim() } };
    const shared = diffExistence(subject, 'ISO', found, neededToCreate);
    // The remains of a failed download are useless: the ISO is created again, without a question to the operator.
    const useless = live?.download === 'failed' && binding?.tainted !== undefined;
    if (shared !== undefined && !(useless && isTainted(shared))) return shared;
    if (desired === undefined) {
      if (live === undefined) return unchanged;
      const changes = toNothing({ name: live.name });
      return inDrive(subject, live, world) ?? { verdict: { verdict: 'delete', changes } };
    }
    if (live !== undefined) return diffLive(subject, live, observed, world);
    const changes = fromNothing({ name: desired.value.name, url: desired.value.url });
    const taken = takenName(subject, observed?.sameName ?? [], world);
    if (taken !== undefined) {
      const adopt = command('adopt', [subject.key, taken.id], { when: 'if that ISO belongs to this spec' });
      const ways = [bindingBy(desired, adopt), asAnother(subject, taken, 'to add another ISO')];
      return nameExists(subject, taken, taken.id, { world, ways });
    }
    return { verdict: { verdict: 'create', changes, ...lostOf(subject, 'ISO') } };
  },

  writes: {
    request({ subject, operation }) {
      if (operation.verb === 'delete') return { name: 'delete_iso', path: { id: operation.target ?? '' } };
      const { url = '', name = '' } = subject.desired?.value ?? {};
      return { name: 'add_iso', path: {}, body: { url, name } };
    },

    stale: () => ({ lists: ['isos', 'findIso'] }),

    preimage: async ({ subject }, read) => {
      const isos = await read.isos();
      const alike = isos.filter((each) => each.name.trim() === subject.desired?.value.name);
      return { isos: isos.map(({ id }) => id), alike: alike.map(({ id }) => id) };
    },

    /** The id comes at once, in either form of the answer. @assumption A23 */
    accept: (answer) => {
      const id = idIn(answer.data);
      return isoId.test(id ?? '') ? given({ id }) : {};
    },

    async evidence(intent, read, known) {
      if (intent.verb === 'delete') {
        const id = String(intent.request.path.id);
        const isThere = (await read.findIso(id)) !== undefined;
        return doneIf(!isThere && (await read.isos()).every((each) => each.id !== id), id);
      }
      const { answer } = intent;
      if (answer?.id !== undefined) {
        const live = await read.findIso(answer.id);
        if (live === undefined) return { verdict: 'not_done', gone: true };
        const another = answer.to !== 'this_send' && live.name.trim() !== member(intent.request.body, 'name');
        return another ? notDone : judge(live);
      }
      const before = recordedIds(intent.preimage.isos);
      const alike = recordedIds(intent.preimage.alike);
      const name = member(intent.request.body, 'name');
      const isos = await read.isos();
      const managed = known('iso');
      const matches = isos.filter(
        (each) => !alike.has(each.id) && !managed.has(each.id) && each.name.trim() === name,
      );
      const [one, another] = matches;
      if (one === undefined) {
        const listed = isos.map(({ id }) => id);
        const isThere = async (id: string) => (await read.findIso(id)) !== undefined;
        return (await cutShort('ISOs', listed, [...before, ...managed], isThere)) ?? notDone;
      }
      if (another === undefined) return judge(one);
      return unclear(`${matches.length} new ISOs have that name`, matches);
    },
  },

  bind: ({ subject, id, request, world }) => {
    const sent = request?.body;
    const seen = world.observed.get(subject.key) as IsoObserved | undefined;
    const live = seen?.id === id ? seen.live : undefined;
    const { name: declared, url } = subject.desired?.value ?? {};
    const name = member(sent, 'name') ?? live?.name ?? declared;
    // No read shows the URL of an adopted ISO: that of the entry counts, so that a later edit of it is a change.
    return {
      identity: typeof name === 'string' ? { name: name.trim() } : {},
      applied: sent ?? (url === undefined ? null : { url }),
      keep: false,
    };
  },

  creation: {
    /** No read shows the URL of an ISO, so only its name distinguishes it. */
    unmanaged: ({ key, kind }, { observed, keyOf }) =>
      (observed.get(key)?.unbound ?? []).flatMap((id) => (keyOf({ kind, id }) === undefined ? [{ id }] : [])),
  },

  order: {
    /** A drive loses its ISO with its server. @source API §3.3 */
    goneBefore(subject, verb, world) {
      if (verb === 'create') return freeingName(subject, world);
      const { binding } = subject;
      const drives = binding === undefined ? [] : drivesWith(binding.id, world);
      return drives.flatMap(({ parent }) =>
        parent !== undefined && isLeaving(parent, world) ? [parent] : [],
      );
    },
  },
};

/** @assumption A24 */
function judge(live: Iso) {
  switch (live.download) {
    case 'failed':
      return { verdict: 'failed', id: live.id, detail: live.reason ?? 'the API gives no reason' } as const;
    case 'pending':
      return { verdict: 'pending', id: live.id } as const;
    case 'ready':
    case 'unknown':
      return done(live.id);
  }
}

function isTainted({ verdict }: Diff): boolean {
  return verdict.verdict === 'blocked' && verdict.code === 'tainted';
}

/** The ISO cannot be deleted while a drive holds it, and the spec does not ask for its ejection. @source API §3.3 */
function inDrive({ key, desired }: Subject, { id }: Iso, world: World): Diff | undefined {
  // If only the operator can eject the ISO, only the API knows whether the drive still holds it.
  if (world.profile.operations.eject_iso === undefined) return undefined;
  const drive = drivesWith(id, world).find((each) => !letsGo(each, id, world));
  if (drive === undefined) return undefined;
  const verb = desired === undefined ? 'delete' : 'update';
  const { parent: server = key } = drive;
  return blocking(verb, 'iso_in_use', `${key} is in the drive of ${server}`, [
    edit(entryKeyOf(server), { set: { iso: null }, next: [command('apply')] }),
  ]);
}

function diffLive(
  subject: Subject<IsoEntry>,
  live: Iso,
  observed: IsoObserved | undefined,
  world: World,
): Diff {
  const { desired, binding, key } = subject;
  const { url } = desired?.value ?? {};
  const { asked, along } = renaming(subject, live.name);
  const was = member(binding?.applied, 'url');
  const changes = [
    ...asked,
    ...(url === undefined || was === undefined || url === was ? [] : [{ path: 'url', from: was, to: url }]),
  ];
  const failed = live.download === 'failed';
  if (!failed && changes.length === 0) return unchanged;
  const reason = failed
    ? `its download failed: ${live.reason ?? 'the API gives no reason'}`
    : `${changes.map(({ path }) => path).join(' and ')} cannot be changed in place`;
  if (url === undefined) {
    const why = `${reason}, and an entry without \`url\` cannot be added again`;
    return blocking('update', 'url_missing', why, [edit(key, { choose: { url: [] } })]);
  }
  const all = [...along, ...changes];
  return (
    inDrive(subject, live, world) ??
    nameTaken(subject, observed, all, world) ?? {
      verdict: { verdict: 'replace', changes: all, reason, allowed: true, order: 'delete_first' },
      consequences: failed ? [] : mayBeRefused(subject, 'add_iso', newValues(changes), world),
    }
  );
}
