import { parseKey, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Binding, Intent } from '../core/state.ts';
import type { Emulator } from '../emulator/emulator.ts';
import { seenIp } from '../emulator/visibility.ts';
import type { Execution, Project } from '../emulator/world.ts';
import type { KeyLines } from './spec-file.ts';

/** Sorts of live things that have an id of their own. */
export type ResourceSort = 'server' | 'ip' | 'network' | 'iso';
export const sorts: readonly ResourceSort[] = ['server', 'ip', 'network', 'iso'];

/** How long the API keeps an answer under its key. @source API §8 */
const keyLifeMs = 24 * 3_600_000;

/** The line of a resource, or of the server that it is a part of, and the name of the part. */
interface MadeFor {
  readonly owner: string;
  readonly part: string;
}

/** A live thing; ids may come round again, births do not. */
export interface Birth {
  readonly number: number;
  readonly sort: ResourceSort;
  readonly id: string;
  /** Made behind the controllers' backs. */
  readonly isForeign: boolean;
}

/**
 * The facts that the simulation knows and the controllers do not: who made each resource, and whether it
 * still exists. The rules measure the conclusions of the controllers against these facts.
 */
export interface ResourceHistory {
  /** The write that an idempotency key identifies. It is the same write for every controller with the same spec. */
  readonly writes: ReadonlyMap<string, Intent>;
  /** `lines`: of the spec that the write is for. */
  recordWrite(intent: Intent, lines: KeyLines): void;
  /** A request of the write reaches the API. */
  recordRequest(intent: Intent): void;
  /** Records the resources that were created or deleted since the last call. `isForeign`: another program or user made them. */
  look(isForeign: boolean): void;
  /** How many resources there have been. */
  readonly births: number;
  birthOf(sort: ResourceSort, id: string): Birth | undefined;
  /** The resource that existed when the binding was made; `undefined` for kinds without ids of their own. */
  bound(binding: Binding): void;
  birthBoundAs(binding: Binding): Birth | undefined;
  /**
   * Creations that took effect for a line, oldest first, as far as its resources have not been given to another line of
   * the same spec. A part of a server is given with its server.
   */
  executionsOf(line: string): readonly Execution[];
  /** An operator, or the spec, has given a resource to a line. */
  give(birth: Birth, line: string): void;
  /** The line that the server was given to in the spec of `line`. */
  lineGiven(server: string, line: string): string | undefined;
  /**
   * The line of a resource, as the spec of `line` has it. `undefined`: no controller made the resource, and no line was
   * given it.
   */
  lineOf(birth: Birth, line: string): string | undefined;
  executionsUnder(idempotencyKey: string): readonly Execution[];
  /** The executions that a state with this intent can know of: the API had not forgotten the key at its first request. */
  knowableUnder(intent: Intent): readonly Execution[];
  /** The intent that had the key when the creation took effect. Another state may use the key for another request later. */
  writeOf(execution: Execution): Intent | undefined;
  /** That was another intent, such as that of another state. */
  isOfAnother(execution: Execution, intent: Intent): boolean;
  isLive(execution: Execution): boolean;
  /** An operator, or the spec, released the resource of the key. */
  released(key: ResourceKey, id: string, kind?: string): void;
  /** An operator has given up a creation, no matter how it ended. */
  releasedUnder(idempotencyKey: string): void;
  wasReleased(sort: ResourceSort, id: string): boolean;
  /** The key that had the resource when it was released last. */
  releasedFrom(sort: ResourceSort, id: string): ResourceKey | undefined;
  /** An operator has declared that the resource, with its parts, does not belong to this spec. */
  dismiss(birth: Birth): void;
  /** The key under which a controller made it. */
  madeUnder(birth: Birth): ResourceKey | undefined;
  /** The key that its line has now, if a controller made it. */
  makerOf(sort: ResourceSort, id: string): ResourceKey | undefined;
  isExcused(execution: Execution): boolean;
  /** An operator has given up its creation, or the resource. */
  isGivenUp(birth: Birth): boolean;
  /**
   * A server that no list of addresses shows now, and no number of servers in a network. A state that is
   * `behind` does not ask for that number. @source API §4
   */
  isUnseen(server: string, behind: boolean): boolean;
  /** Another user takes the server's address away. Only that address made the server visible. */
  bare(server: string): void;
  isBare(server: string): boolean;
  /** An operator has made a foreign object this spec's. */
  adopted(birth: Birth): void;
  isAdopted(birth: Birth): boolean;
}

/** `serversAreListed`: the profile knows `GET /servers`. */
export function createResourceHistory(
  emulator: Emulator,
  projectId: number,
  serversAreListed: boolean,
  lines: () => KeyLines,
): ResourceHistory {
  const writes = new Map<string, Intent>();
  /** The first request of each intent, by its id, in the emulator's time. */
  const requestedAt = new Map<string, number>();
  const living = new Map<string, Birth>();
  const boundBirths = new Map<string, Birth>();
  const excused = new Set<Execution>();
  const dismissed = new Set<number>();
  /** The resource that each creation made. A creation without a visible resource waits in `unborn`. */
  const madeBirths = new Map<Execution, number>();
  const unborn = new Set<Execution>();
  let executionsSeen = 0;
  /** The line for which each key was last used, and each creation was made. */
  const keyLines = new Map<string, MadeFor>();
  const madeLines = new Map<Execution, MadeFor>();
  /** The line that a resource was given to, by the spec of the line and the birth: two specs may have one resource. */
  const given = new Map<string, string>();
  const givenIn = (line: string, birth: number | undefined) => given.get(`${specOf(line)}${birth}`);
  const madeBy = new Map<Execution, Intent>();
  /** The key that had each released resource, where one had it. */
  const releases = new Map<number, ResourceKey | undefined>();
  const adoptions = new Set<number>();
  const bared = new Set<number>();
  let births = 0;

  const project = (): Project => {
    const found = emulator.world.projects.find(({ id }) => id === projectId);
    if (found === undefined) throw new Error(`no project ${projectId}`);
    return found;
  };
  const listed = (sort: ResourceSort): readonly { readonly id: number | string }[] => {
    const { servers, ips, networks, isos } = project();
    return { server: servers, ip: ips, network: networks, iso: isos }[sort];
  };
  const executions = () => emulator.world.executions.filter((each) => each.projectId === projectId);

  const history: ResourceHistory = {
    writes,
    get births() {
      return births;
    },
    recordWrite(intent, of) {
      writes.set(intent.idempotencyKey, intent);
      const line = of.nameOf(intent.key);
      const { parent } = takeApart(intent.key);
      // A question to a key creates nothing.
      if (intent.sends > 0) of.use(parent ?? intent.key);
      const owner = parent === undefined || !isPart(intent.kind) ? line : of.nameOf(parent);
      keyLines.set(intent.idempotencyKey, { owner, part: line.slice(owner.length) });
    },
    recordRequest({ id }) {
      if (!requestedAt.has(id)) requestedAt.set(id, emulator.now());
    },
    look(isForeign) {
      const all = emulator.world.executions;
      for (; executionsSeen < all.length; executionsSeen++) {
        const made = all[executionsSeen] as Execution;
        unborn.add(made);
        const line = keyLines.get(made.idempotencyKey ?? '');
        if (line !== undefined) madeLines.set(made, line);
        const write = writes.get(made.idempotencyKey ?? '');
        if (write !== undefined) madeBy.set(made, write);
      }
      // A resource that a task creates belongs to the request that began the task, no matter who acts meanwhile.
      const expected = new Set([...unborn].map(({ kind, id }) => `${kind} ${id}`));
      for (const sort of sorts) {
        const ids = new Set(listed(sort).map(({ id }) => String(id)));
        for (const [name, birth] of living)
          if (birth.sort === sort && !ids.has(birth.id)) living.delete(name);
        for (const id of ids) {
          const name = `${sort} ${id}`;
          if (living.has(name)) continue;
          living.set(name, { number: births++, sort, id, isForeign: isForeign && !expected.has(name) });
        }
      }
      for (const each of unborn) {
        if (each.id === null) continue;
        unborn.delete(each);
        const birth = living.get(isPart(each.kind) ? serverOf(each) : `${each.kind} ${each.id}`);
        if (birth !== undefined) madeBirths.set(each, birth.number);
      }
    },
    birthOf: (sort, id) => living.get(`${sort} ${id}`),
    bound(binding) {
      const birth = isSort(binding.kind) ? living.get(`${binding.kind} ${binding.id}`) : undefined;
      if (birth !== undefined) boundBirths.set(nameOf(binding), birth);
    },
    birthBoundAs: (binding) => boundBirths.get(nameOf(binding)),
    executionsOf: (line) =>
      executions().filter((each) => {
        const made = madeLines.get(each);
        const owner = givenIn(line, madeBirths.get(each)) ?? made?.owner;
        return owner !== undefined && owner + (made?.part ?? '') === line;
      }),
    give: ({ number }, line) => void given.set(`${specOf(line)}${number}`, line),
    lineGiven: (server, line) => givenIn(line, living.get(`server ${server}`)?.number),
    lineOf: (birth, line) =>
      givenIn(line, birth.number) ??
      executions().flatMap((each) =>
        isSort(each.kind) && madeBirths.get(each) === birth.number ? (madeLines.get(each)?.owner ?? []) : [],
      )[0],
    executionsUnder: (name) => executions().filter(({ idempotencyKey }) => idempotencyKey === name),
    knowableUnder: ({ id, idempotencyKey }) => {
      const at = requestedAt.get(id) ?? Number.POSITIVE_INFINITY;
      return history.executionsUnder(idempotencyKey).filter(({ atMs }) => at - atMs < keyLifeMs);
    },
    writeOf: (execution) => madeBy.get(execution),
    isOfAnother: (execution, { id }) => madeBy.get(execution)?.id !== id,
    isLive(execution) {
      const { kind, id } = execution;
      // Another server may have the server's id by now, with a network interface of the same name.
      const isOnIt = kind !== 'card' || madeBirths.get(execution) === living.get(serverOf(execution))?.number;
      if (kind === 'card' || kind === 'backup' || kind === 'image')
        return isOnIt && isPartLive(project(), execution);
      if (id === null) return isPending(project(), emulator.world.executions.indexOf(execution));
      const birth = living.get(`${kind} ${id}`);
      return birth !== undefined && madeBirths.get(execution) === birth.number;
    },
    released(key, id, kind: string = takeApart(key).kind) {
      for (const each of history.executionsOf(lines().nameOf(key)))
        if (each.kind === 'image') excused.add(each);
      const birth = isSort(kind) ? living.get(`${kind} ${id}`) : undefined;
      if (birth !== undefined) releases.set(birth.number, key);
      const own = living.get(`ip ${id}`);
      if (key.endsWith('.public_ipv4') && own !== undefined) releases.set(own.number, key);
    },
    releasedUnder: (idempotencyKey) => {
      for (const each of history.executionsUnder(idempotencyKey)) excused.add(each);
    },
    wasReleased(sort, id) {
      const birth = living.get(`${sort} ${id}`);
      return birth !== undefined && releases.has(birth.number);
    },
    releasedFrom: (sort, id) => releases.get(living.get(`${sort} ${id}`)?.number ?? -1),
    dismiss(birth) {
      releases.set(birth.number, undefined);
      dismissed.add(birth.number);
    },
    madeUnder: (birth) =>
      executions().flatMap((each) =>
        isSort(each.kind) && madeBirths.get(each) === birth.number
          ? (writes.get(each.idempotencyKey ?? '')?.key ?? [])
          : [],
      )[0],
    makerOf(sort, id) {
      const birth = living.get(`${sort} ${id}`);
      const line = birth && history.lineOf(birth, '');
      if (line === undefined) return undefined;
      const key = lines().keyOf(line);
      // The key may have another line by now. The line of another spec has no key here.
      return parseKey(key) !== undefined && lines().nameOf(key) !== line ? undefined : key;
    },
    isExcused: (execution) =>
      excused.has(execution) || dismissed.has(madeBirths.get(execution) ?? Number.NaN),
    isGivenUp: ({ number }) =>
      dismissed.has(number) || [...excused].some((each) => madeBirths.get(each) === number),
    bare(server) {
      const birth = living.get(`server ${server}`);
      if (birth !== undefined) bared.add(birth.number);
    },
    isBare: (server) =>
      bared.has(living.get(`server ${server}`)?.number ?? -1) && history.isUnseen(server, true),
    isUnseen(id, behind) {
      const { servers, ips } = project();
      const server = servers.find((each) => String(each.id) === id);
      if (server === undefined || serversAreListed) return false;
      const isReported = ips.some(
        (ip) =>
          ip.serverId === server.id && (seenIp(project(), ip, emulator.readings)?.serverId ?? null) !== null,
      );
      return (behind || server.cards.length === 0) && !isReported;
    },
    adopted: (birth) => void adoptions.add(birth.number),
    isAdopted: (birth) => adoptions.has(birth.number),
  };
  return history;
}

export function isSort(kind: string): kind is ResourceSort {
  return (sorts as readonly string[]).includes(kind);
}

/** The spec of a line, as the prefix of its name. */
function specOf(line: string): string {
  return line.slice(0, line.indexOf('/') + 1);
}

function nameOf({ key, id, boundAt }: Binding): string {
  return `${key} ${id} ${boundAt}`;
}

/** Whether the thing is inside a server, and its id names it. */
function isPart(kind: string): boolean {
  return kind === 'card' || kind === 'network_interface' || kind === 'backup';
}

function serverOf({ id }: Execution): string {
  return `server ${id?.split('/')[0]}`;
}

/** A network that is being created has no id yet, nor has one that shows only after its task was reported as failed. */
function isPending(project: Project, execution: number): boolean {
  return project.tasks.some(
    ({ done, appearsMs, effect }) =>
      (!done || (appearsMs ?? null) !== null) &&
      effect.kind === 'create_network' &&
      effect.execution === execution,
  );
}

function isPartLive(project: Project, { kind, id }: Execution): boolean {
  const [server, part] = (id ?? '').split('/');
  if (kind === 'image') return project.images.some((each) => each.id === id);
  if (kind === 'backup') {
    return project.backups.some((each) => String(each.serverId) === server && each.id === part);
  }
  return project.servers.some(
    (each) => String(each.id) === server && each.cards.some((card) => card.id === part),
  );
}
