/** The rest of a line is prose. */
const mostCharacters = 90;

/** The pairs of consecutive lines of a trace, each as a number. */
export function pairsOf(trace: readonly string[]): readonly number[] {
  const lines = trace.map(normalised);
  return [...new Set(lines.slice(1).map((line, at) => hash(`${lines[at]}\n${line}`)))];
}

/** The line without its time, and without the names and numbers in which stories of the same kind differ. */
function normalised(line: string): string {
  const [, who = '', text = ''] = /^.{10}\s*(\S*)\s(.*)$/.exec(line) ?? [];
  const plain = text
    .replace(/^\{"do":"(\w+)".*/, '$1')
    .replace(/[[{].*?[\]}]+/g, '')
    .replace(/(?<!→ )\d+(\.\d+)*/g, '#')
    .replace(/[\w-]+(?=\.(?:public_ipv4|firewall|backup|network_interfaces|iso)\b)/g, '*')
    .replace(/\b(servers|ips|networks|isos)\.[\w~#-]+/g, '$1');
  const words = plain.startsWith('plan ') ? [...new Set(plain.split(' '))].join(' ') : plain;
  return `${who.replace(/\d/g, '')} ${words.slice(0, mostCharacters)}`;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
