import type { ApiAnswer } from '../../api/answer.ts';
import { ApiProblem } from '../../core/errors.ts';
import type { UndocumentedOperation } from '../../core/profile.ts';
import type { ServerId } from '../../core/resources.ts';
import { TransportError } from '../../core/transport.ts';
import type { Session } from '../compose.ts';
import { check, type Finding } from './findings.ts';

/** Where an operation may be, and the method that would carry it out. */
type Candidate = ReturnType<typeof candidate>;

/**
 * An existing path answers 405 to a method that it does not accept, and lists the methods that
 * it accepts. So a GET shows whether a PUT or DELETE exists, without sending one. @source API §4 rule 7
 */
const candidates: readonly Candidate[] = [
  candidate('list_servers', 'GET', '/servers'),
  candidate('read_server', 'GET', '/servers/{id}'),
  candidate('remove_network_interface', 'DELETE', '/servers/{id}/network-interfaces/{interface}'),
  candidate('resize_server', 'PUT', '/servers/{id}/resources'),
  candidate('resize_server', 'POST', '/servers/{id}/resize'),
  candidate('insert_iso', 'PUT', '/servers/{id}/iso', '{iso_id: "{iso_id}"}'),
  candidate('eject_iso', 'DELETE', '/servers/{id}/iso'),
  candidate('take_server_image', 'POST', '/server-images', '{server_id: "{server_id}", name: "{name}"}'),
  candidate('delete_backup', 'DELETE', '/servers/{id}/backups/{backup}'),
];

/** @param body the payload that is most likely, if the document has method and path, but no payload. @source API §4 */
function candidate(operation: UndocumentedOperation, method: string, path: string, body?: string) {
  return { operation, method, path, body };
}

/** Asks by GET alone, once for each candidate path. */
export async function probeOperations(session: Session): Promise<Finding[]> {
  const attached = (await session.reads.ips()).flatMap(({ server_id }) => server_id ?? []);
  const server = await serverFor(session, [...new Set(attached)]);
  const findings: Finding[] = [];
  const values: PathValues = { id: server };
  if (server !== undefined) {
    values.interface = (await session.reads.findNetworkInterfaces(server))?.[0]?.id;
    values.backup = (await session.reads.findBackups(server))?.[0]?.id;
  }
  const asked = new Map<string, ProbeResult>();
  for (const each of candidatesFor(session)) {
    const path = filled(each.path, values);
    const enabled = session.profile.operations[each.operation] !== undefined;
    const seen = path === undefined ? undefined : (asked.get(path) ?? (await requestPath(session, path)));
    if (path !== undefined && seen !== undefined) asked.set(path, seen);
    findings.push(seen === undefined ? untried(each) : judge(each, seen, enabled));
  }
  findings.push(
    check.unknown('probe:update_backup_policy', 'a read cannot show whether the API changes backup policies'),
  );
  return findings;
}

/** How many servers are asked for their backups. */
const mostAsked = 10;

/** A server to try paths on, if possible one with a backup. */
async function serverFor(session: Session, attached: readonly ServerId[]): Promise<ServerId | undefined> {
  for (const id of attached.slice(0, mostAsked)) {
    if (((await session.reads.findBackups(id)) ?? []).length > 0) return id;
  }
  return attached[0] ?? (await listed(session));
}

/** The first server of the list. If the list is not at the path of the API profile, the list's own probe reports that. */
async function listed({ reads }: Session): Promise<ServerId | undefined> {
  try {
    return (await reads.servers?.())?.[0]?.id;
  } catch (error) {
    if (error instanceof ApiProblem) return undefined;
    throw error;
  }
}

/** The path of the API profile has priority over the default path of an operation. */
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

type PathValues = Record<string, string | number | undefined>;

/** `undefined` if a value of the path is missing. */
function filled(path: string, values: PathValues): string | undefined {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  if (names.some((name) => values[name] === undefined)) return undefined;
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])));
}

function untried({ operation, method, path }: Candidate): Finding {
  const lacking = path.includes('{backup}') ? 'server with a backup' : 'server with a public address';
  return check.unknown(
    `probe:${operation}`,
    `${method} ${path} was not tried, because the project has no ${lacking}`,
  );
}

/** The result of a GET: an answer, or the code of the reason why there is none. */
type ProbeResult = ApiAnswer | { readonly lost: string };

async function requestPath({ probe }: Session, path: string): Promise<ProbeResult> {
  try {
    const answer = await probe(path);
    // Its budget is closed until it is over, so that the second one waits.
    return answer.status === 429 ? await probe(path) : answer;
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return { lost: error.code };
  }
}

function judge(candidate: Candidate, seen: ProbeResult, enabled: boolean): Finding {
  const { operation, method, path, body } = candidate;
  const id = `probe:${operation}`;
  const what = `${method} ${path}`;
  if ('lost' in seen) return check.unknown(id, `${what}: no answer (${seen.lost})`);
  const { status, allow } = seen;
  const takes = allow === undefined ? '' : `; the path accepts ${allow.join(', ')}`;
  switch (verdictOf(seen, method)) {
    case 'there':
      if (enabled) return check.ok(id, `${what} is available, and the API profile enables ${operation}`);
      return check.info(id, `${what} is available, ${unsure(candidate)}`, entryFor(candidate));
    case 'unknown':
      return check.unknown(
        id,
        `${what}: a GET of this path answers ${status}, which does not show whether the operation exists`,
      );
    case 'absent': {
      const message = `${what} is not available (${status}${takes})${body === undefined ? '' : ', although it is documented'}`;
      if (!enabled) return check.info(id, message);
      // Every refresh sends the read, so nothing runs without it.
      return check[method === 'GET' ? 'error' : 'warning'](
        id,
        message,
        'the API profile enables the operation at this path: correct the path, or remove the operation',
      );
    }
  }
}

function unsure({ method, body }: Candidate): string {
  if (body !== undefined) return 'but its payload is not documented: ask the provider';
  return `but not documented${method === 'GET' ? '' : ': ask the provider about its payload and effect'}`;
}

function entryFor({ operation, method, path, body }: Candidate): string {
  const named = path.replace(/\{id\}(?=\/)/, '{server_id}').replace(/\{(interface|backup)\}/, '{id}');
  const payload = body === undefined ? '' : `, body: ${body}`;
  return `to use this operation, write into the API profile: operations: {${operation}: {method: ${method}, path: "${named}"${payload}}}`;
}

function verdictOf({ status, allow }: ApiAnswer, method: string): 'there' | 'absent' | 'unknown' {
  if (allow !== undefined) return allow.includes(method) ? 'there' : 'absent';
  if (status === 200 && method === 'GET') return 'there';
  return status === 404 || status === 405 ? 'absent' : 'unknown';
}
