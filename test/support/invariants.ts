import { expect } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import type { Intent, StateStore } from '../../src/core/state.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';
import { expectReplayed } from '../conformance/state-checks.ts';
import type { Sent } from './rig.ts';

/** What the checkers look at: the world as it is, and the state as it stands. */
export interface Evidence {
  readonly emulator: Emulator;
  readonly store: StateStore;
  readonly sent: readonly Sent[];
}

const hour = 3_600_000;
const all = { limit: 1_000_000 };

/**
 * The invariants that can be told after the fact, numbered as in docs/contributing/proof.md. Each gives
 * its violations in words; `expectInvariants` wants none of any. The state itself refuses a second key of a resource (2).
 */
const checkers: Readonly<Record<string, (evidence: Evidence) => Promise<readonly string[]>>> = {
  '3: one creation a key and incarnation, unless the earlier is gone': async ({ emulator, store }) => {
    const intents = new Map((await store.intents(all)).map((each) => [each.idempotencyKey, each]));
    const alive = aliveIds(emulator);
    const living = new Map<string, string[]>();
    for (const { idempotencyKey, kind, id } of emulator.world.executions) {
      const intent = intents.get(idempotencyKey ?? '');
      if (intent === undefined || !alive.has(`${kind} ${id}`)) continue;
      const name = `${intent.key}#${intent.incarnation}`;
      living.set(name, [...(living.get(name) ?? []), `${kind} ${id}`]);
    }
    return [...living].flatMap(([name, ids]) =>
      ids.length > 1 ? [`${name} lives as ${ids.join(' and ')}`] : [],
    );
  },

  '4: every write has a key, and a key has one request beside its probe': async ({ sent }) => {
    const sentAs = new Map<string, string>();
    return writes(sent).flatMap((each) => {
      const { key, method, path, body } = each;
      if (key === undefined || !/^[\x20-\x7e]{8,255}$/.test(key))
        return [`${method} ${path} with the key ${key}`];
      if (isSpare(each)) return isProbe(each) ? [] : [`${method} ${path} ${body} with the spare key ${key}`];
      const use = `${key} ${isProbe(each) ? 'probe' : 'request'}`;
      const what = `${method} ${path} ${body}`;
      const before = sentAs.get(use) ?? what;
      sentAs.set(use, what);
      return before === what ? [] : [`${use} was ${before} and then ${what}`];
    });
  },

  '5: no send without a durable intent before it': async ({ sent, store }) => {
    const intents = new Map((await store.intents(all)).map((each) => [each.idempotencyKey, each]));
    return writes(sent).flatMap((each) => {
      const { key, method, path } = each;
      const intent = intents.get(key ?? '');
      if (isSpare(each) || (intent !== undefined && !isProbe(each))) return [];
      // Probes are made of creations alone.
      return intent?.verb === 'create' ? [] : [`${method} ${path} with the key ${key}`];
    });
  },

  '6: no resend of an old key, and no second intent before the first has ended': async ({ sent, store }) => {
    const first = new Map<string, number>();
    const old = writes(sent).flatMap(({ key, at }) => {
      const firstAt = first.get(key ?? '') ?? at;
      first.set(key ?? '', firstAt);
      return at - firstAt >= 23 * hour ? [`${key} was sent after ${(at - firstAt) / hour} h`] : [];
    });
    const open = new Map<string, Intent>();
    const overlapping = [...(await store.intents(all))].reverse().flatMap((intent) => {
      const before = open.get(intent.key);
      open.set(intent.key, intent);
      return before !== undefined && before.phase !== 'closed'
        ? [`${intent.key} has ${before.id} and ${intent.id}`]
        : [];
    });
    return [...old, ...overlapping];
  },

  '7: no write in another project': async ({ emulator, store }) => {
    const { projectId } = await store.info();
    return emulator.requests.flatMap(({ method, project, url }) =>
      method === 'GET' || project === null || project === projectId ? [] : [`${url} in project ${project}`],
    );
  },

  '8: nothing is deleted that was not bound': async ({ sent, store }) => {
    const journal = await store.journal(all);
    const bound = new Set(
      journal
        .filter(({ event }) => event === 'bound')
        .map(({ data }) => (data as { readonly binding: { readonly id: string } }).binding.id),
    );
    return writes(sent).flatMap(({ method, path }) => {
      const id = decodeURIComponent(path.split('/').at(-1) ?? '');
      // What is ejected stays.
      const deletes = method === 'DELETE' && !path.endsWith('/iso');
      return !deletes || bound.has(id) ? [] : [`DELETE ${path}`];
    });
  },

  '9: no more than 20 writes and 60 reads in any 60 s': async ({ sent }) => {
    const arrived = sent.filter(({ unsent }) => !unsent);
    const limits = [
      { name: 'reads', most: 60, requests: arrived.filter(({ method }) => method === 'GET') },
      { name: 'writes', most: 20, requests: writes(arrived) },
    ];
    return limits.flatMap(({ name, most, requests }) => {
      const next = (index: number) => requests[index + most]?.at ?? Number.POSITIVE_INFINITY;
      return requests.some(({ at }, index) => next(index) - at < 60_000) ? [name] : [];
    });
  },
};

/** Everything that has to hold whatever went wrong. */
export async function expectInvariants(evidence: Evidence): Promise<void> {
  for (const [name, check] of Object.entries(checkers)) expect(await check(evidence), name).toEqual([]);
  // 10: the journal replays to the state.
  await expectReplayed(evidence.store);
}

/**
 * 1: what is billed is bound, or somebody was told of it.
 *
 * @param told what an operator was shown: plans' blocked entries and warnings, results
 */
export async function expectAccounted({ emulator, store }: Evidence, told: string): Promise<void> {
  const bindings = await store.bindings();
  const bound = new Set(bindings.map(({ kind, id }) => `${kind} ${id}`));
  const addresses = new Map(
    emulator.world.projects.flatMap(({ ips }) => ips.map(({ id, address }) => [String(id), address])),
  );
  const unseen = emulator.billed().filter(({ kind, id, serverId }) => {
    // Backups outlive what took them, and the plan that deleted their server said so.
    if (kind === 'backup') return false;
    const names = [id, addresses.get(id) ?? id, ...(serverId === null ? [] : [String(serverId)])];
    const ours = bound.has(`${kind} ${id}`) || (kind === 'ip' && bound.has(`server ${serverId}`));
    return !ours && !names.some((name) => told.includes(name));
  });
  expect(unseen, '1: billed, and neither bound nor told').toEqual([]);
}

/** 13: the next plan is empty. */
export function expectFixedPoint(plan: Plan): void {
  expect({ operations: plan.operations, blocked: plan.blocked }, '13: the next plan is empty').toEqual({
    operations: [],
    blocked: [],
  });
}

/** A refused request that asks a key, and cannot be carried out. */
export function isProbe({ body }: { readonly body: string | null | undefined }): boolean {
  return body?.includes('"vdcsync_probe":') === true;
}

/** One of the refused requests that show how the API treats keys. */
export function isSpare({ key }: Pick<Sent, 'key'>): boolean {
  return key?.startsWith('vdcsync-spare-') === true;
}

function writes(sent: readonly Sent[]): readonly Sent[] {
  return sent.filter(({ method }) => method !== 'GET');
}

/** The live resources, by kind and id. */
export function aliveIds({ world }: Emulator): ReadonlySet<string> {
  return new Set(
    world.projects.flatMap((project) => [
      ...project.servers.flatMap(({ id, interfaces: cards }) => [
        `server ${id}`,
        ...cards.map((card) => `card ${id}/${card.id}`),
      ]),
      ...project.ips.map(({ id }) => `ip ${id}`),
      ...project.networks.map(({ id }) => `network ${id}`),
      ...project.isos.map(({ id }) => `iso ${id}`),
      ...project.backups.map(({ id, serverId }) => `backup ${serverId}/${id}`),
      ...project.images.map(({ id }) => `image ${id}`),
    ]),
  );
}
