import { probedCreations } from '../../api/write-requests.ts';
import type { WriteRequest, WriteResult } from '../../core/ports.ts';
import { run } from '../../core/remedy.ts';
import { type KeyBehaviour, observeKeys } from '../../engine/intents/calibrate.ts';
import { told } from '../../engine/intents/outcome.ts';
import { systemRandom } from '../../platform/system-random.ts';
import type { Session } from '../compose.ts';
import { type Finding, finding, ok } from './findings.ts';

/**
 * Reports for each creation whether the API treats idempotency keys as one of the modelled readings of its document: by
 * requests that are invalid twice over, under a spare key. A backup has no body that the API must refuse, so no request for
 * one is sent.
 *
 * @param project the project of the file; `undefined`: it is unknown, or not that of the token, and nothing is sent
 * @source API §4 rule 3, §8.1 to §8.4
 */
export async function probeKeys(session: Session, project: number | undefined): Promise<Finding[]> {
  if (project === undefined) {
    const reason = 'no write is sent, because no file or state names the project of the token';
    return [
      finding('idempotency_keys', 'unknown', reason, [run('doctor', ['--probe-writes', '-f', 'FILE'])]),
    ];
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
    return finding(
      id,
      'error',
      `${request.name} was accepted with an invalid body, and may have created something`,
      'check the client area, and report it to the provider; vdcsync is not safe with this API',
    );
  return 'type' in behaviour ? inconclusive(id, behaviour) : judge(id, behaviour);
}

function inconclusive(id: string, result: WriteResult): Finding {
  const reason = result.type === 'answer' ? told(result) : result.reason;
  return finding(id, 'unknown', `the API did not judge the request: ${reason}`, [
    run('doctor', ['--probe-writes']),
  ]);
}

/** A lost answer is settled by reads alone. */
const byReads =
  'a lost answer is not settled by the idempotency key: reads decide, and then the same request is sent again';

function judge(id: string, { storesRefusals, reuse, deviation }: KeyBehaviour): Finding {
  if (storesRefusals) {
    const order =
      reuse === undefined
        ? 'bodies are checked before keys'
        : `keys are looked up before bodies, and a reused key is refused by ${reuse.status} ${reuse.code}`;
    return ok(
      id,
      `vdcsync can settle a lost answer by itself: the API stores and replays refusals; ${order}`,
    );
  }
  const advice = 'use `unconfirmed_servers: ask` under `settings` for servers that no read shows';
  if (deviation === 'not_replayed')
    return finding(id, 'warning', `refusals of a body are not stored; ${byReads}`, advice);
  return finding(
    id,
    'warning',
    `${deviations[deviation ?? 'unnamed']}, which no modelled reading does; ${byReads}`,
    advice,
  );
}

const deviations: Readonly<Record<Exclude<NonNullable<KeyBehaviour['deviation']>, 'not_replayed'>, string>> =
  {
    unnamed: 'the refusal of an unknown field does not name the field',
    not_refused: 'another body under a used key is not refused',
    replaced: 'the refusal of another body replaces the stored answer',
  };
