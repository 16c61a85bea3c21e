import type { ResourceKey } from '../core/keys.ts';
import type { Subject, World } from '../core/kind.ts';
import type { ServerId } from '../core/resources.ts';

/** Observes the resources inside servers in parallel; without a live server there is nothing to observe. */
export async function observeInside<Value, Observed>(
  subjects: readonly Subject<Value>[],
  idOf: (key: ResourceKey) => string | undefined,
  look: (server: ServerId, subject: Subject<Value>) => Promise<Observed | undefined>,
): Promise<ReadonlyMap<ResourceKey, Observed>> {
  const seen = await Promise.all(
    subjects.map(async (subject) => {
      const server = subject.parent === undefined ? undefined : idOf(subject.parent);
      const found = server === undefined ? undefined : await look(Number(server) as ServerId, subject);
      return found && ([subject.key, found] as const);
    }),
  );
  return new Map(seen.filter((each) => each !== undefined));
}

/** The live id of the server that contains a resource. */
export function serverOf({ parent }: Subject, world: World): ServerId {
  return Number(parent && world.idOf(parent)) as ServerId;
}
