import type { Answer } from '../../api/answer.ts';
import type { UndocumentedOperation } from '../../core/profile.ts';
import { TransportError } from '../../core/transport.ts';
import type { Session } from '../compose.ts';
import { type Finding, finding, ok } from './findings.ts';

/** Where an operation may be, and the method that would carry it out. */
interface Candidate {
  readonly operation: UndocumentedOperation;
  readonly method: string;
  readonly path: string;
}

/**
 * A path that exists answers 405 to a method that it does not take, with those that it
 * does: so a GET tells of a PUT or DELETE without sending one. @source API §4 rule 7
 */
const candidates: readonly Candidate[] = [
  { operation: 'list_servers', method: 'GET', path: '/servers' },
  { operation: 'read_server', method: 'GET', path: '/servers/{id}' },
  {
    operation: 'remove_network_interface',
    method: 'DELETE',
    path: '/servers/{id}/network-interfaces/{card}',
  },
  { operation: 'resize_server', method: 'PUT', path: '/servers/{id}/resources' },
  { operation: 'resize_server', method: 'POST', path: '/servers/{id}/resize' },
  { operation: 'eject_iso', method: 'DELETE', path: '/servers/{id}/iso' },
  { operation: 'delete_backup', method: 'DELETE', path: '/servers/{id}/backups/{backup}' },
];

/** Asks by GET alone, a request for each candidate path. */
export async function probeOperations(session: Session): Promise<Finding[]> {
  const servers = (await session.reads.ips()).flatMap(({ server_id }) => server_id ?? []);
  const [server] = servers;
  const findings: Finding[] = [];
  const values: Record<string, string | number | undefined> = { id: server };
  if (server !== undefined) {
    values.card = (await session.reads.findNetworkInterfaces(server))?.[0]?.id;
    values.backup = (await session.reads.findBackups(server))?.[0]?.id;
  }
  for (const candidate of candidatesFor(session)) {
    const path = filled(candidate.path, values);
    const enabled = session.profile.operations[candidate.operation] !== undefined;
    const judged = path === undefined ? untried(candidate) : await judge(session, candidate, path, enabled);
    findings.push(judged);
  }
  findings.push(
    finding(
      'probe:update_backup_policy',
      'unknown',
      'whether a backup policy can be changed no read tells: its path answers GET, whatever else it takes',
    ),
  );
  return findings;
}

/** Where the API profile has an operation, that is the place that matters. */
function candidatesFor({ profile }: Session): Candidate[] {
  const seen = new Set<UndocumentedOperation>();
  return candidates.flatMap((candidate) => {
    const template = profile.operations[candidate.operation];
    if (template === undefined) return [candidate];
    if (seen.has(candidate.operation)) return [];
    seen.add(candidate.operation);
    const [first, second] = candidate.path.match(/\{\w+\}/g) ?? [];
    const names = [first, second];
    const path = template.path?.replace(/\{\w+\}/g, (name) => names.shift() ?? name) ?? candidate.path;
    return [{ ...candidate, method: template.method ?? candidate.method, path }];
  });
}

function filled(
  path: string,
  values: Readonly<Record<string, string | number | undefined>>,
): string | undefined {
  let complete = true;
  const text = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    complete &&= values[name] !== undefined;
    return encodeURIComponent(String(values[name]));
  });
  return complete ? text : undefined;
}

function untried({ operation, method, path }: Candidate): Finding {
  const lacking = path.includes('{backup}') ? 'server with a backup' : 'server with a public address';
  return finding(
    `probe:${operation}`,
    'unknown',
    `${method} ${path} was not tried: there is no ${lacking} to try it on`,
  );
}

async function judge(
  session: Session,
  candidate: Candidate,
  path: string,
  enabled: boolean,
): Promise<Finding> {
  const { operation, method, path: pattern } = candidate;
  const id = `probe:${operation}`;
  const what = `${method} ${pattern}`;
  let answer: Answer;
  try {
    answer = await session.probe(path);
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return finding(id, 'unknown', `${what}: no answer (${error.code})`);
  }
  if (answers(answer, method)) {
    if (enabled) return ok(id, `${what} is there, and the API profile enables ${operation}`);
    const template = `${operation}: {method: ${method}, path: "${pattern.replace('{id}/', '{server_id}/').replace(/\{(card|backup)\}/, '{id}')}"}`;
    const unsure = method === 'GET' ? '' : "; what it takes and does the API's owner has to confirm";
    return finding(
      id,
      'info',
      `${what} is there, though undocumented${unsure}`,
      `to use it, write into the API profile: operations: {${template}}`,
    );
  }
  const [level, advice] = enabled
    ? (['warning', 'the API profile enables it there: correct its path, or take it out'] as const)
    : (['info', null] as const);
  return finding(
    id,
    level,
    `${what} is not there (${answer.status}${answer.allow === undefined ? '' : `, takes ${answer.allow.join(', ')}`})`,
    advice,
  );
}

function answers(answer: Answer, method: string): boolean {
  return method === 'GET' ? answer.status === 200 : (answer.allow?.includes(method) ?? false);
}
