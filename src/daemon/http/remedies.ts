import { html } from 'hono/html';
import { outside, piecesOf, type Remedy, type RemedyStep } from '../../core/remedy.ts';
import type { ProjectView } from '../../view/project-view.ts';
import { shortRemedies } from './pager.ts';
import { marked, sentence } from './text.ts';

/** The flags that select the project of the page in a command. */
export function flagsOf({ daemon }: ProjectView): string {
  return daemon?.flags ?? '';
}

/** Each remedy with its case: commands to be copied, edits and the rest as text. */
export function remediesHtml(remedies: readonly Remedy[], flags: string) {
  return shortRemedies(remedies)
    .map(inDaemon)
    .map((remedy, way) => {
      // The case of a remedy stands above it, and shows that the remedy is an alternative.
      const alternative = way === 0 || remedy.when !== undefined ? '' : 'or ';
      const steps = piecesOf(remedy, flags).map((piece, at) =>
        'command' in piece
          ? commandBox(piece.command)
          : html`<span>${at === 0 ? '→ ' : ''}${marked(sentence(`${at === 0 ? alternative : 'then '}${piece.text}`))}</span>`,
      );
      return html`<div class="way">${remedy.when === undefined ? '' : html`<span class="dim">${marked(sentence(`${remedy.when}:`))}</span>`}${steps}</div>`;
    });
}

/** The daemon applies by itself, and no other process may apply while the daemon owns the state. */
function inDaemon(remedy: Remedy): Remedy {
  const next = remedy.next?.filter((step) => !isApply(step)) ?? [];
  if (!isApply(remedy)) return { ...remedy, next };
  return outside('vdcsync tries again by itself', remedy.when === undefined ? {} : { when: remedy.when });
}

function isApply(step: RemedyStep): boolean {
  return step.type === 'run' && step.command === 'apply' && step.args.length === 0;
}

/** The button copies where scripts run; without them a click selects the whole command. */
function commandBox(line: string) {
  const words = line.split(' ').map((word, at) => html`${at === 0 ? '' : ' '}<span>${word}</span>`);
  return html`<div class="command"><code>${words}</code><button type="button" class="copy" data-copy="${line}">Copy</button></div>`;
}
