import { html } from 'hono/html';
import { marked } from './text.ts';

/** A whole command and nothing else, and when to take it. */
const command =
  /^(vdcsync (?:[\w./:@%+=,-]*[\w/]|'[^']*'|"[^"]*")(?: (?:[\w./:@%+=,-]*[\w/]|'[^']*'|"[^"]*"))*)(?: \((.*)\))?$/s;

/** One way out of a blocked operation: a command to be copied, or words. */
export function wayOut(text: string) {
  const [, line, when] = command.exec(text) ?? [];
  if (line === undefined) return html`<div class="way">→ ${marked(text)}</div>`;
  return html`<div class="way">${when === undefined ? '' : html`<span class="dim">${marked(when)}</span>`}${commandBox(line)}</div>`;
}

/** The button copies where scripts run; without them a click selects the whole command. */
function commandBox(line: string) {
  const words = line.split(' ').map((word, at) => html`${at === 0 ? '' : ' '}<span>${word}</span>`);
  return html`<div class="command"><code>${words}</code><button type="button" class="copy" data-copy="${line}">Copy</button></div>`;
}
