import { questionClass } from '../core/codes.ts';
import { partsOf } from '../core/intent.ts';
import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Blocked } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import { resolveText } from '../core/remedy.ts';
import type { Binding, Intent } from '../core/state.ts';
import type { Execution } from '../emulator/world.ts';
import type { Resolution } from '../engine/deps.ts';
import { cleanUp, releaseReported } from './client-area.ts';
import { apiId, type Give, give, type Operator, ownId, runs, wordOf } from './operator-command.ts';
import { editEntries, editSettings, valid } from './operator-edits.ts';
import type { OperatorAnswer } from './parts.ts';
import { isSort } from './resource-history.ts';
import { isLike } from './rest.ts';
import type { StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

/**
 * The operator reads each block, checks the client area (the emulator's world), and runs the command of the message,
 * or makes the edit that the message asks for. The operator answers with the truth and knows only facts that a real
 * operator could find out. Returns the edited spec.
 */
export async function operate(
  operator: Operator,
  report: ApplyReport,
  answer: OperatorAnswer = answerOutcome,
): Promise<SpecModel> {
  const { stage, file: spec } = operator;
  let file = spec;
  // The resource of a write that has not ended belongs to this spec until the write is given up. So open writes come first.
  const isOpen = ({ code }: Blocked) => Number(code === 'stuck');
  for (const blocked of [...report.blocked].sort((a, b) => isOpen(b) - isOpen(a))) {
    if (stage.violation !== undefined) return file;
    stage.trace.add(
      'op',
      `reads ${blocked.key} ${blocked.code}: ${blocked.reason} → ${resolveText(blocked.remedies)}`,
    );
    file = await answer(operator, blocked, report.blocked);
    // The messages hold for the spec that was applied. The next run has those of the edited one.
    if (file !== spec) return file;
  }
  return file;
}

/**
 * The answers of a rehearsal: faults alone block an operation, or a limit of the spec blocks the deletion of the resources
 * that they leave.
 */
const answerOutcome: OperatorAnswer = async (operator, blocked) => {
  const { stage, file } = operator;
  await expectContinuation(operator, blocked);
  if (await settleOutcome(operator, blocked)) return file;
  const edited = editSettings(stage, file, blocked.remedies) ?? editEntries(stage, file, blocked);
  return valid(stage, edited) ?? file;
};

/** A code that asks no question promises that a later run continues with the write. */
export async function expectContinuation(
  { stage, controller }: Operator,
  { key, verb, code, reason }: Blocked,
): Promise<void> {
  if (questionClass(code) !== 'none') return;
  const { open } = await stage.readState(controller);
  const intent = open.find((each) => each.key === key && each.verb === verb);
  if (intent?.phase === 'blocked')
    stage.fail(
      'I16',
      `${key} is ${code}, and its write stays blocked until a question is answered: ${reason}`,
    );
}

/** Answers a block that asks for the outcome of a write, or for a later run. `false`: the block asks for something else. */
export async function settleOutcome(operator: Operator, blocked: Blocked, by: Give = give): Promise<boolean> {
  const { key, code, remedies } = blocked;
  if (runs(remedies, 'resolve').some(([its]) => its === key)) {
    await settle(operator, blocked, by);
    return true;
  }
  // A drive holds nothing to delete: its entry asks for another ISO.
  if (code === 'tainted' && takeApart(key).kind !== 'drive') {
    cleanUp(operator.stage, blocked);
    return true;
  }
  const waits = remedies.some(({ when }) => when?.startsWith('an hour later'));
  if (waits) await operator.stage.clock.advance(3_600_000);
  return waits;
}

/** `vdcsync resolve`, with the truth about the write. */
async function settle(operator: Operator, blocked: Blocked, by: Give): Promise<void> {
  const { stage, controller } = operator;
  const { key } = blocked;
  const { open, bindings } = await stage.readState(controller);
  const intent = open.find((each) => each.key === key);
  const words = runs(blocked.remedies, 'resolve').map(([, ...each]) => each);
  if (intent === undefined && words.some(([word]) => word === '--retry')) {
    // The refusal of an earlier run blocks it: the operator declares that the reason is gone.
    await by(operator, { do: 'resolve', key, as: { type: 'retry' } });
    return;
  }
  // The client area shows the server of the key that no read shows, if there is one.
  if (intent === undefined && blocked.code === 'unlisted_servers') {
    const id = ownId(stage, key);
    await by(
      operator,
      id === undefined ? { do: 'resolve', key, as: { type: 'absent' } } : { do: 'adopt', key, id },
    );
    return;
  }
  // The answer about another key of the line may have ended the write.
  const lineOf = (its: ResourceKey) => stage.file.lines.nameOf(its);
  if (intent === undefined && bindings.some((each) => lineOf(each.key) === lineOf(key))) return;
  if (intent === undefined)
    return stage.fail('I12', `the message asks to resolve ${key}, but there is no open write`);
  const seen = truth(stage, intent);
  // The bound resource is already the last one of its entry: nothing else came of the creation.
  const isOfBinding = seen.type === 'adopt' && seen.id === intent.replaces;
  const actual: Resolution = isOfBinding ? { type: 'absent' } : seen;
  const isServer = intent.kind === 'server' && isConflict(intent);
  const left = actual.type === 'absent' && isServer ? exchanged(stage, bindings, key) : undefined;
  const fact = left === undefined ? actual : ({ type: 'adopt', id: left } as const);
  // A write that has not ended is given up if nothing comes of it, if another resource has the id that it was answered, or
  // if it must not replace a resource before its end.
  const named = words.find(([word]) => word === '--adopt')?.[1];
  const isOther = fact.type === 'adopt' && named !== 'ID' && named !== fact.id;
  const goesOn = blocked.code === 'stuck' || blocked.code === 'read_failed';
  const gives = goesOn && (fact.type === 'absent' || isOther || intent.replaces !== undefined);
  const wish: Resolution = gives ? { type: 'abandon' } : fact;
  const free = wish.type === 'adopt' ? await freeId(operator, blocked, wish.id) : undefined;
  const resolution = free === undefined ? wish : ({ type: 'adopt', id: free } as const);
  const text = wordOf(resolution);
  const offered = words.some((each) => [text, '--adopt ID'].includes(each.join(' ')));
  if (resolution.type !== 'abandon' && !offered)
    stage.fail(
      'I12',
      `${key}: the truth is "${text}", and the message offers only: ${resolveText(blocked.remedies)}`,
    );
  const said = await by(operator, { do: 'resolve', key, as: resolution });
  releaseReported(stage, [...blocked.remedies, ...said]);
}

function isConflict(intent: Intent): boolean {
  return partsOf(intent).blocked?.code === 'key_conflict';
}

/** The server that is left where its entry has the server of this one: the state was put back between the two. */
function exchanged(
  { history, project }: StoryStage,
  bindings: readonly Binding[],
  key: string,
): string | undefined {
  const free = project.servers
    .map(({ id }) => String(id))
    .filter((id) => !bindings.some((each) => each.id === id));
  return free.find((id) => {
    const maker = history.makerOf('server', id);
    return maker !== key && bindings.some((each) => each.key === maker && each.kind === 'server');
  });
}

function truth(stage: StoryStage, intent: Intent): Resolution {
  if (intent.verb === 'delete') {
    const gone =
      isSort(intent.kind) && stage.history.birthOf(intent.kind, String(intent.request.path.id)) === undefined;
    return gone ? { type: 'absent' } : { type: 'abandon' };
  }
  const { history } = stage;
  const { servers } = stage.project;
  const isRefused = partsOf(intent).blocked?.until === 'file';
  const nothing = isRefused ? ({ type: 'retry' } as const) : ({ type: 'absent' } as const);
  // A resource that is written as a whole is the same after each repetition.
  if (intent.verb === 'update') return { type: 'retry' };
  if (
    isRefused &&
    history.executionsUnder(intent.idempotencyKey).every((each) => history.isOfAnother(each, intent))
  )
    return nothing;
  const server = servers.find(({ id }) => String(id) === intent.parentId);
  const isGone = intent.parentId !== undefined && server === undefined;
  // Backups survive their server, and a read may show them. @assumption A42
  if (isGone && stage.emulator.readings.orphanBackups !== 'listed') return nothing;
  if (intent.kind === 'firewall' && server !== undefined && isLike(server.firewall, intent.request.body))
    return { type: 'adopt', id: String(server.id) };
  const asWell = ({ idempotencyKey }: Execution) =>
    intent.kind !== 'backup' &&
    JSON.stringify(history.writes.get(idempotencyKey ?? '')?.request) === JSON.stringify(intent.request);
  // The operator has given the server to another entry since.
  const line = stage.file.lines.nameOf(intent.recovers ?? intent.key);
  const isGivenAway = ({ kind, id }: Execution) =>
    kind === 'server' && id !== null && (history.lineGiven(id, line) ?? line) !== line;
  const named = partsOf(intent).answer?.id;
  const inside = intent.parentId === undefined ? '' : `${intent.parentId}/`;
  // An earlier state may have used the key inside another server.
  const isInside = (each: Execution) => history.isLive(each) && each.id?.startsWith(inside);
  const live = history
    .executionsUnder(intent.idempotencyKey)
    .filter((each) => isInside(each) && !isGivenAway(each));
  const made =
    // After a day a key creates another resource, and the answer named its id.
    live.find((each) => named !== undefined && each.id?.endsWith(`/${named}`)) ??
    live[0] ??
    // It may have been created under another key of its line.
    stage.executionsOf(intent.key).findLast((each) => (isConflict(intent) || asWell(each)) && isInside(each));
  const id = apiId(made);
  return id === undefined ? nothing : { type: 'adopt', id };
}

/**
 * The id of the own resource. If the id is bound to another key by now: the offered id, provided it was made for that
 * other key. A binding to an earlier resource with this id does not count as bound to another key. @assumption A17
 */
export async function freeId(
  { stage, controller }: Operator,
  { key, remedies }: Pick<Blocked, 'key' | 'remedies'>,
  own: string | undefined,
): Promise<string | undefined> {
  const { bindings } = await stage.readState(controller);
  const { kind } = stage.executionsOf(key)[0] ?? {};
  const holder = bindings.find((each) => each.kind === kind && each.id === own);
  if (kind === undefined || !isSort(kind) || holder === undefined || holder.key === key) return own;
  const { history } = stage;
  if (history.birthBoundAs(holder)?.number !== history.birthOf(kind, holder.id)?.number) return own;
  const [[, offered] = []] = [
    ...runs(remedies, 'adopt'),
    ...runs(remedies, 'resolve').flatMap(([, ...words]) => (words[0] === '--adopt' ? [words] : [])),
  ];
  return offered !== undefined && history.makerOf(kind, offered) === holder.key ? offered : undefined;
}
