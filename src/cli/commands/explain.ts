import { apiCodes } from '../../core/codes/api.ts';
import { conditionCodes } from '../../core/codes/conditions.ts';
import { codes } from '../../core/codes.ts';
import { ConfigError } from '../../core/errors.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { run } from '../../core/remedy.ts';
import { didYouMeanKey, nearMiss } from '../../core/suggest.ts';
import { viewOf } from '../../view/build.ts';
import { knownIn, type ProjectFacts } from '../../view/facts.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { codeExplanation, storyOf } from '../explain.ts';
import { codeText, storyText } from '../render/explain-text.ts';
import { type Io, paintFor, printable } from '../terminal.ts';
import { type StatusFlags, statusFacts } from './status.ts';

/**
 * Explains a code, or shows the story of a key: declared, observed, pending, blocked. A key that neither the spec nor
 * the state knows is a slip.
 */
export async function explain(topic: string, flags: StatusFlags, io: Io): Promise<ExitCode> {
  const code = codeExplanation(topic);
  const paint = paintFor(io.stdout, io);
  const { json, text, isKnown } =
    code === undefined
      ? await keyTexts(topic, flags, io)
      : { json: code, text: codeText(code, paint), isKnown: true };
  io.stdout.write(flags.format === 'json' ? `${JSON.stringify(json, null, 2)}\n` : text);
  return isKnown ? exitCodes.done : exitCodes.misuse;
}

interface Texts {
  readonly json: object;
  readonly text: string;
  readonly isKnown: boolean;
}

async function keyTexts(topic: string, flags: StatusFlags, io: Io): Promise<Texts> {
  if (parseKey(topic) === undefined) throw await unknownTopic(topic, flags, io);
  const { facts } = await statusFacts(flags, io);
  const story = storyOf(topic as ResourceKey, facts, viewOf(facts));
  const { declared, bound, planned, open_writes: open, blocked, past_writes: past } = story;
  const found = planned.length + open.length + blocked.length + past.length;
  const isKnown = declared !== null || bound !== null || found > 0;
  const hint = isKnown ? '' : didYouMeanKey(topic, knownKeys(facts));
  return { json: story, text: storyText(story, { isKnown, hint }, paintFor(io.stdout, io)), isKnown };
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
  return new ConfigError(text, true, near === undefined ? [] : [run('explain', [near])]);
}

function knownKeys(facts: ProjectFacts): readonly ResourceKey[] {
  const entries = facts.offer?.desired.resources ?? [];
  return [...new Set([...entries, ...knownIn(facts).bindings].map(({ key }) => key))];
}
