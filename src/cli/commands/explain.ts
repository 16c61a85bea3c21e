import { questionClasses } from '../../core/codes/explained.ts';
import { apiCodes, codes, conditionCodes, explanationOf } from '../../core/codes.ts';
import type { DesiredResource } from '../../core/desired.ts';
import type { ConfigError } from '../../core/errors.ts';
import { endWord, partsOf } from '../../core/intent.ts';
import { given } from '../../core/json.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { command } from '../../core/remedy.ts';
import type { Intent } from '../../core/state.ts';
import { didYouMeanKey, nearMiss } from '../../core/suggest.ts';
import { capitalised, flowYaml, printable } from '../../core/text.ts';
import { moment } from '../../core/time.ts';
import { viewOf } from '../../view/build.ts';
import { knownIn, type ProjectFacts, time } from '../../view/facts.ts';
import type { ProjectView, ResourceView } from '../../view/project-view.ts';
import { phaseWord, statusWord } from '../../view/words.ts';
import { type ExitCode, exitCodes, usageError } from '../exit.ts';
import { blockedLines, warningLines } from '../render/plan-text.ts';
import { remedyLines } from '../render/remedies.ts';
import { changeLines, endText } from '../render/values.ts';
import { type Io, type Paint, printResult } from '../terminal.ts';
import { type StatusFlags, statusFacts } from './status.ts';

/**
 * Explains a code, or shows the story of a key: declared, observed, pending, blocked. A key that neither the spec nor
 * the state knows is a slip.
 */
export async function explain(topic: string, flags: StatusFlags, io: Io): Promise<ExitCode> {
  const code = codeExplanation(topic);
  if (code !== undefined) {
    printResult(io, flags, code, (paint) => explanationText(code, paint));
    return exitCodes.done;
  }
  if (parseKey(topic) === undefined) throw await unknownTopic(topic, flags, io);
  const { facts } = await statusFacts(flags, io);
  const story = storyOf(topic as ResourceKey, facts, viewOf(facts));
  const { declared, bound, planned, open_writes: open, blocked, past_writes: past } = story;
  const isKnown =
    (declared ?? bound) !== null || [planned, open, blocked, past].some((each) => each.length > 0);
  const hint = isKnown ? '' : didYouMeanKey(topic, knownKeys(facts));
  printResult(io, flags, story, (paint) => storyText(story, { isKnown, hint }, paint));
  return isKnown ? exitCodes.done : exitCodes.misuse;
}

async function unknownTopic(topic: string, flags: StatusFlags, io: Io): Promise<ConfigError> {
  const near = nearMiss(topic, Object.keys({ ...codes, ...apiCodes, ...conditionCodes }));
  // Without a readable spec or state there is no key to compare with.
  const known = await statusFacts({ ...flags, offline: true }, io).then(
    ({ facts }) => knownKeys(facts),
    () => [],
  );
  const hint = near === undefined ? didYouMeanKey(topic, known) : `; did you mean \`${near}\`?`;
  const text = `${JSON.stringify(printable(topic))} is neither a code of vdcsync nor a key such as servers.web-1${hint === '' ? '.' : hint} The message next to a code of the API explains that code.`;
  return usageError(text, near === undefined ? [] : [command('explain', [near])]);
}

function knownKeys(facts: ProjectFacts): readonly ResourceKey[] {
  const entries = facts.offer?.desired.resources ?? [];
  return [...new Set([...entries, ...knownIn(facts).bindings].map(({ key }) => key))];
}

/** The explanation of a code, for an operator. */
export function explanationText(explanation: CodeExplanation, paint: Paint): string {
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
function storyText(
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
    ...row('Binding', bound === null ? 'none' : `id ${bound.id}, since ${moment(bound.since)}`),
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
        `${verb}, ${phaseWord(phase)} since ${moment(since)}${task === null ? '' : `, task ${task}`}${detail === null ? '' : `: ${detail}`}`,
      ),
    ),
    ...blocked.flatMap(({ code, since }) =>
      row('Blocked', since === undefined ? `by ${code}` : `by ${code} since ${moment(since)}`),
    ),
    ...story.past_writes.flatMap(({ verb, outcome, since, closed_at: ended, detail }, index) =>
      row(
        index === 0 ? 'Last writes' : '',
        `${moment(since)}  ${verb}: ${endText(outcome, Date.parse(ended) - Date.parse(since))}${detail === null ? '' : ` (${detail})`}`,
      ),
    ),
    ...(blocked.length + warnings.length === 0 ? [] : ['']),
    ...blockedLines(blocked, paint),
    ...warnings.flatMap((warning) => warningLines(warning, paint)),
    ...codes
      .filter((code) => explanationOf(code) !== undefined)
      .flatMap((code) => remedyLines([command('explain', [code], { when: 'about this code' })], paint, '')),
    ...(isKnown
      ? []
      : ['', ...remedyLines([command('status', [], { when: 'to list every key' })], paint, '')]),
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
  if (bound === null) return `${moment(observed)}: the key is bound to no resource`;
  const addresses = bound.addresses.length === 0 ? '' : `, ${bound.addresses.join(', ')}`;
  return `${moment(observed)}: ${statusWord(bound.standing)}${addresses}`;
}

const labelWidth = 'Last writes'.length;
const margin = ' '.repeat(labelWidth + 4);

function row(label: string, text: string): string[] {
  return [`  ${label.padEnd(labelWidth)}  ${printable(text)}`];
}

function sentence(text: string): string {
  return `${capitalised(text)}${/[.?!]$/.test(text) ? '' : '.'}`;
}

function lines(all: readonly string[]): string {
  return `${all.join('\n').trimEnd()}\n`;
}

type CodeExplanation = NonNullable<ReturnType<typeof codeExplanation>>;

/** The public JSON of `vdcsync explain CODE`. `undefined`: no code of vdcsync. */
function codeExplanation(code: string) {
  const explained = explanationOf(code);
  if (explained === undefined) return undefined;
  const { meaning, next, asks, why = null, example, ways = [] } = explained;
  return {
    format_version: 1,
    code,
    meaning,
    cause: why,
    class: asks === undefined ? null : questionClasses[asks].title,
    next_step: next,
    example: { situation: example, ways },
  };
}

const mostPastWrites = 3;

type KeyStory = ReturnType<typeof storyOf>;

/** The public JSON of `vdcsync explain KEY`: all that spec, state and API say about one key. Null: there is none. Pure. */
function storyOf(key: ResourceKey, facts: ProjectFacts, view: ProjectView) {
  const isOf = (each: { readonly key: ResourceKey | null }) => each.key === key;
  const desired = facts.offer?.desired;
  const entry = desired?.resources.find(isOf);
  const { intents, history = [] } = knownIn(facts);
  const bound = view.resources.find(isOf);
  const open = intents.filter(isOf);
  const past = history.filter((each) => isOf(each) && each.phase === 'closed');
  return {
    format_version: 1,
    key,
    declared: declaredIn(entry),
    file_read: desired !== undefined,
    bound: boundIn(bound),
    observed_at: view.observed_at,
    offline: view.offline,
    planned: view.operations
      .filter(isOf)
      .map(({ verb, changes, reason }) => ({ verb, changes, ...given({ reason }) })),
    open_writes: open.filter(({ phase }) => phase !== 'blocked').map(writeOf),
    blocked: view.blocked.filter(isOf),
    warnings: view.warnings.filter(isOf),
    past_writes: past.slice(0, mostPastWrites).map((intent) => ({
      ...writeOf(intent),
      outcome: endWord(intent) ?? 'unknown',
      closed_at: time(partsOf(intent).closedAt ?? intent.createdAt),
    })),
  };
}

function declaredIn(entry: DesiredResource | undefined) {
  if (entry === undefined) return null;
  const { position, managed, protect, value } = entry;
  return { position, managed, protect, entry: value };
}

function boundIn(resource: ResourceView | undefined) {
  if (resource === undefined) return null;
  const { id, bound_at: since, standing, addresses } = resource;
  return { id: id ?? '', since: since ?? '', standing, addresses };
}

function writeOf(intent: Intent) {
  const { verb, phase, createdAt, detail, requestId } = intent;
  return {
    verb,
    phase,
    since: time(createdAt),
    detail: detail === '' ? null : detail,
    task_id: partsOf(intent).answer?.taskId ?? null,
    request_id: requestId ?? null,
  };
}
