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
