/**
 * Every point the API's document leaves open, and its possible readings. The numbers are those of
 * docs/contributing/assumptions.md. The first reading of each list is the default. `number` means any whole number from zero.
 */
const VALUES = {
  /** `@assumption A1` */
  stored429: [false, true],
  /** `@assumption A2` */
  inFlightKey: ['conflict', 'wait', 'conflictRetryAfter'],
  /** `@assumption A3` */
  retentionFrom: ['first', 'last'],
  /** `@assumption A4` */
  reusedKeyStatus: [422, 409, 400],
  /** `@assumption A4` */
  reusedKeyCode: ['idempotency_key_reused', 'invalid_request', 'conflicting_request'],
  /** `@assumption A5` */
  keyMatches: ['methodPathBody', 'body'],
  /** `@assumption A6` */
  replaysCost: [true, false],
  /** A 429 takes one from the next minute's budget. `@assumption A6` */
  refusalsCost: [false, true],
  /** Milliseconds past the full minute at which a budget starts again. `@assumption A7` */
  minutePhaseMs: [0, 'number'],
  /** Lists are cut off here, silently. `@assumption A8` */
  pageSize: [null, 'number'],
  /** Reads show the world of that long ago. `@assumption A9` */
  staleReadsMs: [0, 'number'],
  /** `@assumption A10` */
  taskRetentionMs: [86_400_000, 'number'],
  /** `@assumption A11` */
  networkInUse: ['409 network_in_use', '409 conflict', '422 network_not_empty'],
  /** `@assumption A12` */
  networkDelete: ['async', 'sync'],
  /** `@assumption A13` */
  networkCreate: ['async', 'sync'],
  /** `@assumption A14` */
  failedTaskLeaves: ['nothing', 'everything', 'later'],
  /** `@assumption A15` */
  defaultNetworkCard: [false, true],
  /** `@assumption A16` */
  uniqueNetworkNames: [true, false],
  /** `@assumption A17` */
  reuseIds: [false, true],
  /** `@assumption A18` */
  billableIps: ['addresses', 'objects', 'ids'],
  /** `@assumption A19` */
  normalise: [true, false],
  /** `@assumption A20` */
  unpaidStatus: ['Active', 'Suspended'],
  /** `@assumption A21` */
  bodilessContentType: ['optional', 'required'],
  /** `@assumption A22` */
  omittedIpv4: ['none', 'new'],
  /** `@assumption A23` */
  isoCreate: ['async', 'sync'],
  /** `@assumption A24` */
  isoFields: ['status/error', 'download_status/reason'],
  /** `@assumption A25` */
  unshownStatus: [422, 409, 400],
  /** `@assumption A26` */
  defaultNetworkDelete: [409, 422],
  /** `@assumption A27` */
  duplicateInterfaces: ['allowed', 409],
  /** `@assumption A28` */
  publicCardAt: ['creation', 'taskDone'],
  /** `@assumption A31` */
  sizeBounds: ['none', 'on'],
  /** `@assumption A32` */
  ruleDecoration: [false, true, 'position', 'position and id'],
  /** `@assumption A33` */
  detachAt: ['taskDone', 'accepted'],
  /** `@assumption A34` */
  omitTaskField: [false, true],
  /** `@assumption A35` */
  dateHeader: [true, false],
  /** `@assumption A36` */
  unknownSshKey: ['422 invalid_request', '404 ssh_key_not_found'],
  /** `@assumption A40` */
  failedTaskKeepsIp: [false, true],
  /** `@assumption A42` */
  orphanBackups: [404, 'listed'],
  /** `@assumption A43` */
  firewallWhileCreating: ['allowed', 409],
  /** `@assumption A44` */
  spending: ['shown', 'everything'],
  /** `@assumption A45` */
  policyOutOnWrite: ['refused', 'accepted'],
  /** `@assumption A46` */
  ruleFields: ['shown', 'any'],
  /** `@assumption A47` */
  skippedServerCount: [0, null],
  /** `@assumption A48` */
  serverFields: ['documented', 'sizes'],
  /** `@assumption A49` */
  reusePool: ['any', 'same'],
  /** `@assumption A50` */
  driveField: ['none', 'iso_id', 'iso'],
  /** `@assumption A51` */
  imageAnswer: ['id', 'bare'],
  /** `@assumption A52` */
  changeAnswer: ['done', 'task'],
  /** `@assumption A53` */
  cardIps: ['addresses', 'objects'],
  /** `@assumption A54` */
  planList: ['shown', 'hidden'],
  /** `@assumption A55` */
  bodyCheck: ['afterKey', 'beforeKey', 'beforeKeyUnstored'],
  /** `@assumption A56` */
  scopeCheck: ['afterKey', 'beforeKey'],
  /** `@assumption A57` */
  paymentCheck: ['afterKey', 'beforeKey'],
  /** `@assumption A58` */
  stored401: [false, true],
  /** `@assumption A59` */
  addressAt: ['accepted', 'taskDone'],
  /** `@assumption A60` */
  attachedAt: ['accepted', 'taskDone'],
  /** `@assumption A61` */
  interfaceAt: ['accepted', 'taskDone'],
  /** `@assumption A62` */
  networkAt: ['taskDone', 'accepted'],
  /** `@assumption A63` */
  isoAt: ['accepted', 'taskDone'],
  /** `@assumption A64` */
  serverListedAt: ['accepted', 'taskDone'],
  /** `@assumption A65` */
  taskIds: ['simple', 'printable'],
  /** `@assumption A66` */
  isoSchemes: ['web', 'any'],
  /** The faults that a refusal names if the body also has an unknown field. `@assumption A73` */
  besideUnknownField: ['forms', 'nothing', 'limits', 'everything'],
} as const satisfies Readonly<Record<string, readonly unknown[]>>;

/** The reading that the emulator plays of each open point. */
export type Readings = { -readonly [Name in keyof typeof VALUES]: Reading<(typeof VALUES)[Name][number]> };

type Reading<Value> = 'number' extends Value ? Exclude<Value, 'number'> | number : Value;

/** Each reading at its default. */
export const defaultReadings: Readings = Object.fromEntries(
  Object.entries(VALUES).map(([name, values]) => [name, values[0]]),
) as unknown as Readings;

/** All values of each reading, default first; for tests that try them all. */
export const readingValues: Readonly<Record<string, readonly unknown[]>> = VALUES;

/**
 * Checks a map of readings, such as one from a file.
 * Throws an `EmulatorInputError` that names the reading and its allowed values.
 */
export function parseReadings(input: unknown): Partial<Readings> {
  if (input === undefined || input === null) return {};
  if (typeof input !== 'object' || Array.isArray(input)) {
    throw new EmulatorInputError('readings: must be a map of name to value');
  }
  for (const [name, value] of Object.entries(input)) {
    const allowed = readingValues[name];
    if (!Object.hasOwn(VALUES, name) || allowed === undefined) {
      throw new EmulatorInputError(
        `readings.${name}: unknown reading; known readings: ${Object.keys(VALUES).join(', ')}`,
        ['readings', name],
      );
    }
    const fits =
      allowed.includes(value) ||
      (allowed.includes('number') && Number.isInteger(value) && (value as number) >= 0);
    if (!fits || value === 'number') {
      const choices = allowed.map((choice) =>
        choice === 'number' ? 'a whole number' : JSON.stringify(choice),
      );
      throw new EmulatorInputError(
        `readings.${name}: must be ${[...new Set(choices)].join(' or ')}, not ${JSON.stringify(value)}`,
        ['readings', name],
      );
    }
  }
  return { ...input };
}

/** An unusable input of the emulator: an option, a file, or a control request. */
export class EmulatorInputError extends Error {
  override readonly name = 'EmulatorInputError';
  /** Where in the document, from its root, as far as that is known. */
  readonly path: readonly PropertyKey[];

  constructor(message: string, path: readonly PropertyKey[] = []) {
    super(message);
    this.path = path;
  }
}
