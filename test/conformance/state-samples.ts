import type { Claim } from '../../src/core/claims.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { TaskId } from '../../src/core/resources.ts';
import type { Answer, Binding, Intent, RecordedWrite, Sends, Stage } from '../../src/core/state.ts';

export const web = 'servers.web-1' as ResourceKey;
export const webFirewall = 'servers.web-1.firewall' as ResourceKey;
export const backend = 'networks.backend' as ResourceKey;

/** A time after every sample's. */
export const later = 1_800_000_000_000;

export function sampleBinding(key: ResourceKey, more: Partial<Binding> = {}): Binding {
  return {
    key,
    kind: 'server',
    id: '17',
    identity: { name: 'web-1' },
    applied: { cores: 4, tags: ['a', null] },
    protect: false,
    keep: false,
    boundAt: 1_700_000_000_000.25,
    ...more,
  };
}

export function sampleClaim(id: string, more: Partial<Claim> = {}): Claim {
  const holder = { is: 'ignored', by: 'operator' } as const;
  return { kind: 'server', id, identity: {}, holder, at: 1_700_000_000_000, ...more };
}

export const sampleAnswer: Answer = {
  at: 1_700_000_000_000,
  id: '3',
  taskId: '5' as TaskId,
  facts: { address: '203.0.113.7' },
  to: 'this_send',
  end: 'reported',
};

export function sampleIntent(
  id: string,
  key: ResourceKey,
  more: Partial<RecordedWrite & Sends> = {},
  stage: Stage = { phase: 'sending' },
): Intent {
  return {
    id,
    key,
    kind: 'server',
    verb: 'create',
    changes: [{ path: 'cores', from: null, to: 4 }],
    incarnation: '0',
    attempt: 0,
    idempotencyKey: `idem-${id}`,
    request: { name: 'create_server', path: {}, body: { name: 'web-1', cores: 4 } },
    sentAs: 'sha256:2',
    basis: 'sha256:1',
    preimage: { ips: [] },
    sends: 1,
    lost: 0,
    detail: '',
    createdAt: 1_700_000_000_000,
    firstSentAt: 1_700_000_000_000,
    firstSentApiAt: 1_700_000_000_000,
    lastSentApiAt: 1_700_000_000_000,
    lastSentAt: 1_700_000_000_000,
    dueAt: 0,
    ...more,
    ...stage,
  };
}
