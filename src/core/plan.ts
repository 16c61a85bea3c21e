import type { Code } from './codes.ts';
import type { KindName, ResourceKey } from './keys.ts';
import { type Remedy, resolveText } from './remedy.ts';

export type Verb = 'create' | 'update' | 'delete' | 'adopt';

export interface Change {
  /** Field of the resource, dotted. */
  readonly path: string;
  /** Before; `null` where there is nothing yet. */
  readonly from: unknown;
  /** After; `null` where nothing stays. */
  readonly to: unknown;
}

/** `adds` is held back by a 402, `reduces` never is. @source API §1.6 */
export type Spend = 'adds' | 'reduces' | 'none';
export type Risk = 'safe' | 'billed' | 'destructive';

/** Stable across re-plans: the same step of the same resource has the same id. */
export type OperationId = string & { readonly __brand: 'OperationId' };

export function operationId(verb: Verb, key: ResourceKey): OperationId {
  return `${verb}:${key}` as OperationId;
}

/** What a change of a firewall does to what comes in. Each entry is a protocol and a port, such as `tcp 443`. */
export interface Traffic {
  readonly opened: readonly string[];
  readonly closed: readonly string[];
  /** All that is let in afterwards. */
  readonly open: readonly string[];
}

/** One step of a plan: plain data, a permission and not a script. */
export interface Operation {
  readonly id: OperationId;
  readonly key: ResourceKey;
  readonly kind: KindName;
  readonly verb: Verb;
  readonly changes: readonly Change[];
  /** Operations that have to be done before this one starts. */
  readonly needs: readonly OperationId[];
  readonly spend: Spend;
  readonly risk: Risk;
  /** The other half of a replacement: its delete or its create. */
  readonly replacement?: OperationId;
  /** Why, where the changes do not say it: a replacement's cause, a resource that is gone. */
  readonly reason?: string;
  /** The live resource that is adopted or deleted. */
  readonly target?: string;
  /** Of a firewall. */
  readonly traffic?: Traffic;
  /** Data that goes with a change in place. */
  readonly loses?: string;
  /** The live side was changed elsewhere, whatever the file asks for besides. */
  readonly cause?: 'drift';
}

/** The firewall of a new server, which is exposed until this is done. One that is not enabled filters nothing. */
export function endsExposure({ kind, verb, changes }: Pick<Operation, 'kind' | 'verb' | 'changes'>): boolean {
  return (
    kind === 'firewall' &&
    verb === 'create' &&
    changes.some(({ path, to }) => path === 'enabled' && to === true)
  );
}

/** Something that needs an operator. The JSON forms of a plan have the remedies as a text beside, `resolve`. */
export interface Blocked {
  readonly key: ResourceKey;
  readonly verb: Verb;
  readonly code: string;
  readonly reason: string;
  readonly remedies: readonly Remedy[];
}

export interface Warning {
  readonly code: Code;
  readonly key: ResourceKey | null;
  readonly message: string;
  readonly remedies?: readonly Remedy[];
}

/** The public JSON form: with the remedies as one text beside. @param flags of the call, for the commands in that text */
export function blockedJson({ remedies, ...blocked }: Blocked, flags = '') {
  return { ...blocked, resolve: resolveText(remedies, flags), remedies };
}

/** Of what is not as the file says, although nothing is to be done about it, or nothing more than is done already. */
export function tellsDifference({ code }: Warning): boolean {
  return code === 'in_flight' || isLeft({ code });
}

/** Of what is not as the file says and is left so: the file asks for that, or no operation can change it. */
export function isLeft({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'drift' || code === 'server_image_not_taken' || code.endsWith('_differs');
}

/** Of what a reader has to know before the operations: a limit of the file that does not hold for them. */
export function comesFirst({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'cap_unchecked';
}

/** Of what carrying the plan out writes into the state alone: nothing is sent for it. */
export function isRecorded({ code }: Pick<Warning, 'code'>): boolean {
  return code === 'moved' || code === 'released' || code === 'flags_change';
}

/** A month, as decimal text, of all that is managed; what is not priced is named and not counted. */
export interface MonthlyCost {
  readonly currency: string | null;
  readonly known_before: string;
  readonly known_after: string;
  /** Keys of what is there, and has a price that is not known. */
  readonly unknown: readonly string[];
}

export interface Cost {
  readonly monthly: MonthlyCost;
  /** Decimal text; the sum of what the catalogue prices. */
  readonly known_monthly_delta: string;
  /** What it may come to at most, where the file leaves a choice and that makes a difference. */
  readonly known_monthly_most?: string;
  readonly unknown: readonly string[];
  readonly left_billed: readonly string[];
}

export interface Effort {
  readonly writes: number;
  readonly reads: number;
  /** Seconds that the request budgets alone take. */
  readonly seconds_at_least: number;
}

export interface Summary {
  readonly create: number;
  readonly update: number;
  readonly replace: number;
  readonly delete: number;
  readonly adopt: number;
  readonly blocked: number;
  readonly unchanged: number;
  /** Servers of which no read shows all that the file says; left out where there are none. */
  readonly unseen?: number;
}

/** The part of a plan that is asked for. A server stands for all that is in it. */
export interface Selection {
  /** Only these, and what they need. All, where there are none. */
  readonly targets: readonly ResourceKey[];
  /** Not these, nor what needs them. */
  readonly excludes: readonly ResourceKey[];
}

/** A plan is a value, and its JSON form is public. */
export interface Plan {
  readonly format_version: 1;
  readonly project: { readonly id: number; readonly name: string; readonly status: string };
  /** Left out where all of it was asked for. */
  readonly selection?: Selection;
  readonly observed_at: string;
  /** Over what is to be done and the spec it comes from; two equal digests mean the same plan. */
  readonly digest: string;
  readonly summary: Summary;
  /** In the order in which they may be carried out. */
  readonly operations: readonly Operation[];
  readonly blocked: readonly Blocked[];
  readonly warnings: readonly Warning[];
  readonly cost: Cost;
  readonly effort: Effort;
}

/** The public JSON form of a plan. */
export function planJson(plan: Plan) {
  return { ...plan, blocked: plan.blocked.map((each) => blockedJson(each)) };
}
