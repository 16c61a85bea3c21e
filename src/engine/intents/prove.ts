import { member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import type { ProofChecks, World } from '../../core/kind.ts';
import type { Operation } from '../../core/plan.ts';
import type { WriteName, WriteRequest, WriteResult } from '../../core/ports.ts';
import { command, outside, type Remedy } from '../../core/remedy.ts';
import type { StateStore } from '../../core/state.ts';
import { correction, makingRoom } from '../../plan/open-writes.ts';
import type { Run } from '../run.ts';
import { contextOf, sendFenced } from './begin.ts';
import { again, type Progress } from './endings.ts';
import { answerText, endedByDeletion, namesProbe, type ProofAnswer, pauses, proofAnswer } from './outcome.ts';
import { pauseIfRefused, spareKey } from './probe-key.ts';
import { creationAfter } from './revalidate.ts';

const minute = 60_000;
/** How long a proof counts: from the answer to the deletion that it permits. */
const validMs = 10 * minute;
/** How long a process asks again, before the run ends without the deletion. */
const mostSilentMs = 10 * minute;

/** The result of a proof. */
export type Proof =
  /** The API refuses only the unknown field. `unproven`: fields that this API may check in a creation alone. */
  | { readonly is: 'proved'; readonly unproven: readonly string[] }
  /** No value is refused, but the state of the project conflicts with the creation. */
  | {
      readonly is: 'conflict';
      readonly unproven: readonly string[];
      readonly code: string;
      readonly reason: string;
    }
  | {
      readonly is: 'refused';
      readonly code: string;
      readonly reason: string;
      /** The parameters that the refusal names. */
      readonly parameters: readonly string[];
      readonly result: WriteResult;
    }
  | { readonly is: 'unanswered'; readonly reason: string; readonly afterMs: number };

/** The fields of an operation whose values the API checks next to an unknown field, as a refusal has shown. */
export interface ProofReach {
  /** The refusal names the unknown field. Otherwise no proof is sent, because the API might carry it out. */
  readonly refusesUnknown: boolean;
  /** The fields of the request. */
  readonly asked: readonly string[];
  /** Those that the refusal names. */
  readonly checks: readonly string[];
}

/** The note of the state that holds the reach of proofs, by operation. */
const noteName = 'proof_reach';

/** The reach of proofs of each calibrated operation. */
async function knownReach(
  store: Pick<StateStore, 'note'>,
): Promise<Readonly<Partial<Record<WriteName, ProofReach>>>> {
  const note: unknown = await store.note(noteName);
  if (typeof note !== 'object' || note === null) return {};
  return Object.fromEntries(Object.entries(note).filter(([, each]) => isReach(each)));
}

/** The fields that proofs check, by write. A write whose proofs check nothing has no fields. */
export async function knownChecks(store: Pick<StateStore, 'note'>): Promise<ProofChecks> {
  const known = Object.entries(await knownReach(store));
  return Object.fromEntries(
    known.map(([name, { refusesUnknown, checks }]) => [name, refusesUnknown ? checks : []]),
  );
}

function isReach(value: unknown): value is ProofReach {
  const isTexts = (name: string) => {
    const texts: unknown = member(value, name);
    return Array.isArray(texts) && texts.every((each) => typeof each === 'string');
  };
  return typeof member(value, 'refusesUnknown') === 'boolean' && isTexts('asked') && isTexts('checks');
}

/** Whether the request has a body that can take an unknown field. */
export function isProvable({ body }: WriteRequest): boolean {
  return typeof body === 'object' && body !== null && !Array.isArray(body);
}

/**
 * Proves the body of a creation: the same body with an unknown field cannot be carried out, and the refusal names the
 * values that the API refuses. Part of a turn to write.
 *
 * @source API §4 rule 3, §7
 */
export async function prove(run: Run, key: ResourceKey, request: WriteRequest): Promise<Proof> {
  const reach = await reachOf(run, key, request);
  if ('is' in reach) return reach;
  const unproven = fieldsOf(request).filter((name) => !reach.checks.includes(name));
  if (!reach.refusesUnknown) return { is: 'proved', unproven };
  const sent = await sendRecorded(run, key, { ...request, probe: 'proof' });
  if (sent.answer.shows === 'carried_out')
    await keepReach(run, request, { ...reach, refusesUnknown: false, checks: [] });
  return endedBy(sent, unproven) ?? { is: 'proved', unproven };
}

/**
 * The reach of proofs of the operation. The first proof calibrates it by a request with impossible values next to the
 * unknown field (@assumption A73). If the answer is about something else, the calibration starts again later.
 */
async function reachOf(run: Run, key: ResourceKey, request: WriteRequest): Promise<ProofReach | Proof> {
  const known = (await knownReach(run.deps.store))[request.name];
  const fields = fieldsOf(request);
  if (known !== undefined && fields.every((name) => known.asked.includes(name))) return known;
  const sent = await sendRecorded(run, key, { ...request, probe: 'impossible' });
  const { result, answer } = sent;
  const isOfBody = answer.shows === 'objection' || answer.shows === 'no_objection';
  if (result.type !== 'answer' || pauses[result.status] !== undefined || !isOfBody)
    return endedBy(sent, fields) ?? { is: 'proved', unproven: fields };
  const named = answer.shows === 'objection' ? answer.parameters : [];
  const checks = fields.filter((name) => named.some((each) => each.split(/[^\w-]+/).includes(name)));
  return keepReach(run, request, {
    refusesUnknown: namesProbe(result),
    asked: [...new Set([...(known?.asked ?? []), ...fields])],
    checks: [...new Set([...(known?.checks ?? []), ...checks])],
  });
}

async function keepReach(run: Run, { name }: WriteRequest, reach: ProofReach): Promise<ProofReach> {
  const { store } = run.deps;
  await store.putNote(noteName, { ...(await knownReach(store)), [name]: reach });
  return reach;
}

/** The fields that are sent: a request leaves out a field without a value. */
function fieldsOf({ body }: WriteRequest): readonly string[] {
  return Object.entries(Object(body)).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

interface Sent {
  readonly result: WriteResult;
  readonly answer: ProofAnswer;
}

/** Sends a request that cannot be carried out, under a spare key. The journal has it first, and then its answer. */
async function sendRecorded(run: Run, key: ResourceKey, request: WriteRequest): Promise<Sent> {
  const { store, random, clock } = run.deps;
  const proof = { idempotencyKey: spareKey(random.next), request };
  await store.claimProject(run.desired.projectId);
  await store.change([{ type: 'proof', key, proof }], clock.now());
  const result = await sendFenced(run, request, proof.idempotencyKey);
  const isAnswer = result.type === 'answer';
  const answer = isAnswer
    ? { text: answerText(result), requestId: result.requestId }
    : { text: result.reason };
  await store.change([{ type: 'proof', key, proof: { ...proof, answer } }], clock.now());
  return {
    result,
    answer: isAnswer ? proofAnswer(result) : { shows: 'nothing', reason: result.reason, afterMs: 5_000 },
  };
}

function endedBy({ result, answer }: Sent, unproven: readonly string[]): Proof | undefined {
  switch (answer.shows) {
    case 'nothing':
      return { is: 'unanswered', reason: answer.reason, afterMs: answer.afterMs };
    case 'conflict':
      return { is: 'conflict', unproven, code: answer.code, reason: answer.reason };
    case 'objection':
      return { is: 'refused', ...answer, result };
    case 'carried_out': {
      const reason =
        'the API accepted a request with an unknown field, and may have created a resource: check the client area';
      return { is: 'refused', code: 'contract_breach', reason, parameters: [], result };
    }
    case 'no_objection':
      return undefined;
  }
}

function ending(): Remedy {
  return outside('end the conflict in the client area', { next: [command('apply')] });
}

/**
 * Proves the creation that follows a deletion of the same key, before the deletion is sent. Returns `undefined` if the
 * deletion may be sent.
 */
export async function provedBefore(
  run: Run,
  world: World,
  operation: Pick<Operation, 'key' | 'verb'>,
): Promise<Progress | undefined> {
  const creation = creationAfter(run, world, operation.key, operation.verb);
  if (creation === undefined || creation.key !== operation.key) return undefined;
  const { key, kind, verb } = creation;
  const request = run.kindOf(kind).writes.request(contextOf(run, creation, world));
  if (!isProvable(request)) return undefined;
  const { clock, profile, writes } = run.deps;
  const id = writes.digest({ ...request, probe: 'proof' });
  const { stopwatch } = run;
  if (stopwatch.isMarked(id, 'proved') && stopwatch.since(id, 'proved', 0) <= validMs) return undefined;
  run.report(operation, 'checking', 'whether the API accepts the new resource: this request creates nothing');
  const proof = await prove(run, key, request);
  switch (proof.is) {
    case 'conflict': {
      const { replace } = world.subjects.get(key)?.desired?.value ?? {};
      const isAskedFor = typeof replace === 'object' && replace.order === 'delete_first';
      if (!isAskedFor && !endedByDeletion.has(proof.code)) {
        const reason = `${proof.reason}. Nothing was deleted`;
        return { now: 'blocked', code: proof.code, reason, remedies: [makingRoom(key), ending()] };
      }
      stopwatch.mark(id, 'proved');
      return undefined;
    }
    case 'proved':
      stopwatch.mark(id, 'proved');
      return undefined;
    case 'refused': {
      const { code, reason, parameters, result } = proof;
      const paused = await pauseIfRefused(run, { kind, verb, request }, result);
      if (paused !== undefined) return { now: 'blocked', ...paused };
      const remedies = [correction(world.subjects.get(key)?.desired, parameters)];
      return { now: 'blocked', code, reason: `${reason}. Nothing was deleted`, remedies };
    }
    case 'unanswered': {
      if (!stopwatch.isMarked(id, 'silent')) stopwatch.mark(id, 'silent');
      const { reason } = proof;
      if (stopwatch.since(id, 'silent', 0) >= mostSilentMs)
        return { now: 'blocked', code: 'key_not_answered', reason: `${reason}. Nothing was deleted` };
      const afterMs = proof.afterMs * profile.timeScale;
      run.report(operation, 'waiting', reason, { untilMs: clock.now() + afterMs });
      return again(afterMs);
    }
  }
}
