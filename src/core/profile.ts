/** Undocumented operations that a deployment's operator can confirm. All are off by default. */
export const undocumentedOperations = [
  'list_servers',
  'read_server',
  'remove_network_interface',
  'update_backup_policy',
  'insert_iso',
  'eject_iso',
  'take_server_image',
  'delete_backup',
  'resize_server',
  'named_address',
] as const;
export type UndocumentedOperation = (typeof undocumentedOperations)[number];

export interface OperationTemplate {
  readonly method?: string | undefined;
  /** With `{id}`, `{server_id}` and the like in braces. */
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

/** What the API's catalogue does not price, as its operator knows it. */
export interface PriceList {
  readonly currency?: string | undefined;
  readonly address?: string | undefined;
  readonly network_interface?: string | undefined;
  /** By name or id of the type. */
  readonly servers?: Readonly<Record<string, ServerPrices>> | undefined;
}

/** What belongs to one deployment of the API. */
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
