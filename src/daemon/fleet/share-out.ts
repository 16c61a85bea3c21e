import { hash } from 'node:crypto';

/**
 * Which replica works on which project. All replicas compute the same result from the same lists, so no replica has to
 * assign projects: each project goes to the replica with the highest hash of both names that is not full yet
 * (rendezvous hashing with bounded loads). No share is larger than an equal share, rounded up, and a replica that joins
 * or leaves moves few projects of other replicas.
 *
 * Replicas whose lists differ for a moment may both take a project, or none of them takes it. Then the lock of the
 * project's state decides, and the lists become equal with the next heartbeat.
 */
export function shareOut(
  projects: readonly number[],
  replicas: readonly string[],
): ReadonlyMap<number, string> {
  const most = Math.ceil(projects.length / Math.max(1, replicas.length));
  const left = new Map(replicas.map((replica) => [replica, most]));
  const shares = new Map<number, string>();
  for (const project of projects.toSorted((a, b) => a - b)) {
    let [best, bestScore]: [string | undefined, string] = [undefined, ''];
    for (const [replica, places] of left) {
      if (places === 0) continue;
      const score = left.size === 1 ? '0' : hash('sha1', `${replica} ${project}`);
      if (score > bestScore) [best, bestScore] = [replica, score];
    }
    if (best === undefined) continue;
    shares.set(project, best);
    left.set(best, (left.get(best) ?? 1) - 1);
  }
  return shares;
}
