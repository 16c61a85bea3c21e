import { type ResourceKey, takeApart } from './keys.ts';
import { flowYaml, shellWord } from './text.ts';

/** A command of this program. `ID` and `KEY` among the arguments are the operator's to fill in. */
export interface CommandStep {
  readonly type: 'run';
  readonly command: string;
  readonly args: readonly string[];
}

/** An edit of the spec. */
export interface Edit {
  readonly type: 'edit';
  /** A key, a collection such as `ips`, or `settings` and `project`. */
  readonly path: string;
  /** Fields with the values that they get. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Fields whose value the operator chooses, with the values to choose from; none: any value. */
  readonly choose?: Readonly<Record<string, readonly string[]>>;
  /** Fields that go. */
  readonly remove?: readonly string[];
  /** The whole entry: it goes, comes back as it was, or is replaced by the fields of `set`. */
  readonly entry?: 'remove' | 'restore' | 'replace';
  /** Places in the spec, as `file:line:column`. */
  readonly at?: readonly string[];
}

/** Something to do elsewhere: in the client area, with the token, with the payment. `about`: ids and addresses. */
export interface Outside {
  readonly type: 'outside';
  readonly text: string;
  readonly about?: readonly string[];
}

/** One step of a way out: a command, an edit of the spec, or an action outside vdcsync. */
export type RemedyStep = CommandStep | Edit | Outside;

/** A way out of a blocked operation, as data. `when`: the case in which it is right. `next`: the steps that follow. */
export type Remedy = RemedyStep & More;

type More = { readonly when?: string; readonly next?: readonly RemedyStep[] };

/** A remedy that begins with a command of vdcsync. The arguments are not quoted: {@link commandLine} quotes them. */
export function command(
  command: string,
  args: readonly (string | number)[] = [],
  more: More = {},
): Remedy & CommandStep {
  return { type: 'run', command, args: args.map(String), ...more };
}

/** A remedy that begins with an edit of the spec. @param path as in {@link Edit} */
export function edit(path: string, how: Omit<Edit, 'type' | 'path'> & More): Remedy & Edit {
  return { type: 'edit', path, ...how };
}

/** An id as a file has it: a number, where it is one. */
export function idInFile(id: string): number | string {
  return /^\d+$/.test(id) ? Number(id) : id;
}

/** One of the settings. */
export function setting(name: string, value: unknown, when?: string): Remedy {
  return edit('settings', { set: { [name]: value }, ...(when === undefined ? {} : { when }) });
}

/**
 * Releases the resource of a key. A key in the spec leaves the spec first, because its entry would create the resource
 * again. With `prune`, an apply between the removal of the entry and the command would delete the resource.
 */
export function wayToForget(
  key: ResourceKey,
  {
    isDeclared,
    when,
    prune,
  }: { readonly isDeclared: boolean; readonly when: string; readonly prune: boolean },
): Remedy {
  if (!isDeclared || takeApart(key).parent !== undefined) return command('forget', [key], { when });
  const removed = edit(key, { entry: 'remove' });
  const forget = command('forget', [key]);
  return prune
    ? { ...setting('prune', false), when, next: [removed, forget] }
    : { ...removed, when, next: [forget] };
}

/** A remedy that begins with an action outside vdcsync. @param text an imperative, such as `pay the open invoice` */
export function outside(text: string, more: More & Pick<Outside, 'about'> = {}): Remedy & Outside {
  return { type: 'outside', text, ...more };
}

/** Another key is in the way, and has remedies of its own. */
export function settleFirst(key: ResourceKey): readonly Remedy[] {
  return [outside(`resolve ${key} first`)];
}

/** The remedy if another spec of the project uses the same idempotency keys. */
export function giveScope(): Remedy {
  const when = 'in one of the two specs, if another spec of the project created the resource';
  return edit('project', { choose: { scope: [] }, when });
}

/** The way out where the API refuses to add spending. @source API §1.6 */
export const paying = 'pay the open invoice, or have the project made Active again';

/** The way out of a 401. */
export const newToken = 'issue a new token in the client area, and put it into VDC_TOKEN or VDC_TOKEN_FILE';

/** Every step of every remedy, in the order of the remedies. Remedies are alternatives, and their steps a sequence. */
export function stepsOf(remedies: readonly Remedy[]): readonly RemedyStep[] {
  return remedies.flatMap((remedy) => [remedy, ...(remedy.next ?? [])]);
}

/** One step in the words of one form of output: a command to be copied, or a text. */
export type Piece = { readonly command: string } | { readonly text: string };

/** @param flags of the call that the commands answer, such as ` -f shop.yaml`: without them they would mean another project */
export function piecesOf(remedy: Remedy, flags = ''): readonly Piece[] {
  return stepsOf([remedy]).map((step) => {
    if (step.type === 'run') return { command: commandLine(step, flags) };
    return { text: step.type === 'outside' ? step.text : editText(step) };
  });
}

/** The command as an operator copies it into a shell. @param flags already quoted, with a leading space */
export function commandLine({ command, args }: Pick<CommandStep, 'command' | 'args'>, flags = ''): string {
  return [`vdcsync ${command}${flags}`, ...args.map(shellWord)].join(' ');
}

function editText({ path, set, choose = {}, remove = [], entry, at }: Edit): string {
  const isKey = path.includes('.');
  const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(' and ');
  const written = quoted(Object.entries(set ?? {}).map(([name, value]) => `${name}: ${flowYaml(value)}`));
  if (entry === 'remove') return `remove ${path} from the spec`;
  if (entry === 'replace') return `replace the entry of ${path} with \`${flowYaml(set)}\``;
  if (entry === 'restore') return `put ${path} back into the spec${written === '' ? '' : ` with ${written}`}`;
  const chosen = Object.entries(choose).map(([name, values]) =>
    values.length === 0 ? quoted([name]) : `${quoted([name])} to one of ${values.join(', ')}`,
  );
  if (at !== undefined) {
    const names = quoted(Object.keys(choose));
    return `correct ${names === '' ? 'the entry' : names} at ${at.join(' and ')}`;
  }
  const what = [
    ...(written === '' ? [] : [`write ${written}`]),
    ...(chosen.length === 0 ? [] : [`set ${chosen.join(' and ')}`]),
    ...(remove.length === 0 ? [] : [`remove ${quoted(remove)}`]),
  ].join(' and ');
  return `${what} ${isKey ? 'in' : 'under'} ${isKey ? path : quoted([path])}`;
}

/** In one line of plain text. */
export function remedyText(remedy: Remedy, flags = ''): string {
  const steps = piecesOf(remedy, flags).map((piece) => ('command' in piece ? piece.command : piece.text));
  return `${steps.join('; then ')}${remedy.when === undefined ? '' : ` (${remedy.when})`}`;
}

/** All of them in one text, as the JSON forms of a plan have it. */
export function resolveText(remedies: readonly Remedy[], flags = ''): string {
  return remedies.map((remedy) => remedyText(remedy, flags)).join(' | ');
}

/** The result of a command of the operator, and the remedies that may follow. */
export interface CommandResult {
  readonly text: string;
  readonly remedies: readonly Remedy[];
}

/** @param text full sentences about the effect of the command */
export function result(text: string, remedies: readonly Remedy[] = []): CommandResult {
  return { text, remedies };
}

/** Ends the warning about the backups of a deleted server. */
export function waysWithBackups(server: string): readonly Remedy[] {
  return [
    outside('in the client area, delete the backups that you do not need', {
      when: 'to end this report',
      next: [command('ignore', [server])],
    }),
  ];
}

/** The choices for an idle address that is unmanaged. */
export function waysWithIdle(id: string, address: string): readonly Remedy[] {
  return [
    edit('ips', {
      set: { [`spare-${id}`]: { id: Number(id) } },
      when: 'to let vdcsync manage the address, under a name of your choice',
    }),
    command('ignore', [address], { when: 'if it is not of this spec: it stays billed' }),
    outside('release it in the client area, if no user needs it'),
  ];
}

/** Lets vdcsync manage released resources again, and ends that a resource is ignored. */
export function waysWithIgnored(): readonly Remedy[] {
  return [
    outside('put the entry of a released resource back into the spec'),
    command('ignore', ['--undo', 'ID'], { when: 'with the id of an ignored server, or an address' }),
  ];
}
