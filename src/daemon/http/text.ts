import { html } from 'hono/html';
import { collections } from '../../core/kind-facts.ts';
import { capitalised } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import type { ResourceView } from '../../view/project-view.ts';
import { cutText } from './pager.ts';

export type Html = ReturnType<typeof html> | '';

/** Keys in running text. */
const keys = new RegExp(`\\b((?:${collections.join('|')})\\.[\\w-]+(?:\\.[\\w-]+)*)`);

/** A key that breaks after its dots alone, so that no name in it is cut on a narrow screen. */
export function keyText(key: string) {
  const parts = key.split('.');
  const pieces = parts.map((part, at) => (at === parts.length - 1 ? part : `${part}.`));
  return html`<span class="key">${pieces.map((piece) => html`<span>${piece}</span>`)}</span>`;
}

/**
 * A text of the engine as a sentence: it begins with a capital letter, unless a key, a name in backticks or another name
 * is first, and ends with a full stop.
 */
export function sentence(text: string): string {
  const isWord = /^[a-z]+(?=[ ,]|$)/.test(text);
  const begun = isWord ? capitalised(text) : text;
  return /[.:?!…]$/.test(begun) ? begun : `${begun}.`;
}

/** Text whose backticks mark code, and whose keys stay whole. */
export function marked(text: string) {
  return cutText(text)
    .split('`')
    .map((part, index, parts) =>
      // The last of an even number has no end.
      index % 2 === 1 && index < parts.length - 1 ? html`<code>${part}</code>` : withKeys(part),
    );
}

function withKeys(text: string) {
  // The keys have the odd indexes.
  return text.split(keys).map((part, index) => (index % 2 === 1 ? keyText(part) : part));
}

/** A time in ms since the epoch, or in the form of the public JSON. */
type ShownMoment = number | string;

/** `5 min ago`, with the moment itself on hover, and on a tap. */
export function timeAgo(at: ShownMoment, now: ShownMoment) {
  return stamped(at, ago(ms(now) - ms(at)));
}

/** `in 5 min` */
export function timeAhead(at: ShownMoment, now: ShownMoment) {
  const left = ms(at) - ms(now);
  return stamped(at, left <= 0 ? 'now' : `in ${span(left)}`);
}

/** `for 5 min` */
export function timeSince(at: ShownMoment, now: ShownMoment) {
  return stamped(at, `for ${span(ms(now) - ms(at))}`);
}

/** ` for 5 min`; nothing where a moment is not known. */
export function since(at: ShownMoment | null, now: ShownMoment | null): Html {
  return at === null || now === null ? '' : html` ${timeSince(at, now)}`;
}

function ms(at: ShownMoment): number {
  return typeof at === 'number' ? at : Date.parse(at);
}

function stamped(at: ShownMoment, text: string) {
  return html`<time datetime="${new Date(at).toISOString()}" title="${moment(at)}">${text}</time>`;
}

export function perMonth(amount: string, currency: string | null): string {
  return `${amount}${currency === null ? '' : ` ${currency}`} a month`;
}

/** A span in words: `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d${hours % 24 === 0 ? '' : ` ${hours % 24} h`}`;
}

export function ago(ms: number): string {
  return `${span(ms)} ago`;
}

const absences: Readonly<Record<ResourceView['presence'], string>> = {
  known: '',
  not_created: 'not created yet',
  being_created: 'being created',
  unconfirmed: 'unconfirmed, may be billed',
};

/** The state of a resource whose id is not known. */
export function absenceText({ presence }: ResourceView): string {
  return absences[presence];
}
