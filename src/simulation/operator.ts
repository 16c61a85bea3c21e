import equal from 'fast-deep-equal';
import { questionClass } from '../core/codes.ts';
import { partsOf } from '../core/intent.ts';
import { type ResourceKey, takeApart } from '../core/keys.ts';
import type { Blocked } from '../core/plan.ts';
import type { ApplyReport } from '../core/progress.ts';
import { resolveText, stepsOf } from '../core/remedy.ts';
import type { Intent } from '../core/state.ts';
import type { Execution, Project } from '../emulator/world.ts';
import type { Resolution } from '../engine/deps.ts';
import { cleanUp, clearRules, eject, leave, releaseFree, releaseReported } from './client-area.ts';
import type { Controller } from './controller.ts';
import { entryOf } from './edited-file.ts';
import { adopt, apiId, command, ownId, releaseOnce, runs } from './operator-command.ts';
import { correctedIdentity, edit, valid } from './operator-edits.ts';
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
  stage: StoryStage,
  controller: Controller,
  spec: SpecModel,
  report: ApplyReport,
): Promise<SpecModel> {
  let file = spec;
  // The resource of a write that has not ended belongs to this spec until the write is given up. So open writes come first.
  const isOpen = ({ code }: Blocked) => Number(code === 'stuck');
  for (const blocked of [...report.blocked].sort((a, b) => isOpen(b) - isOpen(a))) {
    if (stage.violation !== undefined) return file;
    stage.trace.add(
      'op',
      `reads ${blocked.key} ${blocked.code}: ${blocked.reason} → ${resolveText(blocked.remedies)}`,
    );
    // `unmanaged: ignore` is no answer as long as another unmanaged resource belongs to the spec.
    const isOwn = ({ key, code }: Blocked) =>
      code === 'unmanaged_resources' && key !== blocked.key && ownId(stage, key) !== undefined;
    file = await answer(stage, controller, file, blocked, report.blocked.some(isOwn));
    // The messages hold for the spec that was applied. The next run has those of the edited one.
    if (file !== spec) return file;
  }
  return file;
}

async function answer(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  blocked: Blocked,
  hasOthers: boolean,
): Promise<SpecModel> {
  const { key, remedies } = blocked;
  if (blocked.code === 'identity_changed') {
    await recognise(stage, controller, file, blocked);
    return file;
  }
  if (questionClass(blocked.code) === 'none') await expectContinuation(stage, controller, blocked);
  if (blocked.code === 'server_type_not_supported') return edit(stage, file, blocked) ?? file;
  if (runs(remedies, 'resolve').some(([its]) => its === key)) {
    const corrected = correctedIdentity(stage, file, remedies);
    if (corrected === undefined) await settle(stage, controller, file, blocked);
    return corrected ?? file;
  }
  if (blocked.code === 'tainted') {
    cleanUp(stage, blocked);
    return file;
  }
  if (blocked.code === 'iso_in_use' && stepsOf(remedies).some(({ type }) => type === 'outside')) {
    await eject(stage, controller, blocked);
    return file;
  }
  const waits = remedies.some(({ when }) => when?.startsWith('an hour later'));
  if (waits) {
    await stage.clock.advance(3_600_000);
    return file;
  }
  if (blocked.code === 'firewall_would_lose') {
    await clearRules(stage, controller, blocked);
    return file;
  }
  if (blocked.code === 'unmanaged_resources')
    return (await tellApart(stage, controller, file, blocked)) || hasOthers
      ? file
      : (valid(stage, edit(stage, file, blocked)) ?? file);
  if (blocked.code === 'unlisted_servers' && (await isOfAnotherEntry(stage, controller, file, key)))
    return file;
  const isDropped = entryOf(file, key) === undefined;
  const isLeft =
    (blocked.code === 'ip_in_use' && isDropped) ||
    (blocked.code === 'moved_onto_bound' && takeApart(key).parent !== undefined);
  const wish = isLeft ? undefined : edit(stage, file, blocked);
  const edited = valid(stage, wish);
  // The whole first spec does not help: it is back already, or does not have the entry.
  const isBack =
    edited !== wish &&
    edited !== undefined &&
    (entryOf(edited, key) === undefined || equal({ ...edited, settings: file.settings }, file));
  if ((isLeft || (isDropped && isBack)) && runs(remedies, 'forget').some(([its]) => its === key)) {
    await releaseOnce(stage, controller, file, key);
    return file;
  }
  const mayBeWrong = runs(remedies, 'adopt').length > 0;
  if (blocked.code === 'network_in_use' && edited !== wish && !mayBeWrong) {
    await leave(stage, controller, blocked);
    return file;
  }
  if (edited !== undefined && entryOf(file, key)?.id !== undefined) return edited;
  // That it has the size already would be a lie, and a binding to the own resource is not wrong.
  const isOfSize = blocked.code === 'disk_would_shrink' || blocked.code === 'size_unconfirmed';
  const [its, offered] = isOfSize ? [] : (runs(remedies, 'adopt')[0] ?? []);
  if (its !== undefined && offered !== undefined) {
    const adopting = its as ResourceKey;
    const own = await freeId(stage, controller, { key: adopting, remedies }, ownId(stage, adopting, offered));
    const id = own ?? (edited === undefined ? offered : undefined);
    const isOpen = id === offered || offered === 'ID' || blocked.verb !== 'update';
    if (id !== undefined && id !== 'ID' && isOpen) {
      await adopt(stage, controller, file, adopting, id);
      return file;
    }
  }
  return edited ?? file;
}

/** A code that asks no question promises that a later run continues with the write. */
async function expectContinuation(
  stage: StoryStage,
  { box }: Controller,
  { key, verb, code, reason }: Blocked,
): Promise<void> {
  const store = await box.open(stage.clock.now());
  const intent = (await store.openIntents()).find((each) => each.key === key && each.verb === verb);
  await box.release();
  if (intent?.phase === 'blocked')
    stage.fail(
      'I16',
      `${key} is ${code}, and its write stays blocked until a question is answered: ${reason}`,
    );
}

/** Whether the remedies name resources to distinguish. Adopts the resource that this spec made. Ignores or releases the named resources that no entry of the spec wants. */
async function tellApart(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  { key, remedies }: Blocked,
): Promise<boolean> {
  const project = stage.emulator.world.projects[0] as Project;
  const [named] = runs(remedies, 'ignore');
  // An earlier command has given a resource of another user to the entry.
  const given = named
    ?.map((name) => String(project.ips.find(({ address }) => address === name)?.id ?? name))
    .find((id) => (['server', 'ip'] as const).some((sort) => stage.history.makerOf(sort, id) === key));
  const isOwn = (its = '', id = '') => ownId(stage, its as ResourceKey, id) === id;
  const own = await freeId(stage, controller, { key, remedies }, ownId(stage, key) ?? given);
  const store = await controller.box.open(stage.clock.now());
  const bindings = await store.bindings();
  const bound = new Map(bindings.map((each) => [each.key, each.id]));
  await controller.box.release();
  if (own !== undefined && bound.get(key) !== own) {
    await adopt(stage, controller, file, key, own);
    return true;
  }
  const [other, offered] = runs(remedies, 'adopt').find(([its, id]) => its !== key && isOwn(its, id)) ?? [];
  if (other !== undefined && offered !== undefined) {
    await adopt(stage, controller, file, other as ResourceKey, offered);
    return true;
  }
  if (named === undefined) return false;
  const wanted = new Map<string, string | undefined>(
    stage.load(file).resources.map(({ key: its, id }) => [its, id]),
  );
  const foreign = named.filter((name) => {
    const ip = project.ips.find(({ address }) => address === name);
    const sort = ip === undefined ? 'server' : 'ip';
    const id = ip === undefined ? name : String(ip.id);
    const birth = stage.history.birthOf(sort, id);
    const maker = stage.history.makerOf(sort, id);
    // An earlier answer covers this resource, or its entry in the spec does.
    const isCovered =
      maker !== undefined && wanted.has(maker) && (bound.get(maker) ?? wanted.get(maker) ?? id) === id;
    const isBound = bindings.some((each) => each.kind === sort && each.id === id);
    if (birth === undefined || isCovered || isBound) return false;
    if (ip !== undefined && ip.serverId === null && !birth.isForeign) {
      releaseFree(stage, id);
      return false;
    }
    stage.history.dismiss(birth);
    for (const held of sort === 'server' ? project.ips.filter((each) => String(each.serverId) === id) : []) {
      const along = stage.history.birthOf('ip', String(held.id));
      if (along !== undefined && stage.history.makerOf('ip', along.id) === undefined)
        stage.history.dismiss(along);
    }
    return true;
  });
  if (foreign.length === 0) return true;
  await command(stage, controller, file, `ignore ${foreign.join(' ')}`, (engine, desired) =>
    engine.ignore(desired, foreign),
  );
  return true;
}

/**
 * Whether the server that only a number shows is one that the spec made for another entry: that entry adopts the server.
 * If its entry has another server, after a replacement or by word of the operator, the operator ignores this one.
 */
async function isOfAnotherEntry(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  key: ResourceKey,
): Promise<boolean> {
  const store = await controller.box.open(stage.clock.now());
  const bindings = await store.bindings();
  await controller.box.release();
  const bound = new Set(bindings.flatMap(({ kind, id }) => (kind === 'server' ? [id] : [])));
  const own = ownId(stage, key);
  if (own !== undefined && !bound.has(own)) return false;
  const has = new Set(bindings.map((each) => each.key));
  const entries = stage.load(file).resources.filter(({ managed }) => managed);
  const wanted = new Set(entries.map((each) => each.key));
  const { servers } = stage.emulator.world.projects[0] as Project;
  const others = servers.flatMap(({ id }) => {
    const maker = stage.history.makerOf('server', String(id));
    return maker !== undefined && wanted.has(maker) && !bound.has(String(id))
      ? [{ id: String(id), maker }]
      : [];
  });
  const surplus = others.filter(({ maker }) => has.has(maker)).map(({ id }) => id);
  if (surplus.length > 0) {
    for (const id of surplus) {
      const birth = stage.history.birthOf('server', id);
      if (birth !== undefined) stage.history.dismiss(birth);
    }
    await command(stage, controller, file, `ignore ${surplus.join(' ')}`, (engine, desired) =>
      engine.ignore(desired, surplus),
    );
  }
  return others.length > 0;
}

/** Is the resource with the bound id the same, a new one of an entry, or another user's by now? @assumption A17 */
async function recognise(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  { key, remedies }: Blocked,
): Promise<void> {
  const [[, id = ''] = []] = runs(remedies, 'adopt');
  const store = await controller.box.open(stage.clock.now());
  const binding = (await store.bindings()).find((each) => each.key === key);
  const open = await store.openIntents();
  await controller.box.release();
  const birth =
    binding !== undefined && isSort(binding.kind) ? stage.history.birthOf(binding.kind, id) : undefined;
  // An answer about another entry has settled this question too.
  if (binding === undefined || birth === undefined || binding.id !== id) return;
  const maker = stage.history.makerOf(birth.sort, id);
  const same = stage.history.birthBoundAs(binding)?.number === birth.number;
  const wanted = stage.load(file).resources.find((each) => each.key === maker)?.key;
  const its = same ? key : wanted;
  if (its !== undefined) {
    // The block of that entry's open write decides about the resource.
    if (open.some((each) => each.key === its)) return;
    await adopt(stage, controller, file, its, id);
  } else {
    await command(stage, controller, file, `resolve ${key} --absent`, (engine, desired) =>
      engine.resolve(desired, key, { type: 'absent' }),
    );
    // A state that was put back bought the address for an entry that the spec no longer has.
    if (maker !== undefined && birth.sort === 'ip') releaseFree(stage, id);
    else stage.history.dismiss(birth);
  }
}

/** `vdcsync resolve`, with the truth about the write. */
async function settle(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  blocked: Blocked,
): Promise<void> {
  const { key } = blocked;
  const store = await controller.box.open(stage.clock.now());
  const intent = (await store.openIntents()).find((each) => each.key === key);
  const isAnswered = (await store.bindings()).some((each) => each.key === key);
  await controller.box.release();
  const words = runs(blocked.remedies, 'resolve').map(([, ...each]) => each);
  if (intent === undefined && words.some(([word]) => word === '--retry')) {
    // The refusal of an earlier run blocks it: the operator declares that the reason is gone.
    await command(stage, controller, file, `resolve ${key} --retry`, (engine, desired) =>
      engine.resolve(desired, key, { type: 'retry' }),
    );
    return;
  }
  if (intent === undefined && isAnswered) return;
  if (intent === undefined)
    return stage.fail('I12', `the message asks to resolve ${key}, but there is no open write`);
  const fact = truth(stage, intent);
  // A write that has not ended is given up if nothing comes of it, if another resource has the id that it was answered, or
  // if it must not replace a resource before its end.
  const named = words.find(([word]) => word === '--adopt')?.[1];
  const isOther = fact.type === 'adopt' && named !== 'ID' && named !== fact.id;
  const goesOn = blocked.code === 'stuck' || blocked.code === 'read_failed';
  const gives = goesOn && (fact.type === 'absent' || isOther || intent.replaces !== undefined);
  const traceLineOf: Resolution = gives ? { type: 'abandon' } : fact;
  const free =
    traceLineOf.type === 'adopt' ? await freeId(stage, controller, blocked, traceLineOf.id) : undefined;
  const resolution = free === undefined ? traceLineOf : ({ type: 'adopt', id: free } as const);
  const text = resolution.type === 'adopt' ? `--adopt ${resolution.id}` : `--${resolution.type}`;
  const offered = words.some((each) => [text, '--adopt ID'].includes(each.join(' ')));
  if (resolution.type !== 'abandon' && !offered)
    stage.fail(
      'I12',
      `${key}: the truth is "${text}", and the message offers only: ${resolveText(blocked.remedies)}`,
    );
  const said = await command(stage, controller, file, `resolve ${key} ${text}`, (engine, desired) =>
    engine.resolve(desired, key, resolution),
  );
  releaseReported(stage, [...blocked.remedies, ...said]);
}

function truth(stage: StoryStage, intent: Intent): Resolution {
  if (intent.verb === 'delete') {
    const gone =
      isSort(intent.kind) && stage.history.birthOf(intent.kind, String(intent.request.path.id)) === undefined;
    return gone ? { type: 'absent' } : { type: 'abandon' };
  }
  const { history } = stage;
  const { servers } = stage.emulator.world.projects[0] as Project;
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
    stage.executionsOf(intent.key).findLast((each) => asWell(each) && isInside(each));
  const id = apiId(made);
  return id === undefined ? nothing : { type: 'adopt', id };
}

/**
 * The id of the own resource. If the id is bound to another key by now: the offered id, provided it was made for that
 * other key. A binding to an earlier resource with this id does not count as bound to another key. @assumption A17
 */
async function freeId(
  stage: StoryStage,
  { box }: Controller,
  { key, remedies }: Pick<Blocked, 'key' | 'remedies'>,
  own: string | undefined,
): Promise<string | undefined> {
  const store = await box.open(stage.clock.now());
  const { kind } = stage.executionsOf(key)[0] ?? {};
  const holder = (await store.bindings()).find((each) => each.kind === kind && each.id === own);
  await box.release();
  if (kind === undefined || !isSort(kind) || holder === undefined || holder.key === key) return own;
  const { history } = stage;
  if (history.birthBoundAs(holder)?.number !== history.birthOf(kind, holder.id)?.number) return own;
  const [[, offered] = []] = [
    ...runs(remedies, 'adopt'),
    ...runs(remedies, 'resolve').flatMap(([, ...words]) => (words[0] === '--adopt' ? [words] : [])),
  ];
  return offered !== undefined && history.makerOf(kind, offered) === holder.key ? offered : undefined;
}
