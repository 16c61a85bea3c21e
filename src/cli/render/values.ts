import { parseKey } from '../../core/keys.ts';
import type { Change, Operation } from '../../core/plan.ts';
import type { RequestCounts } from '../../core/progress.ts';
import { addressEntry } from '../../core/restoring.ts';
import { counted, flowYaml, printable, span } from '../../core/text.ts';

/** The items that are there, in order: `false` and `undefined` are left out, and a list counts as its items. */
export function present<Item>(...parts: readonly (Item | readonly Item[] | false | undefined)[]): Item[] {
  return parts.flatMap((part) => (part === false || part === undefined ? [] : part));
}

/** The longest value shown in one line. */
const maxLength = 160;

/** A value as an operator writes it: text bare, the rest as compact JSON. */
export function shown(value: unknown, most = maxLength): string {
  if (value === null || value === undefined) return 'none';
  const text = printable(typeof value === 'string' ? value : flowYaml(value));
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** The longest element of a list, such as a firewall rule: an operator reviews each of its fields. */
const maxElement = 1_000;
/** The width of a line of details, after its margin. */
const detailWidth = 74;

/** Lines of at most this width, if the text has enough commas. Further lines begin below the content of the first. */
export function wrapped(text: string): string[] {
  if (text.length <= detailWidth) return [text];
  const margin = ' '.repeat(/^\W*/.exec(text)?.[0].length ?? 0);
  const lines: string[] = [];
  for (const part of text.split(/(?<=, )(?=\w)/)) {
    const last = lines.at(-1);
    if (last !== undefined && `${last}${part.trimEnd()}`.length <= detailWidth)
      lines[lines.length - 1] = `${last}${part}`;
    else lines.push(last === undefined ? part : `${margin}${part}`);
  }
  return lines.map((line) => line.trimEnd());
}

/** One line of a change: `mark` shows an addition or removal inside a list. */
export interface ChangeLine {
  readonly mark: '+' | '-' | '~' | ' ';
  readonly text: string;
}

/** The changed fields, line by line. Lists of objects, such as firewall rules, are compared element by element. */
export function changeLines(change: Change, isNew: boolean): ChangeLine[] {
  const { path, from, to } = change;
  if (isObjectList(from) || isObjectList(to)) {
    const fields = new Set(
      [to, from].flatMap((list) => (isObjectList(list) ? list.flatMap(Object.keys) : [])),
    );
    const lines = (list: unknown) =>
      isObjectList(list) ? list.map((each) => shown(inOrder(each, fields), maxElement)) : [];
    const [before, after] = [lines(from), lines(to)];
    if (isNew)
      return [
        { mark: ' ', text: `${path}:` },
        ...after.map((each): ChangeLine => ({ mark: ' ', text: `  - ${each}` })),
      ];
    return elementLines(path, before, after);
  }
  const [was, is] = [written(path, from), written(path, to)];
  const after = `${is}${behind(change.to_id)}`;
  if (isNew) return [{ mark: ' ', text: `${path}: ${after}` }];
  if (isMap(from) && isMap(to)) {
    return differences(from, to).map((field) => {
      const text = `${path}.${field}: ${shown(from[field])} → ${shown(to[field])}`;
      return { mark: '~', text };
    });
  }
  // Two values of the environment have one text.
  if (was === after) return [{ mark: '~', text: `${path}: another value of ${is}` }];
  return [{ mark: '~', text: `${path}: ${was}${behind(change.from_id)} → ${after}` }];
}

/** A field as the entry writes it. */
function written(path: string, value: unknown): string {
  return shown(path === 'public_ipv4' && typeof value === 'string' ? addressEntry(value) : value);
}

/** The id that the API uses for a name of the spec. */
function behind(id: string | number | undefined): string {
  return id === undefined ? '' : ` (id ${shown(id)})`;
}

/** Without the fields of a creation that only repeat its key. */
export function declaredChanges({ key, verb, changes, replacement }: Operation): readonly Change[] {
  if (verb !== 'create' || replacement !== undefined) return changes;
  const name = parseKey(key)?.name;
  return changes.filter(
    ({ path, to }) => !(path === 'name' && to === name) && !(path === 'network' && to === `networks.${name}`),
  );
}

/** The removed elements, then the new list. The order decides, as the first firewall rule that matches wins. */
function elementLines(path: string, before: readonly string[], after: readonly string[]): ChangeLine[] {
  const isSame = (each: string) => before.includes(each);
  const removed = before.filter((each) => !after.includes(each));
  const stayed = before.filter((each) => after.includes(each));
  const isMoved = stayed.join('\n') !== after.filter(isSame).join('\n');
  return [
    { mark: '~', text: isMoved ? `${path}: other order` : `${path}:` },
    ...removed.map((each): ChangeLine => ({ mark: '-', text: `  ${each}` })),
    ...after.map((each): ChangeLine => ({ mark: isSame(each) ? ' ' : '+', text: `  ${each}` })),
  ];
}

/** Fields whose value changes, if both sides have fields. A field of the live side alone is not declared, so it is no change. */
function differences(
  from: Readonly<Record<string, unknown>>,
  to: Readonly<Record<string, unknown>>,
): string[] {
  const moved = Object.keys(to).filter((field) => shown(from[field]) !== shown(to[field]));
  return moved.length === 0 ? Object.keys(to) : moved;
}

/** The element with its fields in the order of the others, so that differences are easy to see. */
function inOrder(each: object, fields: ReadonlySet<string>): object {
  const values = new Map(Object.entries(each));
  return Object.fromEntries(
    [...fields].flatMap((field) => (values.has(field) ? [[field, values.get(field)]] : [])),
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isObjectList(value: unknown): value is readonly object[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((each) => each !== null && typeof each === 'object')
  );
}

/** The end of a write. A refused write stays open until an operator or the spec ends it: the time is not that of the API. */
export function endText(outcome: string, ms: number): string {
  return outcome === 'refused' ? `refused, and closed after ${span(ms)}` : `${outcome} after ${span(ms)}`;
}

/** `3 writes, 2 probes, 52 reads (14 task polls)` */
export function requestsText({ reads, writes, polls, probes }: RequestCounts): string {
  const asked = probes === 0 ? '' : `, ${counted(probes, 'probe')}`;
  return `${counted(writes - probes, 'write')}${asked}, ${readsText(reads, polls)}`;
}

/** `52 reads (14 task polls)`: reads of tasks are counted among the reads. */
function readsText(reads: number, polls: number): string {
  return `${counted(reads, 'read')}${polls === 0 ? '' : ` (${counted(polls, 'task poll')})`}`;
}
