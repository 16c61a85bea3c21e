import type { World } from '../core/kind.ts';
import type { Blocked, Verb } from '../core/plan.ts';
import type { Draft } from './draft.ts';
import { negated, sumDecimals } from './money.ts';

/** What guards need beside the drafts. */
export interface GuardInput {
  readonly world: World;
  /** A person, or an earlier pass, has vouched for what is in the project beside this file. */
  readonly trusted: boolean;
  /** `destroy`: everything managed may go, whatever `prune` says. */
  readonly destroy: boolean;
  /** Deletions that this run has carried out already. */
  readonly deletedBefore: number;
  /** Wall time in ms. */
  readonly now: number;
}

type Guard = (draft: Draft, input: GuardInput, totals: Totals) => Omit<Blocked, 'key'> | undefined;

interface Totals {
  readonly deletions: number;
  readonly knownIncrease: number;
  readonly strangers: Strangers;
}

/**
 * What holds an operation back although it could be done, most fundamental first.
 * The first guard that objects gives the reason.
 */
const guards: readonly Guard[] = [
  suspended,
  protect,
  prune,
  replacement,
  unmanaged,
  maxDeletions,
  maxIncrease,
];

export function guard(drafts: readonly Draft[], input: GuardInput): ReadonlyMap<Draft, Blocked> {
  const none = { deletions: 0, knownIncrease: 0, strangers: findStrangers(input.world) };
  const own = drafts.filter(({ diff }) => diff.verdict.verdict !== 'blocked');
  const allowed = own.filter((draft) =>
    guards.slice(0, 5).every((each) => each(draft, input, none) === undefined),
  );
  const totals = {
    deletions: allowed.filter(countsAsDeletion).length + input.deletedBefore,
    knownIncrease: Number(knownDelta(allowed)),
    strangers: none.strangers,
  };
  return new Map(
    drafts.flatMap((draft) => {
      const { verdict } = draft.diff;
      if (verdict.verdict === 'blocked') {
        const { verb, code, reason, resolve } = verdict;
        return [[draft, { key: draft.subject.key, verb, code, reason, resolve }]];
      }
      for (const each of guards) {
        const objection = each(draft, input, totals);
        if (objection !== undefined) return [[draft, { key: draft.subject.key, ...objection }]];
      }
      return [];
    }),
  );
}

/** What the allowed operations change of the monthly bill, as far as prices are known. */
export function knownDelta(drafts: readonly Draft[]): string {
  return sumDecimals(
    drafts.flatMap(({ diff }) => {
      if (diff.price === undefined || !('known' in diff.price)) return [];
      if (diff.verdict.verdict === 'create') return [diff.price.known];
      return diff.verdict.verdict === 'delete' ? [negated(diff.price.known)] : [];
    }),
  );
}

export interface Strangers {
  readonly servers: readonly number[];
  readonly addresses: readonly string[];
}

/** Resources that are billed and that neither the file nor the state names. */
export function findStrangers(world: World): Strangers {
  const ids = (kind: string) =>
    new Set(
      [...world.subjects.values()]
        .filter((subject) => subject.kind === kind)
        .flatMap(({ binding, desired }) => [binding?.id, desired?.id]),
    );
  const [servers, ips] = [ids('server'), ids('ip')];
  const attachedTo = world.ips.flatMap(({ server_id }) => (server_id === null ? [] : [server_id]));
  return {
    servers: [...new Set(attachedTo)].filter((id) => !servers.has(String(id))),
    addresses: world.ips
      .filter(({ id, server_id }) => !ips.has(String(id)) && !servers.has(String(server_id)))
      .map(({ address }) => address),
  };
}

function suspended({ diff }: Draft, { world, now }: GuardInput): Omit<Blocked, 'key'> | undefined {
  const { suspend } = world.settings;
  const verb = verbOf(diff.verdict.verdict);
  if (suspend === null || verb === undefined) return undefined;
  if (suspend.until !== undefined && Date.parse(suspend.until) <= now) return undefined;
  return {
    verb,
    code: 'suspended',
    reason: `settings.suspend: ${suspend.reason}${suspend.until === undefined ? '' : ` (until ${suspend.until})`}`,
    resolve: 'remove settings.suspend from the file',
  };
}

function protect({ subject, diff }: Draft): Omit<Blocked, 'key'> | undefined {
  const { verdict } = diff;
  if (verdict.verdict !== 'delete' && verdict.verdict !== 'replace') return undefined;
  if (!subject.binding?.protect && !subject.desired?.protect) return undefined;
  return {
    verb: verdict.verdict === 'delete' ? 'delete' : 'update',
    code: 'protected',
    reason:
      verdict.verdict === 'delete'
        ? `${subject.key} is protected, also after it has left the file`
        : `${verdict.reason}, and ${subject.key} is protected`,
    resolve:
      verdict.verdict === 'delete'
        ? 'put its entry back with `protect: false`, apply, then remove it'
        : 'write `protect: false` in its entry, or undo the change',
  };
}

function prune({ subject, diff }: Draft, { world, destroy }: GuardInput): Omit<Blocked, 'key'> | undefined {
  if (diff.verdict.verdict !== 'delete' || subject.desired !== undefined) return undefined;
  if (world.settings.prune || destroy) return undefined;
  return {
    verb: 'delete',
    code: 'prune_disabled',
    reason: `${subject.key} is not in the file any more, and settings.prune is false`,
    resolve: 'write `settings: {prune: true}` to have it deleted, or put its entry back',
  };
}

function replacement({ subject, diff }: Draft): Omit<Blocked, 'key'> | undefined {
  const { verdict } = diff;
  if (verdict.verdict !== 'replace' || verdict.allowed) return undefined;
  const undo = verdict.changes.map(({ path, from }) => `${path}: ${JSON.stringify(from)}`).join(', ');
  return {
    verb: 'update',
    code: 'replace_not_allowed',
    reason: `${verdict.reason}: it would be deleted and made again`,
    resolve: `write \`replace: allowed\` in ${subject.key}, or restore ${undo}`,
  };
}

/** An empty state in a project that is not empty must not buy everything again. */
function unmanaged(
  { subject, diff }: Draft,
  { world, trusted }: GuardInput,
  { strangers: { servers, addresses } }: Totals,
): Omit<Blocked, 'key'> | undefined {
  const buys = diff.verdict.verdict === 'create' && (subject.kind === 'server' || subject.kind === 'ip');
  if (!buys || trusted || world.settings.unmanaged === 'ignore') return undefined;
  if (servers.length + addresses.length === 0) return undefined;
  const found = [
    ...(servers.length === 0 ? [] : [`server ${servers.join(', ')}`]),
    ...(addresses.length === 0 ? [] : [`address ${addresses.join(', ')}`]),
  ].join(' and ');
  const candidate =
    subject.kind === 'server' ? servers[0] : world.ips.find(({ address }) => address === addresses[0])?.id;
  return {
    verb: 'create',
    code: 'unmanaged_resources',
    reason: `the local state is new, and the project already has ${found}, which may be what this file describes`,
    resolve: `vdcsync adopt ${subject.key} ${candidate ?? 'ID'} (for each that is this file's), or write \`settings: {unmanaged: ignore}\``,
  };
}

function maxDeletions(
  draft: Draft,
  { world }: GuardInput,
  { deletions }: Totals,
): Omit<Blocked, 'key'> | undefined {
  const { verdict } = draft.diff.verdict;
  if ((verdict !== 'delete' && verdict !== 'replace') || deletions <= world.settings.max_deletions)
    return undefined;
  return {
    verb: verdict === 'delete' ? 'delete' : 'update',
    code: 'max_deletions',
    reason: `${deletions} deletions in one run are more than settings.max_deletions (${world.settings.max_deletions})`,
    resolve: `write \`settings: {max_deletions: ${deletions}}\` if this is meant`,
  };
}

function maxIncrease(
  { diff }: Draft,
  { world }: GuardInput,
  { knownIncrease }: Totals,
): Omit<Blocked, 'key'> | undefined {
  const limit = world.settings.max_monthly_increase;
  const adds = diff.verdict.verdict === 'create' && diff.price !== undefined && 'known' in diff.price;
  if (!adds || limit === null || knownIncrease <= limit) return undefined;
  return {
    verb: 'create',
    code: 'max_monthly_increase',
    reason: `the known prices add ${knownIncrease.toFixed(2)} a month, more than settings.max_monthly_increase (${limit})`,
    resolve: `write \`settings: {max_monthly_increase: ${Math.ceil(knownIncrease)}}\` if this is meant`,
  };
}

/** A server's own address goes with its server and is not counted beside it. */
function countsAsDeletion({ subject, diff }: Draft): boolean {
  const { verdict } = diff.verdict;
  return (verdict === 'delete' || verdict === 'replace') && subject.parent === undefined;
}

function verbOf(verdict: string): Verb | undefined {
  if (verdict === 'replace') return 'update';
  return verdict === 'create' || verdict === 'update' || verdict === 'delete' ? verdict : undefined;
}
