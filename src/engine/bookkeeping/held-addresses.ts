import type { ResourceKey } from '../../core/keys.ts';
import type { Subject } from '../../core/kind.ts';
import type { Ip } from '../../core/resources.ts';
import type { Intent } from '../../core/state.ts';
import { nameOf, type Vouched } from '../../plan/strangers.ts';
import { wasNamed } from '../intents/owner.ts';
import type { Run } from '../run.ts';

/**
 * Addresses of this file's servers that no key stands for, and that an entry of `ips` may have
 * bought: a server takes such a one where its entry names it, and with `{reuse: true}`. What a server
 * was given by the very answer that this state has to its creation, the state has seen come.
 */
export async function heldAddresses(run: Run, vouched: Vouched): Promise<readonly Ip[]> {
  const { world } = run;
  const known = new Set(vouched.addresses);
  const held: Ip[] = [];
  for (const subject of world.subjectsOf('server')) {
    const ips = world
      .ipsOf(subject.binding?.id ?? subject.desired?.id ?? '')
      .filter((ip) => world.isNobodys(ip) && !known.has(nameOf(ip)));
    if (ips.length > 0 && (await mayBeAnEntrys(run, subject))) held.push(...ips);
  }
  return held;
}

async function mayBeAnEntrys(run: Run, { key, desired, binding }: Subject): Promise<boolean> {
  const wanted = addressIn(desired?.value);
  if (!('ip' in wanted || 'reuse' in wanted)) return false;
  const made = await creationSeen(run, key, binding?.id);
  return made === undefined || ('ip' in wanted && 'ip' in addressIn(made.entry));
}

function addressIn(entry: unknown): object {
  return (entry as { readonly public_ipv4?: object } | undefined)?.public_ipv4 ?? {};
}

async function creationSeen(
  { deps }: Run,
  key: ResourceKey,
  id: string | undefined,
): Promise<Intent | undefined> {
  const past = await deps.store.intents({ key, limit: 50 });
  const made = past.find(({ verb, outcome }) => verb === 'create' && outcome === 'done');
  return made !== undefined && id !== undefined && wasNamed(made, id) ? made : undefined;
}
