import { probedCreations } from '../../api/writes.ts';
import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import { command } from '../../core/remedy.ts';
import { capitalised } from '../../core/text.ts';
import { answerText } from '../../engine/intents/outcome.ts';
import { type KeyBehaviour, observeKeys } from '../../engine/intents/probe-key.ts';
import { systemRandom } from '../../platform/system.ts';
import type { Session } from '../compose.ts';
import { check, type Finding } from './findings.ts';
import { levelAdvice } from './remote.ts';

/**
 * Reports for each creation whether the API treats idempotency keys as one of the modelled readings of its document: by
 * requests that are invalid twice over, under a spare key. A backup has no body that the API must refuse, so no request for
 * one is sent.
 *
 * @param project the project of the spec; `undefined`: it is unknown, or not that of the token, and nothing is sent
 * @source API §4 rule 3, §8.1 to §8.4
 */
export async function probeKeys(session: Session, project: number | undefined): Promise<Finding[]> {
  if (project === undefined) {
    const reason =
      'vdcsync sends no write here, because neither a spec nor a state names the project of the token';
    return [check.unknown('idempotency_keys', reason, [command('doctor', ['--probe-writes', '-f', 'FILE'])])];
  }
  const findings: Finding[] = [];
  for (const request of await requestsFor(session)) {
    const one = await probeOne(session, request, project);
    findings.push(one);
    if (one.level === 'error' || one.level === 'unknown') break;
  }
  return findings;
}

async function requestsFor({ reads }: Session): Promise<readonly WriteRequest[]> {
  const server = (await reads.ips()).find(({ server_id }) => server_id !== null)?.server_id;
  return probedCreations.flatMap(({ name, inServer }): WriteRequest[] => {
    if (!inServer) return [{ name, path: {} }];
    return server == null ? [] : [{ name, path: { server_id: server } }];
  });
}

async function probeOne(
  { reads, writes }: Session,
  request: WriteRequest,
  project: number,
): Promise<Finding> {
  const id = `keys:${request.name}`;
  let accepted = false;
  const behaviour = await observeKeys(
    () => systemRandom.next(),
    async (key, probe) => {
      await writes.room();
      const token = writes.token();
      const live = await reads.project();
      if (live.id !== project)
        return { type: 'unsent', reason: `the token now belongs to project ${live.id}` };
      const result = await writes.send({ ...request, probe }, key, token);
      accepted ||= result.type === 'answer' && result.status < 300;
      return result;
    },
  );
  if (accepted)
    return check.error(
      id,
      `the API accepted ${request.name} with an invalid body, and may have created a resource`,
      'check the client area, and report this to the provider: vdcsync is not safe with this API',
    );
  return 'type' in behaviour ? inconclusive(id, behaviour) : judge(id, behaviour);
}

function inconclusive(id: string, result: WriteResult): Finding {
  const reason = result.type === 'answer' ? answerText(result) : result.reason;
  const name = id.replace('keys:', '');
  if (result.type === 'answer' && result.status === 403)
    return check.error('token_level', `the API refused ${name} with ${reason}`, levelAdvice);
  return check.unknown(id, `the API did not judge the request: ${reason}`, [
    command('doctor', ['--probe-writes']),
  ]);
}

/** A lost answer is settled by reads alone. */
const byReads =
  'after a lost answer, vdcsync cannot use the idempotency key: it decides by reads, and then sends the same request again';

function judge(id: string, { storesRefusals, reuse, deviation }: KeyBehaviour): Finding {
  if (storesRefusals) {
    const order =
      reuse === undefined
        ? 'the API checks the body before the key'
        : `the API checks the key before the body, and refuses a reused key with ${reuse.status} ${reuse.code}`;
    return check.ok(
      id,
      `vdcsync can find out the outcome after a lost answer: the API stores refusals and answers with them again. ${capitalised(order)}`,
    );
  }
  const advice =
    'write `unconfirmed_servers: ask` under `settings`, if you create servers without a public address';
  return check.warning(id, `${deviations[deviation ?? 'unnamed']}. So ${byReads}`, advice);
}

const differs = 'which differs from the API document';
const deviations: Readonly<Record<NonNullable<KeyBehaviour['deviation']>, string>> = {
  not_replayed: 'the API does not store refusals',
  unnamed: `the API refuses an unknown field without naming the field, ${differs}`,
  not_refused: `the API accepts another body under a used key, ${differs}`,
  replaced: `the API replaces the stored answer by a refusal of another body, ${differs}`,
};
