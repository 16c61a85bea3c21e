import type { Json } from './json.ts';
import { comesWithServer, type ResourceKey, topLevelKey } from './keys.ts';
import { factsOf, type KindName } from './kind-facts.ts';
import { type CommandStep, edit, type Remedy } from './remedy.ts';

/** A position in the spec. Lines and columns count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** The address that an entry of a server asks for. */
export interface WantedAddress {
  /** The name of an entry under `ips`. */
  readonly ip?: string | undefined;
  readonly new?: true | undefined;
  readonly reuse?: true | undefined;
}

/** A validated entry, with the fields that parts outside its kind use. Only the kind knows all its fields. */
export type EntryFields = {
  readonly name?: string | undefined;
  readonly public_ipv4?: WantedAddress | undefined;
  readonly keep_ip?: boolean | undefined;
  readonly replace?:
    | string
    | { readonly order?: string | undefined; readonly at_once?: number | undefined }
    | undefined;
  readonly server_type?: string | number | undefined;
  readonly gpu_package?: string | readonly string[] | undefined;
  readonly cidr?: string | undefined;
  readonly enabled?: boolean | undefined;
  readonly [field: string]: unknown;
};

/** One resource that the spec declares; `value` is its validated entry, whose type its kind knows. */
export interface DesiredResource<Value = EntryFields> {
  readonly key: ResourceKey;
  readonly kind: KindName;
  /** The server whose deletion deletes the resource. */
  readonly parent?: ResourceKey;
  readonly value: Value;
  /** `false`: must exist, is never created, changed or deleted. */
  readonly managed: boolean;
  /** The live resource to bind to; it is then never created. */
  readonly id?: string;
  /**
   * The id is not in the spec: the answer under an idempotency key of its line gave it, or the object was released from
   * its line. `identity` distinguishes the object from a later one with the same id. `applied`: of its last binding.
   */
  readonly held?: {
    readonly by: 'found' | 'released';
    readonly identity: Readonly<Record<string, string>>;
    readonly applied?: Json;
  };
  /** The entry gives no name, so `value` has the name of the key. A creation uses that name; comparisons ignore it. */
  readonly named?: false;
  /** The previous key: the binding of the previous key becomes the binding of this key. */
  readonly moved?: ResourceKey;
  /** The spec does not state `moved`: the resource had the key of the entry before. */
  readonly isInferred?: true;
  /** Never deleted or replaced. */
  readonly protect: boolean;
  /** A time in RFC 3339, from which the entry counts as removed from the spec. */
  readonly expires?: string;
  readonly position: Position;
  /**
   * Line and column of each field of the entry, in the file of `position` unless another is named; no part of the
   * digest.
   */
  readonly fields?: Readonly<Record<string, readonly [line: number, column: number, file?: string]>>;
  /** Probable mistakes in the entry that may be intended; absent if there are none. */
  readonly cautions?: readonly { readonly position: Position; readonly message: string }[];
}

/**
 * The part of the entry that an API's parameter names, and its position: `/rules/1/source` is `rules[1].source`,
 * `server_type_id` is `server_type`. If the entry has no part of this name: the nearest part that contains it.
 */
export function fieldOf(
  { fields = {}, position }: Pick<DesiredResource, 'fields' | 'position'>,
  parameter: string,
): { readonly name: string; readonly position: Position } | undefined {
  const steps = parameter.split(/[^\w-]+/).filter((step) => step !== '');
  let name: string | undefined;
  for (const step of steps) name = partOf(fields, name, step) ?? name;
  const [line, column, file = position.file] = (name === undefined ? undefined : fields[name]) ?? [];
  if (name === undefined || line === undefined || column === undefined) return undefined;
  return { name, position: { file, line, column } };
}

/** The name of a part of a field, or of a field, if the entry has it. */
function partOf(fields: object, name: string | undefined, step: string): string | undefined {
  const inside = name === undefined ? '' : `${name}.`;
  const names = /^\d+$/.test(step)
    ? [`${name ?? ''}[${step}]`]
    : [step, step.replace(/_id$/, '')].map((each) => `${inside}${each}`);
  return names.find((each) => Object.hasOwn(fields, each));
}

/** An address that is created with its server is part of the server's entry, not an entry of its own. */
export function isEntry(resource: DesiredResource): boolean {
  return !comesWithServer(resource);
}

/** Which plans of the daemon wait for the operator. */
export type ApprovalSetting =
  | 'none'
  | 'plan'
  | {
      readonly deletions: boolean;
      readonly replacements: boolean;
      readonly monthly_increase: number | null;
    };

/** A kind of change that a window allows. */
export type WindowVerb = 'create' | 'update' | 'delete' | 'replace';

/** Times at which vdcsync may make changes. */
export interface ChangeWindow {
  /** Five fields: the times at which the window opens. */
  readonly cron: string;
  readonly duration: string;
  /** IANA name. */
  readonly timezone: string;
  readonly allow: readonly WindowVerb[];
}

/**
 * An entry that has expired, by its own `expires` or by that of the project. The resource of an entry with
 * `managed: false` is protected.
 */
export interface ExpiredEntry extends Pick<DesiredResource, 'key' | 'kind' | 'id' | 'protect' | 'moved'> {
  /** The name by which an entry with `managed: false` means its resource. */
  readonly name?: string;
  /** `keep_ip` of the entry. */
  readonly keep: boolean;
  /** A time in RFC 3339. */
  readonly at: string;
  readonly of: 'entry' | 'project';
}

/**
 * `settings` of the spec, with the defaults filled in. `max_deletions` and `max_monthly_increase` limit one run. The
 * increase is in the currency of the account; `null`: no limit.
 */
export interface Settings {
  readonly prune: boolean;
  readonly max_deletions: number;
  readonly max_monthly_increase: number | null;
  readonly exclusive: boolean;
  readonly unconfirmed_servers: 'retry' | 'ask';
  readonly unmanaged: 'ask' | 'ignore';
  readonly drift: 'correct' | 'report';
  readonly approval: ApprovalSetting;
  /** In the daemon: whether the last spec that converged replaces a spec that is refused. */
  readonly on_failure?: 'stay' | 'back' | undefined;
  readonly suspend: { readonly reason: string; readonly until?: string | undefined } | null;
  /** Absent or empty: changes are allowed at all times. */
  readonly windows?: readonly ChangeWindow[] | undefined;
}

/** A place that holds a token: an environment variable's name, or a file's path. */
export interface TokenPlace {
  readonly env?: string;
  readonly file?: string;
  /** The folder that the file has to be in, with all symbolic links followed; absent where any will do. */
  readonly below?: string;
  readonly position: Position;
}

/** Whether a token must be read again from another place. */
export function isOtherPlace(before: TokenPlace | undefined, now: TokenPlace | undefined): boolean {
  return before?.env !== now?.env || before?.file !== now?.file;
}

/**
 * Texts that came from the environment. The resources hold the text of the spec instead, with `${env:NAME}`: only these
 * maps hold the values.
 */
export interface EnvironmentTexts {
  /** The real text, by the text of the spec. */
  readonly texts: ReadonlyMap<string, string>;
  /** The value of each variable, by its name. */
  readonly variables: ReadonlyMap<string, string>;
}

/** The spec, validated, with every reference resolved. */
export interface Desired {
  readonly projectId: number;
  /** Distinguishes this spec from other specs of the same project; part of every idempotency key. */
  readonly scope?: string;
  readonly settings: Settings;
  readonly resources: readonly DesiredResource[];
  /** A time in RFC 3339, from which all entries count as removed from the spec. */
  readonly expires?: string;
  /** The entries that are left out because they have expired. Absent if there are none. */
  readonly expired?: readonly ExpiredEntry[];
  /** The place of this project's token, if the spec names one; no part of the declared resources. */
  readonly token?: TokenPlace;
  /** Absent if there are none. */
  readonly environment?: EnvironmentTexts;
  /** `sha256:` over the canonical form: specs that differ only in notation have equal digests. */
  readonly digest: string;
}

/** The digest of a spec for output: it has no salt, so it would confirm a guess of a value from the environment. */
export function publicDigest({
  digest,
  environment,
}: Pick<Desired, 'digest' | 'environment'>): string | undefined {
  return environment === undefined ? digest : undefined;
}

/** The id that the spec gives to the entry. An object that the entry takes back has its id from the state. */
export function idInSpec(desired: Pick<DesiredResource, 'id' | 'held'> | undefined): string | undefined {
  return desired?.held === undefined ? desired?.id : undefined;
}

/** The name by which an entry with `managed: false` and without `id` means an existing resource. */
export function nameInSpec({ managed, id, parent, value }: DesiredResource): string | undefined {
  const { name } = value;
  const isNamed = !managed && id === undefined && parent === undefined && typeof name === 'string';
  return isNamed ? name.trim() : undefined;
}

/** The address that the entry asks for; no fields where it asks for none. */
export function wantedAddress(entry: Pick<EntryFields, 'public_ipv4'> | undefined): WantedAddress {
  return entry?.public_ipv4 ?? {};
}

/** Only its idempotency keys identify a server without an address. */
export function isBare({ kind, value }: Pick<DesiredResource, 'kind' | 'value'>): boolean {
  return factsOf(kind).container === true && value.public_ipv4 === undefined;
}

/** The key of the address that the entry names. */
export function namedAddress(entry: Pick<EntryFields, 'public_ipv4'> | undefined): ResourceKey | undefined {
  const { ip } = wantedAddress(entry);
  return ip === undefined ? undefined : topLevelKey('ips', ip);
}

/** The moment from which the spec no longer asks for the entry: the earlier one of its own and that of the project. */
export function expiryOf(
  entry: Pick<DesiredResource, 'expires'>,
  { expires }: { readonly expires?: string | undefined },
) {
  const [own, all] = [entry.expires, expires];
  const isOwn = own !== undefined && (all === undefined || Date.parse(own) <= Date.parse(all));
  const at = isOwn ? own : all;
  return at === undefined ? undefined : { at, of: isOwn ? ('entry' as const) : ('project' as const) };
}

/**
 * The spec at a moment: without the entries that have expired, as if they had left the file. Every plan and every write
 * comes from this spec.
 */
export function withoutExpired(desired: Desired, now: number): Desired {
  const own = new Map<ResourceKey, ExpiredEntry>();
  for (const entry of desired.resources) {
    const { key, kind, id, parent, managed, moved, value } = entry;
    const expiry = parent === undefined ? expiryOf(entry, desired) : undefined;
    if (expiry === undefined || Date.parse(expiry.at) > now) continue;
    const protect = entry.protect || !managed;
    const name = nameInSpec(entry);
    const names = { ...(moved && { moved }), ...(id && { id }), ...(name && { name }) };
    own.set(key, { key, kind, protect, keep: value.keep_ip === true, ...names, ...expiry });
  }
  if (own.size === 0) return desired;
  const resources = desired.resources.filter(({ key, parent = key }) => !own.has(parent));
  const expired = [...own.values()];
  const names = expired.map(({ key }) => key).join(' ');
  return { ...desired, resources, expired, digest: `${desired.digest} without ${names}` };
}

/** The moments at which the suspension or an entry ends, those in the past included. */
export function endsIn(desired: Desired | undefined): readonly number[] {
  const { resources = [], expires, settings } = desired ?? {};
  const ends = [expires, settings?.suspend?.until, ...resources.map((each) => each.expires)];
  return ends.flatMap((at) => (at === undefined ? [] : [Date.parse(at)]));
}

/** A command that binds the entry to the object of its last argument. An entry with another `id` has to lose it first. */
export function bindingBy(
  entry: Pick<DesiredResource, 'key' | 'id' | 'held' | 'managed'> | undefined,
  command: Remedy & CommandStep,
): Remedy {
  const id = idInSpec(entry);
  if (entry === undefined || id === undefined || id === command.args.at(-1) || !entry.managed) return command;
  const { when, next: _, ...step } = command;
  return edit(entry.key, { remove: ['id'], next: [step], ...(when === undefined ? {} : { when }) });
}
