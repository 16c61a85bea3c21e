import { explanationOf } from '../../core/codes.ts';
import { flowYaml } from '../../core/flow-yaml.ts';
import { moment } from '../../core/moment.ts';
import { run } from '../../core/remedy.ts';
import { capitalised } from '../../core/text.ts';
import type { CodeExplanation, KeyStory } from '../explain.ts';
import { type Paint, printable } from '../terminal.ts';
import { blockedLines, warningLines } from './plan-text.ts';
import { remedyLines } from './remedies.ts';
import { looks, phaseWord } from './status-text.ts';
import { changeLines, endText } from './values.ts';

/** The explanation of a code, for an operator. */
export function codeText(explanation: CodeExplanation, paint: Paint): string {
  const { code, meaning, cause, next_step: next, example } = explanation;
  return lines([
    paint('bold', code),
    ...row('Meaning', sentence(meaning)),
    ...(cause === null ? [] : row('Cause', sentence(cause))),
    ...row('Next step', sentence(next)),
    ...row('Example', example.situation),
    ...example.ways.map((way, at) => `${margin}${at === 0 ? '→' : '  or'} ${paint('cyan', way)}`),
  ]);
}

/**
 * The story of a key, for an operator: the spec, the state, the API, and then the open problems.
 *
 * @param hint a key with a similar name, for a key that is unknown; otherwise empty
 */
export function storyText(
  story: KeyStory,
  { isKnown, hint }: { readonly isKnown: boolean; readonly hint: string },
  paint: Paint,
): string {
  const { key, declared, bound, planned, open_writes: open, blocked, warnings } = story;
  const codes = [...new Set([...blocked, ...warnings].map(({ code }) => code))];
  return lines([
    paint('bold', key),
    ...row('Declared', `${declaredText(story)}${hint}`),
    ...(declared === null ? [] : [`${margin}${printable(flowYaml(declared.entry))}`]),
    ...row('Binding', bound === null ? 'none' : `id ${bound.id}, since ${at(bound.since)}`),
    ...row('Observed', observedText(story)),
    ...planned.flatMap(({ verb, changes, reason }) => [
      ...row('Planned', reason === undefined ? verb : `${verb}: ${reason}`),
      ...changes
        .flatMap((change) => changeLines(change, change.from === null))
        .map(({ mark, text }) => `${margin}${mark === ' ' ? '' : `${mark} `}${text}`),
    ]),
    ...open.flatMap(({ verb, phase, since, detail, task_id: task }) =>
      row(
        'Open write',
        `${verb}, ${phaseWord(phase)} since ${at(since)}${task === null ? '' : `, task ${task}`}${detail === null ? '' : `: ${detail}`}`,
      ),
    ),
    ...blocked.flatMap(({ code, since }) =>
      row('Blocked', since === undefined ? `by ${code}` : `by ${code} since ${at(since)}`),
    ),
    ...story.past_writes.flatMap(({ verb, outcome, since, closed_at: ended, detail }, index) =>
      row(
        index === 0 ? 'Last writes' : '',
        `${at(since)}  ${verb}: ${endText(outcome, Date.parse(ended) - Date.parse(since))}${detail === null ? '' : ` (${detail})`}`,
      ),
    ),
    ...(blocked.length + warnings.length === 0 ? [] : ['']),
    ...blockedLines(blocked, paint),
    ...warnings.flatMap((warning) => warningLines(warning, paint)),
    ...codes
      .filter((code) => explanationOf(code) !== undefined)
      .flatMap((code) => remedyLines([run('explain', [code], { when: 'about this code' })], paint, '')),
    ...(isKnown ? [] : ['', ...remedyLines([run('status', [], { when: 'to list every key' })], paint, '')]),
  ]);
}

function declaredText({ declared, file_read: read }: KeyStory): string {
  if (declared === null) return read ? 'not in the spec' : 'unknown, because no spec was read';
  const { position, managed, protect } = declared;
  const flags = [...(managed ? [] : ['not managed']), ...(protect ? ['protected'] : [])];
  return [`${position.file}:${position.line}`, ...flags].join(', ');
}

function observedText({ observed_at: observed, offline, bound }: KeyStory): string {
  if (observed === null) return `not now (${offline ?? 'the API was not read'})`;
  if (bound === null) return `${at(observed)}: the key is bound to no resource`;
  const addresses = bound.addresses.length === 0 ? '' : `, ${bound.addresses.join(', ')}`;
  return `${at(observed)}: ${looks[bound.standing][1]}${addresses}`;
}

const labelWidth = 'Last writes'.length;
const margin = ' '.repeat(labelWidth + 4);

function row(label: string, text: string): string[] {
  return [`  ${label.padEnd(labelWidth)}  ${printable(text)}`];
}

function sentence(text: string): string {
  return `${capitalised(text)}${/[.?!]$/.test(text) ? '' : '.'}`;
}

function at(text: string): string {
  return moment(Date.parse(text));
}

function lines(all: readonly string[]): string {
  return `${all.join('\n').trimEnd()}\n`;
}
