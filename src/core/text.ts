/** The text with a capital first letter, unless it begins with the name of this program. */
export function capitalised(text: string): string {
  return /^vdcsync\b/.test(text) ? text : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** `3 writes`, `1 write`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** A duration: `1 h 5 min`, `12 s`, `340 ms`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600)
    return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? '' : ` ${seconds % 60} s`}`;
  const hours = Math.floor(seconds / 3600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d`;
  const minutes = Math.floor((seconds % 3600) / 60);
  return `${hours} h${minutes === 0 ? '' : ` ${minutes} min`}`;
}

/** The text, cut to this number of letters and with an ellipsis where it is longer. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Control, format and line characters: invisible themselves, they change the appearance of a text. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Whether the text has a control, format or line character, so that it must not be printed unchanged. */
export function hasUnseen(text: string): boolean {
  return text.search(unseen) !== -1;
}

/** Text of one line without unseen characters, which could rewrite the reader's terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');
}

/** Text with each unseen character as its escape sequence, as JSON and the quoted strings of YAML take it. */
export function escapeUnseen(text: string): string {
  return text.replace(unseen, (character) =>
    Array.from({ length: character.length }, (_, at) => escapeUnit(character.charCodeAt(at))).join(''),
  );
}

/** The same for a text of many lines, whose ends stay. */
export function escapeUnseenInLines(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeUnseen(line))
    .join('\n');
}

/** A text of one line for each entry: no entry can resemble a further line. */
export function linesText(entries: readonly string[]): string {
  return entries.map((entry) => escapeUnseen(entry)).join('\n');
}

/** A value of JSON with each of its texts in one line. */
export function escapeUnseenIn(value: unknown): unknown {
  if (typeof value === 'string') return escapeUnseen(value);
  if (Array.isArray(value)) return value.map(escapeUnseenIn);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [escapeUnseen(name), escapeUnseenIn(each)]),
  );
}

/**
 * A text of lines for a chat program that reads Slack's markup, Markdown, or both: it stays text. It calls no channel or
 * user, and links nowhere.
 */
export function chatText(text: string): string {
  return escapeUnseenInLines(text)
    .replace(/@(?=\S)/g, '@\u200b')
    .replaceAll('](', ']\u200b(')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** The text of an element or an attribute of SVG. */
export function svgText(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

/** A word for a shell: unchanged, or in quotes. */
export function shellWord(word: string | number): string {
  const text = String(word);
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A value as one line of YAML for an entry: `{ip: web}`, `[a, b]`, `"12"`. */
export function flowYaml(value: unknown): string {
  if (typeof value === 'string') return isPlain(value) ? value : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flowYaml).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${flowYaml(name)}: ${flowYaml(each)}`)
    .join(', ')}}`;
}

/** YAML reads it as this very text without quotes. */
function isPlain(text: string): boolean {
  if (!/^[A-Za-z0-9]([A-Za-z0-9 ./_-]*[A-Za-z0-9./_-])?$/.test(text)) return false;
  return !/^(true|false|null)$/i.test(text) && Number.isNaN(Number(text));
}

/** No platform uses longer ids. */
const mostCharacters = 200;
/** Printable, with spaces only between other characters; without quotes and the separators of commands. */
const plainId = /^(?! )[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}"'`|;&<>$\\]+(?<! )$/u;

/** Whether a command that an operator copies can contain this id of the API. @assumption A65 */
export function isPlainId(id: string): boolean {
  return id.length <= mostCharacters && plainId.test(id);
}

/** Whether a plain id is also safe as one segment of a path: no segment may lead to another resource. */
export function fitsPath(id: string): boolean {
  return id !== '.' && id !== '..' && id.isWellFormed() && isPlainId(id);
}

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4Pattern = new RegExp(`^${octet}(?:\\.${octet}){3}$`);

/** Four numbers up to 255, without leading zeros. @source API §2 */
export function isIpv4(text: unknown): text is string {
  return typeof text === 'string' && ipv4Pattern.test(text);
}

/** Whether the host of a URL is this machine itself, so that plain http stays on it. */
export function isLoopbackHost(hostname: string): boolean {
  return isLoopbackAddress(hostname) || hostname.toLowerCase().endsWith('.localhost');
}

/** The same without names below `localhost`, which a resolver may send elsewhere. */
export function isLoopbackAddress(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return host === 'localhost' || host === '::1' || (isIpv4(host) && host.startsWith('127.'));
}
