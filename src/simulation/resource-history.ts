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
export class ResourceHistory {
  /** The write that an idempotency key identifies. It is the same write for every controller with the same spec. */
  readonly writes = new Map<string, Intent>();
  readonly #emulator: Emulator;
  readonly #projectId: number;
  /** The profile knows `GET /servers`. */
  readonly #serversAreListed: boolean;
  readonly #lines: () => KeyLines;
  /** The first request of each intent, by its id, in the emulator's time. */
  readonly #requestedAt = new Map<string, number>();
  readonly #living = new Map<string, Birth>();
  readonly #boundBirths = new Map<string, Birth>();
  readonly #excused = new Set<Execution>();
  readonly #dismissed = new Set<number>();
  /** The resource that each creation made. A creation without a visible resource waits in `#unborn`. */
  readonly #madeBirths = new Map<Execution, number>();
  readonly #unborn = new Set<Execution>();
  #executionsSeen = 0;
  /** The line for which each key was last used, and each creation was made. */
  readonly #keyLines = new Map<string, MadeFor>();
  readonly #madeLines = new Map<Execution, MadeFor>();
  /** The line that a resource was given to, by the spec of the line and the birth: two specs may have one resource. */
  readonly #given = new Map<string, string>();
  readonly #madeBy = new Map<Execution, Intent>();
  /** The key that had each released resource, where one had it. */
  readonly #releases = new Map<number, ResourceKey | undefined>();
  readonly #adoptions = new Set<number>();
  readonly #bared = new Set<number>();
  #births = 0;

  constructor(emulator: Emulator, projectId: number, serversAreListed: boolean, lines: () => KeyLines) {
    this.#emulator = emulator;
    this.#projectId = projectId;
    this.#serversAreListed = serversAreListed;
    this.#lines = lines;
  }

  /** How many resources there have been. */
  get births(): number {
    return this.#births;
  }

  /** `of`: the lines of the spec that the write is for. */
  recordWrite(intent: Intent, of: KeyLines): void {
    this.writes.set(intent.idempotencyKey, intent);
    const line = of.nameOf(intent.key);
    const { parent } = takeApart(intent.key);
    // A question to a key creates nothing.
    if (intent.sends > 0) of.use(parent ?? intent.key);
    const isFirst = intent.verb === 'create' && intent.recovers === undefined && intent.sends > 0;
    if (isFirst && parent === undefined && !this.executionsOf(line).some((each) => this.isLive(each)))
      of.restart(intent.key);
    const owner = parent === undefined || !isPart(intent.kind) ? line : of.nameOf(parent);
    this.#keyLines.set(intent.idempotencyKey, { owner, part: line.slice(owner.length) });
  }

  /** A request of the write reaches the API. */
  recordRequest({ id }: Intent): void {
    if (!this.#requestedAt.has(id)) this.#requestedAt.set(id, this.#emulator.now());
  }

  /** Records the resources that were created or deleted since the last call. `isForeign`: another program or user made them. */
  recordExecutions(isForeign: boolean): void {
    const all = this.#emulator.world.executions;
    for (; this.#executionsSeen < all.length; this.#executionsSeen++) {
      const made = all[this.#executionsSeen] as Execution;
      this.#unborn.add(made);
      const line = this.#keyLines.get(made.idempotencyKey ?? '');
      if (line !== undefined) this.#madeLines.set(made, line);
      const write = this.writes.get(made.idempotencyKey ?? '');
      if (write !== undefined) this.#madeBy.set(made, write);
    }
    // A resource that a task creates belongs to the request that began the task, no matter who acts meanwhile.
    const expected = new Set([...this.#unborn].map(({ kind, id }) => `${kind} ${id}`));
    for (const sort of sorts) {
      const ids = new Set(this.#listed(sort).map(({ id }) => String(id)));
      for (const [name, birth] of this.#living)
        if (birth.sort === sort && !ids.has(birth.id)) this.#living.delete(name);
      for (const id of ids) {
        const name = `${sort} ${id}`;
        if (this.#living.has(name)) continue;
        const number = this.#births++;
        this.#living.set(name, { number, sort, id, isForeign: isForeign && !expected.has(name) });
      }
    }
    for (const each of this.#unborn) {
      if (each.id === null) continue;
      this.#unborn.delete(each);
      const birth = this.#living.get(isPart(each.kind) ? serverOf(each) : `${each.kind} ${each.id}`);
      if (birth !== undefined) this.#madeBirths.set(each, birth.number);
    }
  }

  birthOf(sort: ResourceSort, id: string): Birth | undefined {
    return this.#living.get(`${sort} ${id}`);
  }

  /** Records the resource that exists when the binding is made. */
  bound(binding: Binding): void {
    const birth = isSort(binding.kind) ? this.birthOf(binding.kind, binding.id) : undefined;
    if (birth !== undefined) this.#boundBirths.set(nameOf(binding), birth);
  }

  /** The resource that existed when the binding was made; `undefined` for kinds without ids of their own. */
  birthBoundAs(binding: Binding): Birth | undefined {
    return this.#boundBirths.get(nameOf(binding));
  }

  /**
   * Creations that took effect for a line, oldest first, as far as its resources have not been given to another line of
   * the same spec. A part of a server is given with its server.
   */
  executionsOf(line: string): readonly Execution[] {
    return this.#executions().filter((each) => {
      const made = this.#madeLines.get(each);
      const owner = this.#givenIn(line, this.#madeBirths.get(each)) ?? made?.owner;
      return owner !== undefined && owner + (made?.part ?? '') === line;
    });
  }

  /** An operator, or the spec, has given a resource to a line. */
  give({ number }: Birth, line: string): void {
    this.#given.set(`${specOf(line)}${number}`, line);
  }

  /** The line that the server was given to in the spec of `line`. */
  lineGiven(server: string, line: string): string | undefined {
    return this.#givenIn(line, this.birthOf('server', server)?.number);
  }

  /**
   * The line of a resource, as the spec of `line` has it. `undefined`: no controller made the resource, and no line was
   * given it.
   */
  lineOf(birth: Birth, line: string): string | undefined {
    return (
      this.#givenIn(line, birth.number) ??
      this.#creationsOf(birth).flatMap((each) => this.#madeLines.get(each)?.owner ?? [])[0]
    );
  }

  executionsUnder(name: string): readonly Execution[] {
    return this.#executions().filter(({ idempotencyKey }) => idempotencyKey === name);
  }

  /** The executions that a state with this intent can know of: the API had not forgotten the key at its first request. */
  knowableUnder({ id, idempotencyKey }: Intent): readonly Execution[] {
    const at = this.#requestedAt.get(id) ?? Number.POSITIVE_INFINITY;
    return this.executionsUnder(idempotencyKey).filter(({ atMs }) => at - atMs < keyLifeMs);
  }

  /** The intent that had the key when the creation took effect. Another state may use the key for another request later. */
  writeOf(execution: Execution): Intent | undefined {
    return this.#madeBy.get(execution);
  }

  /** That was another intent, such as that of another state. */
  isOfAnother(execution: Execution, { id }: Intent): boolean {
    return this.#madeBy.get(execution)?.id !== id;
  }

  isLive(execution: Execution): boolean {
    const { kind, id } = execution;
    // Another server may have the server's id by now, with a network interface of the same name.
    const isOnIt =
      kind !== 'card' || this.#madeBirths.get(execution) === this.#living.get(serverOf(execution))?.number;
    if (kind === 'card' || kind === 'backup' || kind === 'image')
      return isOnIt && isPartLive(this.#project(), execution);
    if (id === null) return isPending(this.#project(), this.#emulator.world.executions.indexOf(execution));
    const birth = this.#living.get(`${kind} ${id}`);
    return birth !== undefined && this.#madeBirths.get(execution) === birth.number;
  }

  /** An operator, or the spec, released the resource of the key. */
  released(key: ResourceKey, id: string, kind: string = takeApart(key).kind): void {
    for (const each of this.executionsOf(this.#lines().nameOf(key)))
      if (each.kind === 'image') this.#excused.add(each);
    const birth = isSort(kind) ? this.birthOf(kind, id) : undefined;
    if (birth !== undefined) this.#releases.set(birth.number, key);
    const own = this.birthOf('ip', id);
    if (key.endsWith('.public_ipv4') && own !== undefined) this.#releases.set(own.number, key);
  }

  /** An operator has given up a creation, no matter how it ended. */
  releasedUnder(idempotencyKey: string): void {
    for (const each of this.executionsUnder(idempotencyKey)) this.#excused.add(each);
  }

  wasReleased(sort: ResourceSort, id: string): boolean {
    const birth = this.birthOf(sort, id);
    return birth !== undefined && this.#releases.has(birth.number);
  }

  /** The key that had the resource when it was released last. */
  releasedFrom(sort: ResourceSort, id: string): ResourceKey | undefined {
    return this.#releases.get(this.birthOf(sort, id)?.number ?? -1);
  }

  /** An operator has declared that the resource, with its parts, does not belong to this spec. */
  dismiss({ number }: Birth): void {
    this.#releases.set(number, undefined);
    this.#dismissed.add(number);
  }

  /** The key under which a controller made it. */
  madeUnder(birth: Birth): ResourceKey | undefined {
    return this.#creationsOf(birth).flatMap(
      (each) => this.writes.get(each.idempotencyKey ?? '')?.key ?? [],
    )[0];
  }

  /** The key that its line has now, if a controller made it. */
  makerOf(sort: ResourceSort, id: string): ResourceKey | undefined {
    const birth = this.birthOf(sort, id);
    const line = birth && this.lineOf(birth, '');
    if (line === undefined) return undefined;
    const key = this.#lines().keyOf(line);
    // The key may have another line by now. The line of another spec has no key here.
    return parseKey(key) !== undefined && this.#lines().nameOf(key) !== line ? undefined : key;
  }

  isExcused(execution: Execution): boolean {
    const birth = this.#madeBirths.get(execution) ?? Number.NaN;
    return this.#excused.has(execution) || this.#dismissed.has(birth);
  }

  /** An operator has given up its creation, or the resource. */
  isGivenUp({ number }: Birth): boolean {
    return (
      this.#dismissed.has(number) || [...this.#excused].some((each) => this.#madeBirths.get(each) === number)
    );
  }

  /** Another user takes the server's address away. Only that address made the server visible. */
  bare(server: string): void {
    const birth = this.birthOf('server', server);
    if (birth !== undefined) this.#bared.add(birth.number);
  }

  isBare(server: string): boolean {
    return this.#bared.has(this.birthOf('server', server)?.number ?? -1) && this.isUnseen(server, true);
  }

  /**
   * A server that no list of addresses shows now, and no number of servers in a network. A state that is
   * `behind` does not ask for that number. @source API §4
   */
  isUnseen(id: string, behind: boolean): boolean {
    const { servers, ips } = this.#project();
    const server = servers.find((each) => String(each.id) === id);
    if (server === undefined || this.#serversAreListed) return false;
    const { readings } = this.#emulator;
    const isReported = ips.some(
      (ip) => ip.serverId === server.id && (seenIp(this.#project(), ip, readings)?.serverId ?? null) !== null,
    );
    return (behind || server.interfaces.length === 0) && !isReported;
  }

  /** An operator has made a foreign object this spec's. */
  adopted({ number }: Birth): void {
    this.#adoptions.add(number);
  }

  isAdopted({ number }: Birth): boolean {
    return this.#adoptions.has(number);
  }

  #project(): Project {
    return this.#emulator.world.projects.find(({ id }) => id === this.#projectId) as Project;
  }

  #listed(sort: ResourceSort): readonly { readonly id: number | string }[] {
    return listsOf(this.#project())[sort];
  }

  #executions(): readonly Execution[] {
    return this.#emulator.world.executions.filter((each) => each.projectId === this.#projectId);
  }

  #creationsOf({ number }: Birth): readonly Execution[] {
    return this.#executions().filter((each) => isSort(each.kind) && this.#madeBirths.get(each) === number);
  }

  #givenIn(line: string, birth: number | undefined): string | undefined {
    return this.#given.get(`${specOf(line)}${birth}`);
  }
}

/** The resources of a project by their sort. */
export function listsOf({ servers, ips, networks, isos }: Project) {
  return { server: servers, ip: ips, network: networks, iso: isos };
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
    (each) =>
      String(each.id) === server && each.interfaces.some((networkInterface) => networkInterface.id === part),
  );
}
