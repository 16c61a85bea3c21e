import { hash } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import { maskerOf } from '../core/hidden-texts.ts';
import type { ApiAnswer } from './answer.ts';
import type { Budget } from './budget.ts';
import type { ApiLogger, Call } from './call.ts';
import type { TokenLevel } from './token-record.ts';

/** The two budgets of one token, which the API counts separately. @source API §8 */
export type Budgets = Readonly<Record<Call['bucket'], Budget>>;

/** One of the tokens that requests may go out under. */
export interface PooledToken {
  readonly secret: string;
  /** Removes the secret from a text. */
  readonly mask: (text: string) => string;
  /** A hash, which names the token's budgets too. */
  readonly name: string;
  readonly budgets: Budgets;
}

/** The id that a `GET /project` under one token showed; `unknown`: no answer, or one that decides nothing. */
export type ProjectCheck = number | 'refused' | 'unknown';

interface TokenPoolOptions {
  readonly baseUrl: string;
  /** Read each time, so that a token that was exchanged is used at once. */
  readonly secrets: () => string | readonly string[];
  /** The only project that requests may go to; the engine has a fence of its own. */
  readonly projectId?: number | undefined;
  readonly clock: Clock;
  readonly logger: ApiLogger;
  readonly budgets: (name: string) => Budgets;
  /** `GET /project` under this token, within its own budget. */
  readonly check: (token: PooledToken) => Promise<ProjectCheck>;
  /** The level of the token, as far as earlier processes have learnt it. */
  readonly level: (name: string) => Promise<TokenLevel>;
}

/** The highest age of the check of a token, in ms, for a write. The fence of the engine has the same limit. */
const checkValidMs = 60_000;
/** A token that was taken out, or could not be checked, is checked again after this, in ms. */
const outMs = 5 * 60_000;
const unknownMs = 5_000;

const refusedToken = 'the API refuses a token: vdcsync uses the other tokens';
const foreignToken = 'a token belongs to another project: vdcsync uses the other tokens';

interface PoolMember extends PooledToken {
  standing: 'unchecked' | 'in service' | 'out';
  foreign: boolean;
  /** Monotonic ms: when its project was read, and when it may be checked again. */
  checkedAt: number;
  checkAfter: number;
  checking: Promise<void> | undefined;
  /** Writes that the API refuses to it; `*`: every write. */
  readonly refuses: Set<string>;
  /** Warnings so far: each is logged once. */
  readonly warned: Set<string>;
}

/**
 * The tokens of one project, and the token of the next request. Each token has its own budget, and all tokens share the
 * idempotency keys, so k tokens allow k times the requests. A single token is used without a check. Of several tokens:
 *
 * ```
 * unchecked ──GET /project: the right one──▶ in service ──401──▶ out ──outMs──▶ unchecked
 *     └──────another project's, or 401─────▶ out
 * ```
 * Only tokens in service are used. A write needs a check that is at most `checkValidMs` old. If no token is in service,
 * reads use the first token that may be right, so that their answers name the cause, and writes are not sent.
 *
 * @source API §5, §8
 */
export class TokenPool {
  readonly #options: TokenPoolOptions;
  #members: readonly PoolMember[] = [];
  #mark = '';
  /** The one that had room for the write to come. */
  #claimed: PooledToken | undefined;

  constructor(options: TokenPoolOptions) {
    this.#options = options;
  }

  /** Reads the secrets again. Tokens that stay keep their budgets and their standing. */
  refresh(): void {
    const given = this.#options.secrets();
    const secrets = typeof given === 'string' ? [given] : [...new Set(given)];
    if (secrets.length === 0) usableToken('');
    const isSame =
      secrets.length === this.#members.length &&
      secrets.every((secret, at) => this.#members[at]?.secret === secret);
    if (isSame) return;
    const known = new Map(this.#members.map((member) => [member.secret, member]));
    this.#members = secrets.map((secret) => known.get(secret) ?? this.#member(usableToken(secret)));
    const names = this.#members.map(({ name }) => name);
    this.#mark = names.length === 1 ? (names[0] ?? '') : nameOf([...names].sort().join('\n'));
  }

  /** Names the current tokens: equal marks, equal tokens. */
  get mark(): string {
    return this.#mark;
  }

  /** Several tokens share the work. */
  get isShared(): boolean {
    return this.#members.length > 1;
  }

  get names(): readonly string[] {
    return this.#members.map(({ name }) => name);
  }

  get only(): PooledToken {
    return this.#members[0] as PoolMember;
  }

  /** Whether the token is still one of them, and may serve the call. */
  holds(token: PooledToken, call: Call): boolean {
    const isMember = this.#members.some((each) => each === token);
    if (!isMember || !this.isShared) return isMember;
    const able = this.#able(call);
    return able.length === 0 || able.some((each) => each === token);
  }

  /** Resolves once every token that may be used is checked, and so is the one that the call would take now. */
  async ready(call: Call, tried: ReadonlySet<PooledToken>): Promise<void> {
    for (;;) {
      await this.#checkAll();
      const next = this.#next(call, tried);
      const isOld = next !== undefined && this.#options.clock.monotonic() - next.checkedAt > checkValidMs;
      if (call.bucket === 'reads' || !isOld) return;
      await this.#check(next);
    }
  }

  /** The token for the call whose budget has room first. Synchronous, so that parallel calls consider each other. */
  choose(call: Call, tried: ReadonlySet<PooledToken>): PooledToken {
    return this.#next(call, tried) ?? this.#lastResort(call);
  }

  /** The same for a write to come, which then takes this token if it can. */
  claim(call: Call): PooledToken {
    this.#claimed = undefined;
    const token = this.choose(call, new Set());
    this.#claimed = token;
    return token;
  }

  /** Keeps slots of the read budgets free for the reads of further writes, or no longer. */
  reserveReads(isWriteWaiting: boolean): void {
    for (const { budgets } of this.#members) budgets.reads.reserve(isWriteWaiting ? budgets.writes.limit : 0);
  }

  /** The estimated time until this number of writes can be sent, in ms. Of more than the limits allow: until all can be. */
  roomMs(writes: number): number {
    const times = this.#usable()
      .flatMap(({ budgets }) => budgets.writes.slotsInMs())
      .sort((a, b) => a - b);
    return times[Math.min(writes, times.length) - 1] ?? 0;
  }

  writesPerWindow(): number {
    return Math.max(
      1,
      this.#usable().reduce((sum, { budgets }) => sum + budgets.writes.limit, 0),
    );
  }

  #usable(): readonly PoolMember[] {
    return this.#members.filter(({ standing }) => !this.isShared || standing === 'in service');
  }

  #next(call: Call, tried: ReadonlySet<PooledToken>): PoolMember | undefined {
    const able = this.#able(call).filter((member) => !tried.has(member));
    const claimed = call.bucket === 'writes' ? able.find((each) => each === this.#claimed) : undefined;
    return claimed ?? soonest(able, call);
  }

  /** The token has said no to the call. Whether another one may be asked in its place. */
  learn(token: PooledToken, call: Call, answer: ApiAnswer): boolean {
    const member = this.#members.find((each) => each === token);
    if (!this.isShared || member === undefined || answer.replayed || answer.sort !== 'problem') return false;
    const { status, problem } = answer;
    if (status === 401) {
      member.standing = 'out';
      member.checkAfter = this.#options.clock.monotonic() + outMs;
      this.#warn(member, refusedToken);
    }
    if (status === 403 && call.bucket === 'writes') {
      const isReadOnly = problem.code === 'insufficient_scope';
      member.refuses.add(isReadOnly ? '*' : (call.sort ?? '*'));
      this.#warn(
        member,
        isReadOnly ? 'a token may only read: vdcsync uses it for reads' : 'a token may not do this write',
      );
    }
    const others = this.#able(call).filter((each) => each !== member);
    if (status === 401 || status === 403) return others.length > 0;
    return status === 429 && others.some(({ budgets }) => !budgets[call.bucket].isClosed());
  }

  #able({ bucket, sort = '' }: Call): PoolMember[] {
    return this.#members.filter(
      ({ standing, refuses }) =>
        standing === 'in service' && (bucket === 'reads' || !(refuses.has('*') || refuses.has(sort))),
    );
  }

  /** For a call without a usable token: the answer names the cause. No write uses the token of another project. */
  #lastResort({ bucket, sort = '' }: Call): PoolMember {
    const right = this.#members.filter(({ foreign }) => !foreign);
    if (bucket === 'reads') return (right[0] ?? this.#members[0]) as PoolMember;
    // The operator has to see its refusal, for example that of a read-only token.
    const refused = right.find(
      ({ standing, refuses }) => standing === 'in service' && (refuses.has('*') || refuses.has(sort)),
    );
    const { clock } = this.#options;
    if (refused !== undefined && clock.monotonic() - refused.checkedAt <= checkValidMs) return refused;
    throw new ConfigError(
      'vdcsync has not verified that a token belongs to the project, so it writes nothing.',
    );
  }

  async #checkAll(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const due = this.#members.filter(
      ({ standing, checkAfter }) => standing !== 'in service' && checkAfter <= now,
    );
    await Promise.all(due.map((member) => this.#check(member)));
  }

  #check(member: PoolMember): Promise<void> {
    member.checking ??= this.#checkOnce(member).finally(() => {
      member.checking = undefined;
    });
    return member.checking;
  }

  async #checkOnce(member: PoolMember): Promise<void> {
    const { clock, check, level, projectId } = this.#options;
    const startedAt = clock.monotonic();
    const [found, { passed, refused }] = await Promise.all([
      check(member),
      level(member.name),
      member.budgets.writes.load(),
    ]);
    const now = clock.monotonic();
    if (refused?.code === 'insufficient_scope' && passed === undefined) member.refuses.add('*');
    if (found === 'unknown') {
      if (member.standing === 'in service') member.standing = 'unchecked';
      member.checkAfter = now + unknownMs;
      return;
    }
    const isRight = found !== 'refused' && (projectId === undefined || found === projectId);
    member.foreign = found !== 'refused' && !isRight;
    member.standing = isRight ? 'in service' : 'out';
    member.checkedAt = startedAt;
    member.checkAfter = now + outMs;
    if (isRight) member.warned.delete(refusedToken);
    else this.#warn(member, member.foreign ? foreignToken : refusedToken);
  }

  #warn(member: PoolMember, message: string): void {
    if (member.warned.has(message)) return;
    member.warned.add(message);
    // Counted from one, like the lines of a file: no log shows the token itself.
    const tokenNumber = this.#members.indexOf(member) + 1;
    this.#options.logger.warn({ tokenNumber, tokens: this.#members.length }, message);
  }

  #member(secret: string): PoolMember {
    const name = nameOf(`${this.#options.baseUrl}\n${secret}`);
    return {
      ...{
        secret,
        mask: maskerOf([{ value: secret, shown: '***' }]),
        name,
        budgets: this.#options.budgets(name),
      },
      ...{ standing: 'unchecked', foreign: false, checking: undefined },
      ...{ checkedAt: Number.NEGATIVE_INFINITY, checkAfter: Number.NEGATIVE_INFINITY },
      ...{ refuses: new Set<string>(), warned: new Set<string>() },
    };
  }
}

function soonest(members: readonly PoolMember[], { bucket, priority }: Call): PoolMember | undefined {
  let best: { readonly member: PoolMember; readonly waitMs: number } | undefined;
  for (const member of members) {
    const waitMs = member.budgets[bucket].expectedWaitMs(priority);
    if (best === undefined || waitMs < best.waitMs) best = { member, waitMs };
  }
  return best?.member;
}

/** The hash, not the token, names the budget: the state and logs hold this name. */
function nameOf(text: string): string {
  return hash('sha256', text).slice(0, 16);
}

/** The token as a header can carry it. No message holds its text. */
function usableToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ConfigError(
    token === ''
      ? 'The API token is empty: set VDC_TOKEN or VDC_TOKEN_FILE.'
      : 'The API token has spaces, line breaks or characters that are not possible in a header.',
  );
}
