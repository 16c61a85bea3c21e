import { type Claim, objectName } from '../../src/core/claims.ts';
import { partsOf, patched } from '../../src/core/intent.ts';
import type { Json } from '../../src/core/json.ts';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Verb } from '../../src/core/plan.ts';
import type {
  Binding,
  Ended,
  Intent,
  IntentFilter,
  IntentPatch,
  JournalEntry,
  JournalFilter,
  StateChange,
  StateInfo,
  StateStore,
} from '../../src/core/state.ts';
import { pastLine, pruning } from '../../src/state/prune.ts';
import {
  begun,
  begunEntry,
  changeEntry,
  checkPatch,
  closedEntry,
  ended,
  isRecorded,
  refuseClosedStore,
  refuseOtherProject,
  refuseOtherService,
  refuseSecondHolder,
  refuseSecondIntent,
  refuseUsedId,
  stillOpen,
  throughJson,
  updatedEntry,
  validTime,
} from '../../src/state/records.ts';

export interface MapStateOptions {
  /** Wall time in ms. */
  readonly createdAt: number;
  readonly lineage: string;
}

/** The oracle of the equivalence test: the state in maps. */
export function mapState(options: MapStateOptions): StateStore {
  return new MapState(options);
}

/** Every change is checked and copied first and applied last, so that a rejected one leaves no trace. */
class MapState implements StateStore {
  private readonly options: MapStateOptions;
  private serial = 0;
  private projectId: number | null = null;
  private service: string | null = null;
  private closed = false;
  private readonly bound = new Map<ResourceKey, Binding>();
  private readonly claimed = new Map<string, Claim>();
  /** By object. */
  private readonly boundTo = new Map<string, ResourceKey>();
  private readonly gone = new Map<ResourceKey, number>();
  private readonly byId = new Map<string, Intent>();
  private readonly openByKey = new Map<ResourceKey, string>();
  private readonly lines: JournalEntry[] = [];
  private readonly notes = new Map<string, Json>();

  constructor(options: MapStateOptions) {
    this.options = options;
  }

  async info(): Promise<StateInfo> {
    this.checkOpen();
    const { lineage, createdAt } = this.options;
    return { lineage, serial: this.serial, createdAt, projectId: this.projectId, service: this.service };
  }

  async claimProject(projectId: number): Promise<void> {
    this.checkOpen();
    if (isRecorded(this.projectId, projectId, refuseOtherProject)) return;
    this.projectId = projectId;
    this.serial += 1;
  }

  async claimService(service: string): Promise<void> {
    this.checkOpen();
    if (isRecorded(this.service, service, refuseOtherService)) return;
    this.service = service;
    this.serial += 1;
  }

  async bindings(): Promise<readonly Binding[]> {
    this.checkOpen();
    return [...this.bound.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async claims(): Promise<readonly Claim[]> {
    this.checkOpen();
    return [...this.claimed].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, claim]) => claim);
  }

  async incarnation(key: ResourceKey): Promise<number> {
    this.checkOpen();
    return this.gone.get(key) ?? 0;
  }

  async change(changes: readonly StateChange[], at: number): Promise<void> {
    this.checkOpen();
    const entries = recorded(changes, at);
    if (entries.length === 0) return;
    this.checkHolders(entries);
    this.apply(entries);
    this.append(entries.map(({ line }) => line));
  }

  async beginIntent(intent: Intent): Promise<void> {
    this.checkOpen();
    const copy = deepFreeze(begun(intent));
    if (this.byId.has(intent.id)) refuseUsedId(intent.id);
    const open = this.openIntentOf(intent.key);
    if (open !== undefined) refuseSecondIntent(open, intent);
    const line = frozen(begunEntry(intent), `The intent ${intent.id}`);
    this.byId.set(copy.id, copy);
    this.openByKey.set(copy.key, copy.id);
    this.append([line]);
  }

  async updateIntent(id: string, patch: IntentPatch, at: number, note?: Json): Promise<void> {
    this.checkOpen();
    const intent = stillOpen(id, this.byId.get(id));
    checkPatch(intent, patch);
    validTime(at, `The update of intent ${id}`);
    const line = frozen(updatedEntry(intent, patch, at, note), `The update of intent ${id}`);
    this.byId.set(id, frozen(patched(intent, throughJson(patch, 'The patch')), `The intent ${id}`));
    this.append([line]);
  }

  async closeIntent(id: string, how: Ended, changes: readonly StateChange[], at: number): Promise<void> {
    this.checkOpen();
    const intent = stillOpen(id, this.byId.get(id));
    validTime(at, `The end of intent ${id}`);
    const entries = recorded(changes, at, intent);
    this.checkHolders(entries);
    const line = frozen(closedEntry(intent, how, at), `The end of intent ${id}`);
    this.byId.set(id, frozen(ended(intent, how, at), `The intent ${id}`));
    this.openByKey.delete(intent.key);
    this.apply(entries);
    this.append([line, ...entries.map((each) => each.line)]);
  }

  async openIntents(): Promise<readonly Intent[]> {
    this.checkOpen();
    return [...this.openByKey.values()].flatMap((id) => this.byId.get(id) ?? []);
  }

  async lastAttempt(key: ResourceKey, verb: Verb, incarnation: string): Promise<number> {
    this.checkOpen();
    let last = -1;
    for (const intent of this.byId.values()) {
      if (intent.key !== key || intent.verb !== verb || intent.incarnation !== incarnation) continue;
      if (partsOf(intent).outcome !== 'void') last = Math.max(last, intent.attempt);
    }
    return last;
  }

  async intents({ key, outcome, limit }: IntentFilter): Promise<readonly Intent[]> {
    this.checkOpen();
    const asked = [...this.byId.values()].filter(
      (each) =>
        (key ?? each.key) === each.key && (outcome === undefined || outcome === partsOf(each).outcome),
    );
    return asked.reverse().slice(0, limit);
  }

  async journal(filter: JournalFilter): Promise<readonly JournalEntry[]> {
    this.checkOpen();
    const asked = this.lines.filter(
      ({ key, event }) => key === (filter.key ?? key) && event === (filter.event ?? event),
    );
    return asked.slice(Math.max(0, asked.length - filter.limit));
  }

  async prune(before: number): Promise<number> {
    this.checkOpen();
    validTime(before, 'The moment to prune before');
    const intents = [...this.byId.values()].map((each) => ({
      ...each,
      outcome: partsOf(each).outcome ?? null,
    }));
    const {
      intents: gone,
      lines,
      detached,
    } = pruning(
      intents,
      this.lines.map((line, at) => pastLine(at, line)),
      before,
    );
    if (gone.length + lines.length === 0) return 0;
    for (const id of gone) this.byId.delete(id);
    for (const at of detached) {
      const { intentId: _, ...line } = this.lines[at] as JournalEntry;
      this.lines[at] = line;
    }
    const dropped = new Set(lines);
    this.lines.splice(0, this.lines.length, ...this.lines.filter((_, at) => !dropped.has(at)));
    this.serial += 1;
    return lines.length;
  }

  async note(name: string): Promise<Json | undefined> {
    this.checkOpen();
    return this.notes.get(name);
  }

  async putNote(name: string, value: Json): Promise<void> {
    this.checkOpen();
    this.notes.set(name, frozen(value, `The note ${name}`));
    this.serial += 1;
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private openIntentOf(key: ResourceKey): Intent | undefined {
    const id = this.openByKey.get(key);
    return id === undefined ? undefined : this.byId.get(id);
  }

  private apply(entries: readonly Recorded[]): void {
    for (const { change } of entries) {
      if (change.type === 'bind') this.bind(change.binding);
      else if (change.type === 'release') this.release(change.key);
      else if (change.type === 'claim') this.claimed.set(objectName(change.claim), change.claim);
      else if (change.type === 'unclaim') this.claimed.delete(objectName(change.object));
      if (change.type === 'next_incarnation' || (change.type === 'release' && change.gone)) {
        this.gone.set(change.key, (this.gone.get(change.key) ?? 0) + 1);
      }
    }
  }

  private bind(binding: Binding): void {
    this.release(binding.key);
    this.bound.set(binding.key, binding);
    this.boundTo.set(objectName(binding), binding.key);
  }

  private release(key: ResourceKey): void {
    const before = this.bound.get(key);
    if (before !== undefined) this.boundTo.delete(objectName(before));
    this.bound.delete(key);
  }

  /** @throws StateError if an object would have two holders after the changes, made in their order. */
  private checkHolders(entries: readonly Recorded[]): void {
    /** The differences from the state at that point, by object and by key. */
    const holders = new Map<string, ResourceKey | null | undefined>();
    const objects = new Map<ResourceKey, string | undefined>();
    const holderOf = (object: string) =>
      holders.has(object)
        ? holders.get(object)
        : (this.boundTo.get(object) ?? (this.claimed.has(object) ? null : undefined));
    const take = (object: string, by: ResourceKey | null) => {
      const holder = holderOf(object);
      if (holder !== undefined && holder !== by) refuseSecondHolder(object, holder);
      holders.set(object, by);
    };
    const leave = (key: ResourceKey) => {
      const bound = this.bound.get(key);
      const before = objects.has(key) ? objects.get(key) : bound && objectName(bound);
      if (before !== undefined) holders.set(before, undefined);
      objects.set(key, undefined);
    };
    for (const { change } of entries) {
      if (change.type === 'release') leave(change.key);
      else if (change.type === 'claim') take(objectName(change.claim), null);
      else if (change.type === 'unclaim' && holderOf(objectName(change.object)) === null)
        holders.set(objectName(change.object), undefined);
      else if (change.type === 'bind') {
        leave(change.binding.key);
        take(objectName(change.binding), change.binding.key);
        objects.set(change.binding.key, objectName(change.binding));
      }
    }
  }

  private append(lines: readonly JournalEntry[]): void {
    this.lines.push(...lines);
    this.serial += 1;
  }

  private checkOpen(): void {
    if (this.closed) refuseClosedStore();
  }
}

interface Recorded {
  readonly change: StateChange;
  readonly line: JournalEntry;
}

function recorded(changes: readonly StateChange[], at: number, intent?: Intent): readonly Recorded[] {
  validTime(at, 'A change');
  return changes.map((change) => ({
    change: frozen(change, 'A change'),
    line: frozen(changeEntry(change, at, intent), 'A change'),
  }));
}

/** Callers get the stored value itself, so the value must not change between two readers. */
function frozen<T>(value: T, what: string): T {
  return deepFreeze(throughJson(value, what));
}

function deepFreeze<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
