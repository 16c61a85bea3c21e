import { html } from 'hono/html';

/** A whole command and nothing else, and when to take it. */
const command =
  /^(vdcsync (?:[\w./:@%+=,-]*[\w/]|'[^']*'|"[^"]*")(?: (?:[\w./:@%+=,-]*[\w/]|'[^']*'|"[^"]*"))*)(?: \((.*)\))?$/s;

/** One way out of what is blocked: a command to be copied, or words. */
export function wayOut(text: string) {
  const [, line, when] = command.exec(text) ?? [];
  if (line === undefined) return html`<div class="way">→ ${marked(text)}</div>`;
  return html`<div class="way"><code class="command">${line}</code>${when === undefined ? '' : html` <span class="dim">${marked(when)}</span>`}</div>`;
}

/** What stands between backticks is shown as code. */
export function marked(text: string) {
  return text.split('`').map((part, index, parts) =>
    // The last of an even number has no end.
    index % 2 === 1 && index < parts.length - 1 ? html`<code>${part}</code>` : part,
  );
}
