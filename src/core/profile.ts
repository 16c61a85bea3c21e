import { namesIn } from './json.ts';

/** A call that the document does not fully describe. */
interface UndocumentedCall {
  readonly method: string;
  /** Where the operation is presumed to be, like the documented operations; a profile may say otherwise. */
  readonly path: string;
  /** Ids that a template of the operation must contain, in order; those of the path where left out. */
  readonly ids?: readonly string[];
}

/** Undocumented calls that a deployment's operator can confirm. All are off by default. */
const undocumented = {
  list_servers: { method: 'GET', path: '/servers' },
  read_server: { method: 'GET', path: '/servers/{id}' },
  remove_network_interface: { method: 'DELETE', path: '/servers/{server_id}/network-interfaces/{id}' },
  update_backup_policy: { method: 'PUT', path: '/servers/{server_id}/backup-policy' },
  insert_iso: { method: 'PUT', path: '/servers/{server_id}/iso' },
  eject_iso: { method: 'DELETE', path: '/servers/{server_id}/iso' },
  take_server_image: { method: 'POST', path: '/server-images', ids: ['server_id'] },
  delete_backup: { method: 'DELETE', path: '/servers/{server_id}/backups/{id}' },
  resize_server: { method: 'PUT', path: '/servers/{server_id}/resources' },
} as const satisfies Readonly<Record<string, UndocumentedCall>>;

type CallName = keyof typeof undocumented;

/** `named_address` is a form of a body, and no call of its own. */
export type UndocumentedOperation = CallName | 'named_address';

/** The undocumented operations that change something. */
export type UndocumentedWrite = {
  [Name in CallName]: (typeof undocumented)[Name]['method'] extends 'GET' ? never : Name;
}[CallName];

/** The operations that the `operations` of a profile may enable. @source API §4: paths and payloads are not shown */
export const undocumentedOperations: readonly UndocumentedOperation[] = [
  ...namesIn(undocumented),
  'named_address',
];

/** The presumed call of an operation; `undefined` where the operation has none, or is documented. */
export function presumedCall(name: string): UndocumentedCall | undefined {
  const operation = namesIn(undocumented).find((each) => each === name);
  return operation && undocumented[operation];
}

/** The form of an undocumented operation, from the profile. A field that is left out has its presumed value. */
export interface OperationTemplate {
  readonly method?: string | undefined;
  /** With placeholders in braces, such as `{id}` and `{server_id}`. */
  readonly path?: string | undefined;
  readonly body?: unknown;
}

/** Of one server type, monthly, as decimal text. */
export interface ServerPrices {
  readonly base?: string | undefined;
  readonly core?: string | undefined;
  readonly memory_gb?: string | undefined;
  readonly disk_gb?: string | undefined;
  /** By plan id. */
  readonly plans?: Readonly<Record<string, string>> | undefined;
}

/** Prices that the operator knows and that the API's catalogue does not have. */
export interface PriceList {
  readonly currency?: string | undefined;
  readonly address?: string | undefined;
  readonly network_interface?: string | undefined;
  /** By name or id of the type. */
  readonly servers?: Readonly<Record<string, ServerPrices>> | undefined;
}

/** The properties of one deployment of the API. */
export interface ApiProfile {
  readonly limits: { readonly windowMs: number; readonly reads: number; readonly writes: number };
  /** How many times faster than real time the API's clock runs. */
  readonly timeScale: number;
  readonly operations: Readonly<Partial<Record<UndocumentedOperation, OperationTemplate>>>;
  readonly prices?: PriceList;
}

/** @source API §8 */
export const documentedProfile: ApiProfile = {
  limits: { windowMs: 60_000, reads: 60, writes: 20 },
  timeScale: 1,
  operations: {},
};
