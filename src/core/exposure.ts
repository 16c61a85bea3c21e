import { isUnconfirmed, partsOf } from './intent.ts';
import type { ResourceKey } from './keys.ts';
import type { Subject, World } from './kind.ts';
import { factsOf } from './kind-facts.ts';
import type { Warning } from './plan.ts';
import type { Intent } from './state.ts';

/** The enabled firewall that the spec declares for a server. A disabled firewall filters nothing, as the spec asks. */
export function firewallOf(world: Pick<World, 'childrenOf'>, server: ResourceKey): Subject | undefined {
  return world
    .childrenOf(server)
    .find(
      ({ kind, desired }) =>
        factsOf(kind).endsExposure === true && desired?.managed === true && desired.value.enabled === true,
    );
}

/** The facts about a server that the last refresh does not show. */
export interface Since {
  readonly intents: readonly Intent[];
  /** Keys whose operation has ended well since the refresh. */
  readonly done?: ReadonlySet<ResourceKey>;
}

/**
 * The exposed servers: each has a public address and no firewall in force, and the spec declares a firewall. The cause
 * does not matter. Every output asks this function.
 */
export function exposedServers(world: World, { intents, done }: Since): readonly Warning[] {
  const open = new Map(intents.map((intent) => [intent.key, intent]));
  return world.serverSubjects().flatMap(({ key }): readonly Warning[] => {
    const firewall = firewallOf(world, key);
    if (firewall === undefined || done?.has(firewall.key)) return [];
    // The API has accepted the firewall.
    if (open.get(firewall.key)?.phase === 'accepted') return [];
    const message = world.idOf(key) === undefined ? beforeItsId(open.get(key)) : seen(world, key, firewall);
    return message === undefined ? [] : [{ code: 'exposed', key, message }];
  });
}

const isExposed =
  'the server has a public address, and its firewall is not in force: all its ports are open to the internet';
const mayBeExposed = 'the server may exist without its firewall: all its ports would be open to the internet';

function seen(world: World, key: ResourceKey, firewall: Subject): string | undefined {
  const server = world.observed.get(key);
  // A server that was bound after the refresh is new.
  if (server === undefined) return isPublicByFile(world, key) ? isExposed : undefined;
  if (server.id === undefined) return undefined;
  const isPublic = world.ipsOf(server.id).length > 0 || (server.cards ?? []).some((card) => card.public);
  return isPublic && world.observed.get(firewall.key)?.inForce !== true ? isExposed : undefined;
}

function isPublicByFile(world: World, key: ResourceKey): boolean {
  return world.subjects.get(key)?.desired?.value.public_ipv4 !== undefined;
}

/** The creation has not ended. A server that the API answered as created may be gone if reads did not find it since. */
function beforeItsId(creation: Intent | undefined): string | undefined {
  if (creation?.verb !== 'create') return undefined;
  const { answer } = partsOf(creation);
  const isAnswered = creation.phase === 'accepted' && creation.notSeenAt === undefined;
  if (isAnswered && answer?.id !== undefined) return isExposed;
  return answer?.id !== undefined || isUnconfirmed(creation) ? mayBeExposed : undefined;
}
