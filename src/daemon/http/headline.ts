import { type Condition, type Level, levelOf } from '../../view/condition.ts';

/** The state of a page in a word, for its title, icon and badge. */
export interface Headline {
  readonly level: Level;
  readonly word: string;
}

/** As in the alert VdcsyncNotConverged. */
const longMs = 3_600_000;

/** Problems of a project that its condition does not show. */
export interface Troubles {
  readonly exposed: boolean;
  readonly broken: boolean;
  /** Something is billed that the spec does not ask for. */
  readonly leaking: boolean;
  /** Since when the project has been in its condition. Wall ms of the project's clock, as `now`. */
  readonly since: number | undefined;
  readonly now: number;
}

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

const signs: Readonly<Record<Level, string>> = { bad: '●', warn: '▲', busy: '◌', dim: '○', good: '✓' };

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
  return `${signs[level]} ${wordText(word)} · ${name}`;
}

const colours: Readonly<Record<Level, string>> = {
  bad: '#d92f3f',
  warn: '#e0a63c',
  busy: '#2f7fe0',
  dim: '#8a94a1',
  good: '#25a063',
};
const shapes: Readonly<Record<Level, string>> = {
  bad: 'M14 6h4v12h-4zM14 22h4v4h-4z',
  warn: 'M14 9h4v9h-4zM14 21h4v4h-4z',
  busy: 'M8 14h4v4H8zM14 14h4v4h-4zM20 14h4v4h-4z',
  dim: 'M9 14h14v4H9z',
  good: 'M8 16l3-3 4 4 7-8 3 3-10 11z',
};

/** The icon of the tab: colour and shape both show the level, for operators who see no colours. */
export function iconOf({ level }: Headline): string {
  const outline =
    level === 'warn'
      ? '<path d="M16 1 32 30H0z"'
      : level === 'bad'
        ? '<rect width="32" height="32" rx="6"'
        : '<circle cx="16" cy="16" r="16"';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${outline} fill="${colours[level]}"/><path d="${shapes[level]}" fill="#fff"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
