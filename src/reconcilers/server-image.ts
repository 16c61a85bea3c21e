import { z } from 'zod';
import { member } from '../core/json.ts';
import { type ResourceKey, takeApart, topLevelKey } from '../core/keys.ts';
import type { Diff, ResourceKind, Subject, World } from '../core/kind.ts';
import { command, edit, outside } from '../core/remedy.ts';
import { blocking, fromNothing, idIn, unchanged } from './verdicts.ts';

/**
 * An image taken from a server, once. Neither its payload nor a list of images is documented:
 * vdcsync takes an image only if the profile enables the operation, and believes that a bound image exists.
 * After a lost answer the operator must decide. @source API §4 @assumption A30 @assumption A51
 */
type ServerImageEntry = Readonly<z.infer<typeof serverImageSchema>> & { readonly name: string };

interface ServerImageObserved {
  readonly id: string | undefined;
}

export const serverImageSchema = z.strictObject({
  name: z.string().trim().min(1).optional().describe('Name in the API. Default: the name of the entry.'),
  server: z
    .string()
    .min(1)
    .optional()
    .describe('Name of an entry under servers. vdcsync takes one image of this server.'),
});

export const serverImage: ResourceKind<ServerImageEntry, ServerImageObserved> = {
  name: 'server_image',
  entry: {
    schema: serverImageSchema,
    section: {
      description:
        'Images taken from servers, by name. vdcsync takes them only if the API profile has take_server_image.',
      example: { golden: { server: 'web-1' } },
      names: {
        pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
        text: 'up to 63 letters, digits, underscores, dots or hyphens, the first one a letter or digit. For another name, write `name:`',
      },
      id: z.union([z.string().min(1), z.int().min(1)]),
      sameName: 'so vdcsync may not be able to distinguish their images',
    },
    neededToCreate: ['server'],
    references: ({ server }) =>
      server === undefined ? [] : [{ path: ['server'], key: topLevelKey('servers', server) }],
  },
  billing: { billed: true },
  timing: { deadlineMs: 6 * 3_600_000, urgency: 2 },

  observe: async (_read, subjects) =>
    new Map(subjects.map(({ key, binding, desired }) => [key, { id: binding?.id ?? desired?.id }])),

  diff(subject, _observed, world): Diff {
    const { key, desired, binding } = subject;
    if (desired === undefined) return stays(subject);
    if (!desired.managed) return release(subject);
    if (binding !== undefined) return diffTaken(subject, desired.value, world);
    if (desired.id !== undefined) {
      const reason = `\`id: ${desired.id}\` in the spec, which no read can verify`;
      return { verdict: { verdict: 'adopt', target: desired.id, reason } };
    }
    const server = serverOf(desired.value);
    if (server !== undefined && isPackaged(world.subjects.get(server))) {
      const reason = `the API takes no image from a packaged graphics-card server such as ${server}`;
      const ways = [edit(key, { choose: { server: [] } }), edit(key, { entry: 'remove' })];
      return blocking('create', 'server_type_not_supported', reason, ways);
    }
    if (world.profile.operations.take_server_image === undefined) {
      const message =
        'the API does not document how to take an image: take it in the client area and write its `id:`, or enable `take_server_image` in the API profile';
      return { ...unchanged, warnings: [{ code: 'server_image_not_taken', key, message }] };
    }
    return {
      verdict: { verdict: 'create', changes: fromNothing({ name: desired.value.name, server }) },
      price: { unknown: 'the price of a server image is not shown' },
    };
  },

  writes: {
    request({ subject, world }) {
      const { name, server } = subject.desired?.value ?? {};
      const id = server === undefined ? undefined : world.idOf(topLevelKey('servers', server));
      if (name === undefined || id === undefined) throw new Error(`${subject.key} is not in the spec`);
      return { name: 'take_server_image', path: {}, body: { server_id: Number(id), name } };
    },

    stale: () => ({}),

    accept: (answer, request) => ({ id: idIn(answer.data) ?? (member(request.body, 'name') as string) }),

    /** Once the write is blocked, the id comes from the operator. */
    async evidence({ answer, phase }) {
      const isBlocked = phase === 'blocked';
      if (answer?.id !== undefined && (isBlocked || answer.end !== 'failed'))
        return { verdict: 'done', id: answer.id, certain: !isBlocked };
      return { verdict: 'unseen', reason: 'no documented read shows server images', candidates: [] };
    },
  },

  bind({ subject, request, asked }) {
    const { name, server } = asked ?? subject.desired?.value ?? {};
    const from = {
      server: server ?? null,
      server_id: (member(request?.body, 'server_id') as number) ?? null,
    };
    const applied = request === undefined ? null : from;
    return { identity: name === undefined ? {} : { name }, applied, keep: false };
  },
};

function serverOf({ server }: ServerImageEntry): ResourceKey | undefined {
  return server === undefined ? undefined : topLevelKey('servers', server);
}

/** @source API §4 */
function isPackaged(server: Subject | undefined): boolean {
  const bought = member(member(server?.binding?.applied, 'body'), 'gpu_package');
  return (bought ?? member(server?.desired?.value, 'gpu_package')) !== undefined;
}

/** The keys that the server has had: an image keeps the name that its server had. */
function namesOf(server: ResourceKey, { subjects }: World): readonly ResourceKey[] {
  const { desired, binding } = subjects.get(server) ?? {};
  return [server, ...(binding?.formerKeys ?? []), ...(desired?.moved === undefined ? [] : [desired.moved])];
}

/** The entry names the server that the image was taken from, by its present key, or the image alone. */
function fromServer(image: Subject['binding'], taken: ResourceKey, world: World): Parameters<typeof edit>[1] {
  const { key } =
    world.serverSubjects().find((each) => each.desired && namesOf(each.key, world).includes(taken)) ?? {};
  return key === undefined
    ? { set: { id: image?.id }, remove: ['server'] }
    : { set: { server: takeApart(key).name } };
}

/** The server of an image never changes, even after the server is gone. No read shows the name of an adopted image. */
function diffTaken({ key, desired, binding }: Subject, entry: ServerImageEntry, world: World): Diff {
  const name = binding?.identity.name;
  const [from, id] = [member(binding?.applied, 'server'), member(binding?.applied, 'server_id')];
  const server = serverOf(entry);
  const same =
    from === undefined ||
    server === undefined ||
    String(id) === world.idOf(server) ||
    namesOf(server, world).includes(topLevelKey('servers', String(from)));
  const taken = (binding?.applied ?? null) !== null;
  const called = !taken || name === undefined || desired?.named === false || name === entry.name;
  if (same && called) return unchanged;
  const reason = `the image was taken as "${name}"${from === undefined ? '' : ` from servers.${from}`}: for another image, add a new entry`;
  return blocking('update', 'immutable', reason, [
    edit(key, same ? { set: { name } } : fromServer(binding, topLevelKey('servers', String(from)), world)),
    outside('add a new entry under `server_images`'),
  ]);
}

/**
 * The API documents no deletion, so vdcsync warns until an operator releases the image: no read would show it again.
 */
function stays({ key, binding }: Subject): Diff {
  if (binding === undefined) return unchanged;
  const message = `its entry has left the spec. Server image ${binding.id} stays, and may be billed: the API does not document how to delete it`;
  const remedies = [
    edit(key, { entry: 'restore' }),
    outside('delete the image in the client area', { next: [command('forget', [key])] }),
  ];
  return { ...unchanged, warnings: [{ code: 'no_longer_declared', key, message, remedies }] };
}

function release({ key, binding }: Subject): Diff {
  if (binding === undefined) return unchanged;
  const reason = `server image ${binding.id} is no longer managed, and stays unchanged`;
  return {
    verdict: { verdict: 'release', gone: false, reason },
    leftBilled: [`server image ${binding.id} of ${key}, which may be billed: delete it in the client area`],
  };
}
