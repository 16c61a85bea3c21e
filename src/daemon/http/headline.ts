import { type Condition, type Level, levelOf } from '../../view/condition.ts';
import type { ProjectSummary } from '../project/facts.ts';

/** The state of a page in a word, for its title, icon and badge. */
export interface Headline {
  readonly level: Level;
  readonly word: string;
}

/** As in the alert VdcsyncNotConverged. */
const longMs = 3_600_000;

/** The problems of a project that its condition does not show, and the age of the condition. */
type Troubles = Pick<ProjectSummary, 'exposed' | 'broken' | 'leaking' | 'since' | 'now'>;

/** The worst of all that is known: an exposed server first, and money only where nothing else needs attention. */
export function headlineOf(condition: Condition, troubles: Troubles): Headline {
  const { exposed, broken, leaking, since, now } = troubles;
  const isLong = condition === 'converging' && since !== undefined && now - since > longMs;
  const level = isLong ? 'warn' : levelOf(condition);
  if (exposed) return { level: 'bad', word: 'exposed' };
  if (level === 'bad') return { level, word: condition };
  if (broken) return { level: 'bad', word: 'spec broken' };
  if (leaking && level !== 'warn') return { level: 'warn', word: 'billed and idle' };
  return { level, word: condition };
}

/** Colour and shape both show the level, for operators who see no colours. */
const symbols: Readonly<Record<Level, Readonly<Record<'sign' | 'colour' | 'shape', string>>>> = {
  bad: { sign: '●', colour: '#d92f3f', shape: 'M14 6h4v12h-4zM14 22h4v4h-4z' },
  warn: { sign: '▲', colour: '#e0a63c', shape: 'M14 9h4v9h-4zM14 21h4v4h-4z' },
  busy: { sign: '◌', colour: '#2f7fe0', shape: 'M8 14h4v4H8zM14 14h4v4h-4zM20 14h4v4h-4z' },
  dim: { sign: '○', colour: '#8a94a1', shape: 'M9 14h14v4H9z' },
  good: { sign: '✓', colour: '#25a063', shape: 'M8 16l3-3 4 4 7-8 3 3-10 11z' },
};

/** Conditions that stop writes, each with its cause. */
const meanings: Readonly<Record<string, string>> = {
  paused: 'paused by a refusal',
  suspended: 'suspended in the spec',
  waiting: 'waiting for a window',
};

/** `awaiting_approval` as `awaiting approval`. */
export function wordText(word: string): string {
  return meanings[word] ?? word.replaceAll('_', ' ');
}

/** `● blocked · shop` */
export function titleOf({ level, word }: Headline, name: string): string {
  return `${symbols[level].sign} ${wordText(word)} · ${name}`;
}

/** The icon of the tab. */
export function iconOf({ level }: Headline): string {
  const { colour, shape } = symbols[level];
  const outline =
    level === 'warn'
      ? '<path d="M16 1 32 30H0z"'
      : level === 'bad'
        ? '<rect width="32" height="32" rx="6"'
        : '<circle cx="16" cy="16" r="16"';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${outline} fill="${colour}"/><path d="${shape}" fill="#fff"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
