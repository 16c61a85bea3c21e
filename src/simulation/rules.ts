import { childKey, type ResourceKey, topLevelKey } from '../core/keys.ts';
import type { Intent, StateChange } from '../core/state.ts';
import type { HttpRequest } from '../core/transport.ts';
import { type Controller, type Running, stateOf } from './controller.ts';
import type { StateWatch } from './durable.ts';
import { isSort } from './ledger.ts';
import { createPurchases, type PurchasesDeps } from './purchases.ts';

const minute = 60_000;
const hour = 60 * minute;
/** A key is not sent again from this age on. @source API §8 */
const keyLifeMs = 23 * hour;
const absenceGapMs = minute;

export interface RulesDeps extends PurchasesDeps {
  /** Time that no machine's clock can bend, in ms. */
  readonly elapsed: () => number;
  /** Which token of the emulator carries this secret, such as `4711-readWrite`. */
  readonly tokenName: (secret: string) => string;
}

/** The invariants that hold after every step; numbered as in docs/safety.md. */
export interface Rules {
  /** Before the service sees a request. */
  arrives(running: Running, request: HttpRequest): void;
  /** After it was handled; `retryAfterMs` of a 429 and `requestId` of an answer that reached the client. */
  handled(
    running: Running,
    request: HttpRequest,
    answer: {
      status?: number;
      retryAfterMs?: number;
      refused: boolean;
      taskEnded: boolean;
      requestId: string | undefined;
    },
  ): void;
  watch(running: Running): StateWatch;
}

export function createRules(deps: RulesDeps): Rules {
  const { emulator, ledger, elapsed, fail } = deps;
  const arrivals = new Map<string, number[]>();
  const closedUntil = new Map<string, number>();
  const sentAs = new Map<string, string>();
  const firstSent = new Map<string, number>();
  const inFlight = new Map<string, number>();
  /** When a look first missed the effect of an intent: by what the intent says of it, which may be read in a state put back. */
  const looks = new Map<string, number>();
  /** By state and intent. */
  const lastSent = new Map<string, number>();
  /** Keys with a conclusive 5xx: such answers are not stored, so the key would run the write again. */
  const serverErrors = new Set<string>();
  const purchases = createPurchases(deps);

  function checkBudget(running: Running, token: string, write: boolean): void {
    const { controller } = running;
    const bucket = `${token} ${write ? 'writes' : 'reads'}`;
    const now = elapsed();
    const recent = [...(arrivals.get(bucket) ?? []).filter((at) => at > now - minute), now];
    arrivals.set(bucket, recent);
    if (controller.budgetUnknown()) return;
    if (now < (closedUntil.get(bucket) ?? 0)) fail('I9', `a request before Retry-After has passed`);
  }

  /** Counted once it is known to have arrived: a refused connection is no request. */
  function checkWindow({ controller }: Running, token: string, write: boolean, refused: boolean): void {
    const bucket = `${token} ${write ? 'writes' : 'reads'}`;
    const recent = arrivals.get(bucket) ?? [];
    if (refused) recent.splice(recent.lastIndexOf(elapsed()), 1);
    const limit = write ? 20 : 60;
    if (recent.length > limit && !controller.budgetUnknown())
      fail('I9', `${recent.length} ${write ? 'writes' : 'reads'} within 60 s`);
  }

  function checkKey(running: Running, request: HttpRequest, path: string): Intent | undefined {
    const key = request.headers['idempotency-key'] ?? '';
    if (!/^[\x20-\x7e]{8,255}$/.test(key)) fail('I4', `a write with the key "${key}"`);
    const intent = [...running.mirror.open.values()].find((each) => each.idempotencyKey === key);
    if (intent === undefined || intent.phase !== 'sending') {
      fail('I5', `${request.method} ${path} was sent without a durable intent`);
      return undefined;
    }
    const form = `${request.method} ${path} ${request.body ?? ''}`;
    const scope = `${stateOf(running)} ${key}`;
    const before = sentAs.get(scope);
    if (before !== undefined && before !== form) fail('I4', `one key for "${before}" and "${form}"`);
    sentAs.set(scope, form);
    if (serverErrors.has(scope)) fail('I6', `${intent.key}: a key that was answered 5xx is sent again`);
    const first = firstSent.get(scope);
    const ageMs = elapsed() - (first ?? elapsed());
    if (ageMs >= keyLifeMs && !running.controller.clockWasSet) {
      fail('I6', `the key of ${intent.key} was sent again after ${Math.round(ageMs / hour)} h`);
    }
    if (first === undefined) firstSent.set(scope, elapsed());
    return intent;
  }

  function checkHolds(running: Running, intent: Intent): void {
    const { holds } = running;
    const spends =
      intent.verb === 'create' && ['server', 'ip', 'backup', 'server_image'].includes(intent.kind);
    if (holds.everything) fail('I7', `${intent.request.name} after a 401, 405 or 415 in the same run`);
    if (holds.names.has(intent.request.name)) fail('I7', `${intent.request.name} after its 403`);
    if (holds.spendingUntil > elapsed() && spends) fail('I7', `${intent.request.name} after a 402`);
    if (running.dry) fail('I7', 'a write in a dry run');
  }

  /** Of backups only this file's own go, and never one of the newest that are to be kept. */
  function checkRotation(running: Running, { key, request }: Intent): void {
    const [, name = ''] = key.split('.');
    const wish = childKey(topLevelKey('servers', name), 'backup');
    const server = `${request.path.server_id}/`;
    const own = ledger.executionsOf(wish).filter((each) => each.id?.startsWith(server));
    const id = `${server}${request.path.id}`;
    const taken = own.find((each) => each.id === id);
    if (taken === undefined) fail('I8', `backup ${id} is deleted, and was not taken by this file`);
    if (taken === undefined || !ledger.isLive(taken)) return;
    const { value } = running.desired.resources.find((each) => each.key === wish) ?? {};
    const { keep = Number.POSITIVE_INFINITY } = (value ?? {}) as { readonly keep?: number };
    if (own.filter((each) => ledger.isLive(each) && (each.id ?? '') > id).length < keep)
      fail('I8', `backup ${id} is deleted, and is one of the newest ${keep}`);
  }

  function checkDeletion(running: Running, intent: Intent): void {
    if (intent.verb === 'delete' && intent.kind === 'backup') checkRotation(running, intent);
    if (intent.verb !== 'delete' || !isSort(intent.kind)) return;
    const id = String(intent.request.path.id);
    const birth = ledger.birthOf(intent.kind, id);
    const binding = [...running.mirror.bindings.values()].find(
      (each) => each.kind === intent.kind && each.id === id,
    );
    if (binding === undefined) {
      fail('I8', `${intent.kind} ${id} is deleted and bound to nothing`);
      return;
    }
    if (binding.protect) fail('I8', `${binding.key} is protected and deleted`);
    if (birth === undefined) return;
    // Made anew for the same key by another state, under an id that was free again: nothing tells the two apart.
    const again = ledger.executionsOf(intent.key).some((each) => each.id === id && ledger.isLive(each));
    if (ledger.birthBoundAs(binding)?.number !== birth.number && !again)
      fail('I8', `${intent.kind} ${id} is not what was bound to ${binding.key}`);
    const wanted = running.desired.resources.some(({ key }) => key === intent.key);
    if (!wanted && !running.desired.settings.prune && !intent.key.endsWith('.public_ipv4'))
      fail('I8', `${intent.key} is deleted, and the file does not say prune`);
    const network = projectNow()?.networks.find((each) => each.id === Number(id));
    if (intent.kind === 'network' && network?.isDefault) fail('I8', 'the default network is deleted');
    if (!intent.key.endsWith('.public_ipv4')) running.deleted.add(intent.key);
    if (running.deleted.size > running.mostDeletions)
      fail('I8', `${running.deleted.size} deletions in one run, ${running.mostDeletions} are allowed`);
  }

  /** Data goes with a disk that a resize makes smaller. */
  function checkDisk({ desired }: Running, { key, request }: Intent): void {
    if (request.name !== 'resize_server') return;
    const server = projectNow()?.servers.find(({ id }) => id === request.path.server_id);
    const { disk_gb: size = Number.POSITIVE_INFINITY } = request.body as { readonly disk_gb?: number };
    if (server === undefined || size >= (server.diskGb ?? 0)) return;
    const { value, protect } = desired.resources.find((each) => each.key === key) ?? {};
    const entry = value as { readonly disk_gb?: number; readonly replace?: string } | undefined;
    if (entry?.disk_gb !== size)
      fail('I8', `the disk of ${key} is cut down to ${size} GB, and the file does not say so`);
    if (entry?.replace !== 'allowed' || protect)
      fail('I8', `the disk of ${key} is cut down, and the file does not allow it`);
  }

  function projectNow() {
    return emulator.world.projects.find(({ id }) => id === deps.projectId);
  }

  return {
    arrives(running, request) {
      const path = new URL(request.url).pathname.slice(3);
      const write = request.method !== 'GET';
      const token = deps.tokenName(request.headers.authorization?.slice('Bearer '.length) ?? '');
      checkBudget(running, token, write);
      // Later it may be asked for again, where what came after it had to be given up.
      if (elapsed() - (running.endedTasks.get(path) ?? -minute) < 1_000 && ++running.repolls > 2)
        fail('I9', `${path} was polled after its end`);
      if (!write) return;
      if (!token.startsWith(`${deps.projectId}-`))
        fail('I7', `${request.method} ${path} with the token ${token}`);
      const busy = inFlight.get(running.name) ?? 0;
      if (busy > 0) fail('I7', 'two writes at once');
      inFlight.set(running.name, busy + 1);
      purchases.arrives(running, request);
      const intent = checkKey(running, request, path);
      if (intent === undefined) return;
      checkHolds(running, intent);
      checkDeletion(running, intent);
      checkDisk(running, intent);
    },

    handled(running, request, { status, retryAfterMs, refused, taskEnded, requestId }) {
      const write = request.method !== 'GET';
      const token = deps.tokenName(request.headers.authorization?.slice('Bearer '.length) ?? '');
      if (write) inFlight.set(running.name, (inFlight.get(running.name) ?? 1) - 1);
      checkWindow(running, token, write, refused);
      if (retryAfterMs !== undefined) {
        const bucket = `${token} ${write ? 'writes' : 'reads'}`;
        closedUntil.set(bucket, Math.max(closedUntil.get(bucket) ?? 0, elapsed() + retryAfterMs));
      }
      if (taskEnded) running.endedTasks.set(new URL(request.url).pathname.slice(3), elapsed());
      if (write && status !== undefined) remember(running, request, status);
      ledger.look(false);
      if (write) purchases.handled(running, request, requestId);
      purchases.check(running);
    },

    watch: (running) => ({
      began(intent) {
        checkNewKey(running.controller, intent);
        lastSent.set(`${stateOf(running)} ${intent.id}`, elapsed());
        ledger.recordWrite(intent);
      },
      updated(before, after) {
        if (after.notSeenAt !== undefined && before.notSeenAt === undefined)
          looks.set(lookOf(after), elapsed());
        const concludes = before.phase === 'unknown' && after.phase === 'waiting';
        if (before.ambiguous && before.verb === 'create' && (concludes || after.phase === 'sending'))
          checkLooked(running, before, 'sent again');
        const scope = `${stateOf(running)} ${after.idempotencyKey}`;
        if (after.phase === 'unknown' && running.told5xx.delete(scope)) serverErrors.add(scope);
        if (after.phase === 'sending') lastSent.set(`${stateOf(running)} ${after.id}`, elapsed());
      },
      closed(intent) {
        running.controller.endings.set(`${intent.key} ${intent.verb}`, intent);
        // Nothing was ever done or stored under it, so that its next use is its first.
        if (intent.outcome === 'void' && !intent.ambiguous)
          firstSent.delete(`${stateOf(running)} ${intent.idempotencyKey}`);
        if (intent.verb === 'delete' && intent.outcome === 'done') checkGone(running, intent);
        const guessed =
          intent.ambiguous &&
          intent.verb === 'create' &&
          (intent.outcome === 'absent' || intent.outcome === 'void');
        if (guessed && !running.byPerson) checkLooked(running, intent, `closed as ${intent.outcome}`);
        if (intent.outcome === 'abandoned' && intent.verb === 'create')
          ledger.letGoUnder(intent.idempotencyKey);
      },
      changed: (change) => checkChange(running, change),
    }),
  };

  /** A conclusion from absence needs two looks a minute apart, after the last send had its time. */
  function checkLooked(running: Running, intent: Intent, what: string): void {
    const { id, key } = intent;
    const first = looks.get(lookOf(intent));
    if (first === undefined) {
      fail('I6', `${key} was ${what} without a look`);
      return;
    }
    const sent = lastSent.get(`${stateOf(running)} ${id}`) ?? 0;
    if (first < sent + minute) fail('I6', `${key} was ${what}, and looked for too soon`);
    if (elapsed() - first < absenceGapMs) fail('I6', `${key} was ${what} after one look`);
  }

  /** What is taken as deleted, or as gone, is not there any more. */
  function checkGone(running: Running, { kind, key, request }: Intent): void {
    const id = String(request.path.id);
    if (!isSort(kind) || running.byPerson || listsAreCut()) return;
    const bound = running.mirror.bindings.get(key);
    const birth = ledger.birthOf(kind, id);
    if (birth === undefined || bound === undefined) return;
    if (ledger.birthBoundAs(bound)?.number === birth.number)
      fail('I1', `${kind} ${id} was taken as deleted, and is there`);
  }

  /** Under such a reading a list proves nothing, and some kinds have nothing but their list. */
  function listsAreCut(): boolean {
    return emulator.readings.pageSize !== null;
  }

  /** A higher attempt is a new key: never while it is not known what became of the last one. */
  function checkNewKey({ endings }: Controller, intent: Intent): void {
    const last = endings.get(`${intent.key} ${intent.verb}`);
    if (last === undefined || intent.attempt === 0 || last.incarnation !== intent.incarnation) return;
    if (intent.verb === 'create' && last.ambiguous && last.outcome === 'refused')
      fail('I6', `${intent.key} got a new key, and its last one was never settled`);
  }

  function checkChange(running: Running, change: StateChange): void {
    if (change.type === 'release') {
      const old = running.mirror.bindings.get(change.key);
      if (!change.gone && old !== undefined) ledger.letGo(change.key, old.id);
      if (change.gone && old !== undefined && isSort(old.kind) && !running.byPerson && !listsAreCut()) {
        const birth = ledger.birthOf(old.kind, old.id);
        // Made for another key under an id that was free again, and looking the same, it is that key's.
        const maker = ledger.makerOf(old.kind, old.id);
        const ours = maker === undefined || maker === change.key;
        if (ours && birth !== undefined && ledger.birthBoundAs(old)?.number === birth.number)
          fail('I1', `${old.kind} ${old.id} was taken as gone, and is there`);
      }
      return;
    }
    if (change.type !== 'bind') return;
    const { binding } = change;
    ledger.bound(binding);
    const { settings, resources } = running.desired;
    // `{reuse: true}` asks for whatever address is free, whoever took it.
    const named =
      binding.key.endsWith('.public_ipv4') ||
      resources.find(({ key }) => key === binding.key)?.id !== undefined;
    const birth = isSort(binding.kind) ? ledger.birthOf(binding.kind, binding.id) : undefined;
    if (birth?.stranger && !settings.exclusive && !running.byPerson && !named && !ledger.isAdopted(birth))
      fail('I8', `${binding.key} took a stranger's ${binding.kind} ${binding.id} for its own`);
    if (birth?.stranger && running.byPerson) ledger.adopted(birth);
    const other = [...running.mirror.bindings.values()].find(
      (each) =>
        each.key !== binding.key &&
        each.kind === binding.kind &&
        each.id === binding.id &&
        each.parentId === binding.parentId &&
        hasOneKey(binding.key),
    );
    if (other !== undefined)
      fail('I2', `${binding.kind} ${binding.id} is bound to ${other.key} and ${binding.key}`);
  }

  /** A refusal after an ambiguous send answers that send alone, and holds nothing yet. */
  function remember(
    { holds, mirror, controller, told5xx }: Running,
    request: HttpRequest,
    status: number,
  ): void {
    const key = request.headers['idempotency-key'] ?? '';
    const name = ledger.writes.get(key)?.request.name;
    if (status >= 500) told5xx.add(`${controller.name}${controller.epoch} ${key}`);
    if ([...mirror.open.values()].some((each) => each.idempotencyKey === key && each.ambiguous)) return;
    if (status === 401 || status === 405 || status === 415) holds.everything = true;
    if (status === 403 && name !== undefined) holds.names.add(name);
    if (status === 402) holds.spendingUntil = elapsed() + 30 * minute;
  }
}

function lookOf({ id, notSeenAt }: Intent): string {
  return `${id} ${notSeenAt}`;
}

/** A firewall and a backup are told by their server alone. */
function hasOneKey(key: ResourceKey): boolean {
  return !key.endsWith('.firewall') && !key.endsWith('.backup');
}
