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

/** What belongs to one deployment of the API. */
export interface ApiProfile {
  readonly limits: { readonly windowMs: number; readonly reads: number; readonly writes: number };
  /** How many times faster than real time the API's clock runs. */
  readonly timeScale: number;
  readonly operations: Readonly<Partial<Record<UndocumentedOperation, OperationTemplate>>>;
}

/** @source API §8 */
export const documentedProfile: ApiProfile = {
  limits: { windowMs: 60_000, reads: 60, writes: 20 },
  timeScale: 1,
  operations: {},
};
