import { codes, explanationOf } from '../../core/codes.ts';
import { ConfigError } from '../../core/errors.ts';
import { flowYaml } from '../../core/flow-yaml.ts';
import { parseKey, type ResourceKey } from '../../core/keys.ts';
import { moment } from '../../core/moment.ts';
import { operatorQuestions, questionClass, questionClasses } from '../../core/operator-questions.ts';
import { run } from '../../core/remedy.ts';
import { nearMiss } from '../../core/suggest.ts';
import { type ExitCode, exitCodes } from '../exit.ts';
import { blockedLines, warningLines } from '../render/plan-text.ts';
import { remedyLines } from '../render/remedies.ts';
import { changeLines } from '../render/values.ts';
import { type StatusFacts, type StatusView, statusOf } from '../status.ts';
import { type Io, type Paint, paintFor, printable } from '../terminal.ts';
import { type StatusFlags, statusFacts } from './status.ts';

/** Explains a code, or shows the story of a key: declared, observed, pending, blocked. */
export async function explain(topic: string, flags: StatusFlags, io: Io): Promise<ExitCode> {
  const paint = paintFor(io.stdout, io);
  const lines =
    explanationOf(topic) === undefined ? await keyLines(topic, flags, io, paint) : codeLines(topic, paint);
  io.stdout.write(`${lines.join('\n')}\n`);
  return exitCodes.done;
}

function codeLines(code: string, paint: Paint): string[] {
  const [meaning = '', next = ''] = explanationOf(code) ?? [];
  const asks = questionClass(code);
  const [, why = ''] = operatorQuestions[code] ?? [];
  return [
    paint('bold', code),
    ...section('Meaning', meaning),
    ...(asks === undefined
      ? []
      : [...section('Cause', why), ...section('Class', questionClasses[asks].title)]),
    ...section('Next step', next),
  ];
}

function section(title: string, text: string): string[] {
  return [`  ${title}: ${printable(text)}`];
}

async function keyLines(topic: string, flags: StatusFlags, io: Io, paint: Paint): Promise<string[]> {
  if (parseKey(topic) === undefined) throw unknownTopic(topic);
  const { facts } = await statusFacts(flags, io);
  return story(topic as ResourceKey, facts, statusOf(facts), paint);
}

function unknownTopic(topic: string): ConfigError {
  const near = nearMiss(topic, Object.keys(codes));
  const text = `${JSON.stringify(printable(topic))} is neither a code of vdcsync nor a key such as servers.web-1.`;
  return new ConfigError(text, true, near === undefined ? [] : [run('explain', [near])]);
}

function story(key: ResourceKey, facts: StatusFacts, view: StatusView, paint: Paint): string[] {
  const isOf = (each: { readonly key: ResourceKey | null }) => each.key === key;
  const entry = facts.desired?.find(isOf);
  const bound = view.resources.find(isOf);
  const operations = (facts.plan?.operations ?? []).filter(isOf);
  const pending = facts.intents.filter((each) => isOf(each) && each.phase !== 'blocked');
  const stuck = facts.intents.find((each) => isOf(each) && each.phase === 'blocked');
  const past = (facts.past ?? []).filter((each) => isOf(each) && each.phase === 'closed').slice(0, 3);
  const blocked = view.blocked.filter(isOf);
  return [
    paint('bold', key),
    ...section(
      'Declared',
      entry === undefined
        ? facts.desired === undefined
          ? 'unknown, because there is no file'
          : 'no'
        : `${entry.position.file}:${entry.position.line}: ${entry.value === undefined ? '' : flowYaml(entry.value)}`,
    ),
    ...section(
      'Observed',
      view.observed_at === null ? `no: ${view.offline ?? 'offline'}` : moment(Date.parse(view.observed_at)),
    ),
    ...section(
      'Bound',
      bound === undefined
        ? 'no'
        : `to ${bound.id} since ${moment(Date.parse(bound.bound_at))}, ${bound.standing}`,
    ),
    ...operations.flatMap(({ verb, changes, reason }) => [
      ...section('Planned', reason === undefined ? verb : `${verb}: ${reason}`),
      ...changes
        .flatMap((change) => changeLines(change, false))
        .map(({ mark, text }) => `      ${mark} ${text}`),
    ]),
    ...pending.flatMap(({ verb, phase, createdAt, detail }) =>
      section('Pending', `${verb}, ${phase} since ${moment(createdAt)}${detail ? `: ${detail}` : ''}`),
    ),
    ...(stuck === undefined ? [] : section('Blocked since', moment(stuck.lastSentAt))),
    ...past.flatMap(({ verb, outcome, closedAt, detail }) =>
      section('Past write', `${verb}: ${outcome}, ${moment(closedAt ?? 0)}${detail ? ` (${detail})` : ''}`),
    ),
    '',
    ...blockedLines(blocked, paint),
    ...view.warnings.filter(isOf).flatMap((warning) => warningLines(warning, paint)),
    ...blocked.flatMap(({ code }) =>
      explanationOf(code) === undefined
        ? []
        : remedyLines([run('explain', [code], { when: 'for the code' })], paint, '  '),
    ),
  ];
}
