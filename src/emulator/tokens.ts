import { hash } from 'node:crypto';
import { Refusal } from './problem.ts';
import type { Token, World } from './world.ts';

/** The secrets of one project's tokens, the same for the same seed. */
export interface ProjectTokens {
  readonly readWrite: string;
  readonly read: string;
  /** A team member's token: read and write. By default it may not delete servers or release addresses. */
  readonly member: string;
}

const TOKEN_NAMES = ['readWrite', 'read', 'member'] as const;

/** The operations that the seed world's team member may not do. `@assumption A38` */
const MEMBER_REFUSED: readonly string[] = ['delete_server', 'release_ip'];

/** Derives a project's secrets; the world itself keeps only their fingerprints. */
export function projectTokens(seed: string, projectId: number): ProjectTokens {
  const secret = (name: string) =>
    `vdc_${hash('sha256', `token:${seed}:${projectId}:${name}`, 'base64url').slice(0, 40)}`;
  return { readWrite: secret('readWrite'), read: secret('read'), member: secret('member') };
}

/** The fingerprint of a secret. Only the fingerprint may be stored. `@source API §5.2` */
export function fingerprint(secret: string): string {
  return hash('sha256', secret);
}

/** The three tokens a project of the seed world has. */
export function seedTokens(seed: string, projectId: number): Token[] {
  const secrets = projectTokens(seed, projectId);
  return TOKEN_NAMES.map((name) => ({
    name: `${projectId}-${name}`,
    projectId,
    level: name === 'read' ? 'read' : 'read_write',
    fingerprint: fingerprint(secrets[name]),
    revoked: false,
    expiresMs: null,
    refusedOperations: name === 'member' ? [...MEMBER_REFUSED] : [],
  }));
}

/**
 * The token of an `Authorization` header. Throws 401 when it is missing, unknown,
 * revoked or expired. `@source API §5` `@assumption A37`
 */
export function authenticate(world: World, header: string | undefined, nowMs: number): Token {
  const secret = secretIn(header);
  const token = knownToken(world, header);
  if (token === undefined || token.revoked || (token.expiresMs !== null && token.expiresMs <= nowMs)) {
    throw new Refusal(
      401,
      'unauthenticated',
      secret === undefined ? 'A bearer token is needed.' : 'The token is not valid.',
      { headers: { 'www-authenticate': 'Bearer' } },
    );
  }
  return token;
}

/** The token of the header, valid or not. */
export function knownToken(world: World, header: string | undefined): Token | undefined {
  const secret = secretIn(header);
  const print = secret === undefined ? undefined : fingerprint(secret);
  return world.tokens.find((candidate) => candidate.fingerprint === print);
}

function secretIn(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1];
}

/** Throws 403 if the level of the token or the permissions of its member do not allow the operation. `@source API §5` */
export function authorise(token: Token, operation: string, method: string): void {
  if (method !== 'GET' && token.level === 'read') {
    throw new Refusal(403, 'insufficient_scope', 'The token may only read.');
  }
  if (token.refusedOperations.includes(operation)) {
    throw new Refusal(403, 'insufficient_privileges', 'The team member may not do this.');
  }
}
