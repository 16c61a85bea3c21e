import { endWord, partsOf } from '../../core/intent.ts';
import { member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { Intent, JournalFilter, ProofRecord, StateStore } from '../../core/state.ts';
import { printable } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import { refuseOtherState } from '../../engine/observe.ts';
import { writeView } from '../../view/build.ts';
import { time } from '../../view/facts.ts';
import { barsSvg, timelineOf } from '../../view/timeline.ts';
import { phaseWord } from '../../view/words.ts';
import { fromState } from '../compose.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { historyLimit, type ResultFlags } from '../flags.ts';
import { endText } from '../render/values.ts';
import { isRunName, mostWrites, runNamed, runsIn } from '../runs.ts';
import { clockOf } from '../settings/config.ts';
import { checkedKey, readSpecWithState } from '../settings/spec-source.ts';
import { type Io, type Paint, printResult } from '../terminal.ts';
import { writeOut } from './output.ts';

export interface HistoryFlags extends ResultFlags {
  readonly limit?: number;
  readonly svg?: string;
}

/**
 * Every write ever sent, newest first, by runs. Reads only the state: with a spec, the state of its project.
 *
 * @param of a key, or a run by the time of its first write, as the list prints it
 */
export async function history(of: string | undefined, flags: HistoryFlags, io: Io): Promise<ExitCode> {
  const wanted = of !== undefined && isRunName(of) ? of : undefined;
  const key = of === undefined || wanted !== undefined ? undefined : checkedKey(of);
  const desired = flags.file === undefined ? undefined : await readSpecWithState(flags, io);
  return fromState(flags, io, async (store) => {
    if (desired !== undefined) refuseOtherState(desired, await store.info());
    const intents = await store.intents({ limit: mostWrites });
    const runs = runsIn(intents, clockOf(io).now());
    const runOf = new Map(runs.flatMap(({ name, writes }) => writes.map(({ id }) => [id, name] as const)));
    if (wanted !== undefined) runNamed(wanted, runs);
    const limit = flags.limit ?? (wanted === undefined ? historyLimit : mostWrites);
    const shown = intents
      .map((intent) => ({ run: runOf.get(intent.id) ?? '', intent }))
      .filter(
        ({ run, intent }) =>
          (wanted === undefined || run === wanted) && (key === undefined || intent.key === key),
      )
      .slice(0, limit);
    if (flags.svg !== undefined) {
      const drawn = shown.filter(({ run }) => run === shown[0]?.run).map(({ intent }) => writeView(intent));
      const title = `Writes of the run ${shown[0]?.run ?? ''}${key === undefined ? '' : ` for ${key}`}`;
      writeOut(flags.svg, barsSvg(timelineOf(drawn, clockOf(io).now()), title), io);
    }
    const past: readonly Past[] = await Promise.all(
      shown.map(async (each) => ({ ...each, resourceId: await resourceIdOf(each.intent, store) })),
    );
    const proofs = wanted === undefined ? await proofsIn(store, { key, limit }) : [];
    const json = { format_version: 1, writes: past.map(intentJson), proofs: proofs.map(proofJson) };
    printResult(io, flags, json, (paint) => textOf(past, proofs, { key, limit, paint }));
    return exitCodes.done;
  });
}

function textOf(
  writes: readonly Past[],
  proofs: readonly PastProof[],
  { key, limit, paint }: { key: ResourceKey | undefined; limit: number; paint: Paint },
): string {
  const dim = (text: string) => paint('dim', text);
  let run: string | undefined;
  const lines = [
    ...writes.map((past) => ({ at: past.intent.createdAt, run: past.run, lines: intentLines(past, dim) })),
    ...proofs.map((proof) => ({ at: proof.at, run: undefined, lines: proofLines(proof, dim) })),
  ]
    .sort((one, other) => other.at - one.at)
    .slice(0, limit)
    .flatMap((each) => {
      const isFirst = each.run !== undefined && each.run !== run;
      if (isFirst) run = each.run;
      return isFirst ? [paint('bold', `run ${each.run}`), ...each.lines] : each.lines;
    });
  if (lines.length > 0) return `${lines.join('\n')}\n`;
  return `This state has sent no write${key === undefined ? '' : ` for ${key}`}.\n`;
}

/** A write, its run, and the id of its resource. */
interface Past {
  readonly run: string;
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

function proofJson(proof: PastProof): Record<string, unknown> {
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
function intentJson({ run, intent, resourceId }: Past): Record<string, unknown> {
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
    run,
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

function intentLines({ intent, resourceId }: Past, dim: (text: string) => string): string[] {
  const { key, verb, detail, requestId, sends, idempotencyKey } = intent;
  const taskId = partsOf(intent).answer?.taskId;
  const end =
    intent.phase === 'closed'
      ? endText(endWord(intent) ?? intent.outcome, intent.closedAt - intent.createdAt)
      : phaseWord(intent.phase);
  const facts = [
    ...(resourceId === undefined ? [] : [`id ${resourceId}`]),
    ...(requestId === undefined ? [] : [`request ${requestId}`]),
    ...(taskId === undefined ? [] : [`task ${taskId}`]),
    `idempotency key ${idempotencyKey}`,
    ...(sends === 1 ? [] : [sends === 0 ? 'not sent' : `sent ${sends} times`]),
  ];
  const details = detail === '' ? [] : [dim(`    ${printable(detail)}`)];
  return [
    `${moment(intent.createdAt)}  ${verb} ${printable(key)}: ${end}`,
    dim(`    ${printable(facts.join(', '))}`),
    ...details,
  ];
}
