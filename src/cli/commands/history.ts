import { endOf, partsOf } from '../../core/intent.ts';
import { member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { moment } from '../../core/moment.ts';
import type { Intent, JournalFilter, ProofRecord, StateStore } from '../../core/state.ts';
import { refuseOtherState } from '../../engine/observe.ts';
import { writeView } from '../../view/build.ts';
import { barsSvg, timelineOf } from '../../view/timeline.ts';
import { clockOf } from '../clock.ts';
import { openStore } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { phaseWord } from '../render/status-text.ts';
import { endText } from '../render/values.ts';
import type { CommonFlags } from '../settings/config.ts';
import { checkedKey } from '../settings/key.ts';
import { refuseSecondState } from '../settings/own-state.ts';
import { readSpec } from '../settings/spec-source.ts';
import { type Io, paintFor, printable } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface HistoryFlags extends CommonFlags {
  readonly format?: 'text' | 'json';
  readonly key?: string;
  readonly limit?: number;
  readonly svg?: string;
}

/** Shown where nothing else is asked for. */
const defaultLimit = 50;

/** Every write ever sent, newest first. Reads the state alone; with a file, that of the file's project. */
export async function history(flags: HistoryFlags, io: Io): Promise<ExitCode> {
  const key = flags.key === undefined ? undefined : checkedKey(flags.key);
  const desired = flags.file === undefined ? undefined : await readSpec(flags, io);
  if (desired !== undefined) await refuseSecondState(desired.projectId, flags, io);
  const store = await openStore(flags, io, 'read');
  try {
    if (desired !== undefined) refuseOtherState(desired, await store.info());
    const limit = flags.limit ?? defaultLimit;
    const intents = await Promise.all(
      (await store.intents({ limit, ...(key === undefined ? {} : { key }) })).map(async (intent) => ({
        intent,
        resourceId: await resourceIdOf(intent, store),
      })),
    );
    if (flags.svg !== undefined) {
      const writes = intents.map(({ intent }) => writeView(intent));
      const title = `Writes of the last run${key === undefined ? '' : ` for ${key}`}`;
      writeOut(flags.svg, barsSvg(timelineOf(writes, clockOf(io).now()), title), io);
    }
    const proofs = await proofsIn(store, { key, limit });
    if (flags.format === 'json') {
      const json = { format_version: 1, writes: intents.map(intentJson), proofs: proofs.map(proofJson) };
      io.stdout.write(`${JSON.stringify(json, null, 2)}\n`);
    } else {
      const paint = paintFor(io.stdout, io);
      const dim = (text: string) => paint('dim', text);
      const all = [
        ...intents.map((past) => ({ at: past.intent.createdAt, lines: intentLines(past, dim) })),
        ...proofs.map((proof) => ({ at: proof.at, lines: proofLines(proof, dim) })),
      ];
      const newest = all.sort((one, other) => other.at - one.at).slice(0, limit);
      const lines = newest.flatMap((each) => each.lines);
      io.stdout.write(
        lines.length === 0
          ? `This state has sent no write${key === undefined ? '' : ` for ${key}`}.\n`
          : `${lines.join('\n')}\n`,
      );
    }
    return exitCodes.done;
  } finally {
    await store.close();
  }
}

/** A write, and the id of its resource. */
interface Past {
  readonly intent: Intent;
  readonly resourceId: string | undefined;
}

/**
 * If no answer named the created resource, the journal shows the id that was bound later. A deletion names the
 * resource in its request. @source API §3.5
 */
async function resourceIdOf(intent: Intent, store: StateStore): Promise<string | undefined> {
  const { id, key, verb, request } = intent;
  const { answer, outcome } = partsOf(intent);
  if (answer?.id !== undefined) return answer.id;
  if (verb === 'delete') return String(request.path.id);
  if (verb !== 'create' || outcome !== 'done') return undefined;
  const lines = await store.journal({ key, limit: 1_000 });
  const bound = lines.findLast(({ intentId, event }) => intentId === id && event === 'bound');
  const resource = member(member(bound?.data, 'binding'), 'id');
  return typeof resource === 'string' ? resource : undefined;
}

/** A request that proved a creation, with its answer if there is one. */
interface PastProof extends ProofRecord {
  readonly key: ResourceKey;
  /** Wall time in ms. */
  readonly at: number;
  readonly answeredAt?: number;
}

/** Newest first. */
async function proofsIn(store: StateStore, { key, limit }: JournalFilter): Promise<readonly PastProof[]> {
  const proofs = new Map<string, PastProof>();
  // Each request has two lines.
  for (const { at, key: of, data } of await store.journal({ key, event: 'proof', limit: 2 * limit })) {
    const proof = member(data, 'proof');
    if (!isProof(proof)) continue;
    const before = proofs.get(proof.idempotencyKey);
    const times = proof.answer === undefined ? { at } : { at: before?.at ?? at, answeredAt: at };
    proofs.set(proof.idempotencyKey, { ...proof, key: of, ...times });
  }
  return [...proofs.values()].reverse().slice(0, limit);
}

function isProof(value: unknown): value is ProofRecord {
  return typeof member(value, 'idempotencyKey') === 'string' && member(value, 'request') !== undefined;
}

function purposeOf({ request }: ProofRecord): 'proof' | 'calibration' {
  return request.probe === 'proof' ? 'proof' : 'calibration';
}

export function proofJson(proof: PastProof): Record<string, unknown> {
  const { key, at, answeredAt, request, idempotencyKey, answer } = proof;
  return {
    sent_at: time(at),
    answered_at: answeredAt === undefined ? null : time(answeredAt),
    key,
    purpose: purposeOf(proof),
    operation: request.name,
    idempotency_key: idempotencyKey,
    answer: answer?.text ?? null,
    request_id: answer?.requestId ?? null,
  };
}

function proofLines(proof: PastProof, dim: (text: string) => string): string[] {
  const { key, at, idempotencyKey, answer } = proof;
  const request = answer?.requestId === undefined ? '' : `request ${answer.requestId}, `;
  return [
    `${moment(at)}  ${purposeOf(proof)} of ${printable(key)}: creates nothing`,
    dim(`    ${printable(`${request}idempotency key ${idempotencyKey}`)}`),
    dim(`    ${printable(answer?.text ?? 'no answer recorded')}`),
  ];
}

/** A write in the names of the public JSON. */
export function intentJson({ intent, resourceId }: Past): Record<string, unknown> {
  const { key, verb, request, incarnation, attempt, idempotencyKey, phase, sends } = intent;
  const { answer, unconfirmed, outcome, closedAt } = partsOf(intent);
  const optional = {
    outcome,
    detail: intent.detail === '' ? undefined : intent.detail,
    request_id: intent.requestId,
    task_id: answer?.taskId,
    resource_id: resourceId,
    why: unconfirmed?.why,
  };
  return {
    begun_at: time(intent.createdAt),
    last_sent_at: intent.sends === 0 ? null : time(intent.lastSentAt),
    closed_at: closedAt === undefined ? null : time(closedAt),
    key,
    verb,
    operation: request.name,
    idempotency_key: idempotencyKey,
    incarnation,
    attempt,
    sends,
    phase,
    ...Object.fromEntries(Object.entries(optional).map(([name, value]) => [name, value ?? null])),
  };
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

function intentLines({ intent, resourceId }: Past, dim: (text: string) => string): string[] {
  const { key, verb, detail, requestId, sends, idempotencyKey } = intent;
  const taskId = partsOf(intent).answer?.taskId;
  const end =
    intent.phase === 'closed'
      ? endText(endOf(intent) ?? intent.outcome, intent.closedAt - intent.createdAt)
      : phaseWord(intent.phase);
  const facts = [
    ...(resourceId === undefined ? [] : [`id ${resourceId}`]),
    ...(requestId === undefined ? [] : [`request ${requestId}`]),
    ...(taskId === undefined ? [] : [`task ${taskId}`]),
    `idempotency key ${idempotencyKey}`,
    ...(sends === 1 ? [] : [`sent ${sends} times`]),
  ];
  const told = detail === '' ? [] : [dim(`    ${printable(detail)}`)];
  return [
    `${moment(intent.createdAt)}  ${verb} ${printable(key)}: ${end}`,
    dim(`    ${printable(facts.join(', '))}`),
    ...told,
  ];
}
