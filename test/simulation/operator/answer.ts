import equal from 'fast-deep-equal';
import { isUnidentified } from '../../../src/core/claims.ts';
import { type ResourceKey, takeApart } from '../../../src/core/keys.ts';
import type { Blocked } from '../../../src/core/plan.ts';
import { stepsOf } from '../../../src/core/remedy.ts';
import { expectContinuation, freeId, settleOutcome } from '../../../src/simulation/operator.ts';
import { type Operator, ownId, runs } from '../../../src/simulation/operator-command.ts';
import { valid } from '../../../src/simulation/operator-edits.ts';
import type { OperatorAnswer } from '../../../src/simulation/parts.ts';
import { isSort } from '../../../src/simulation/resource-history.ts';
import { entryOf } from '../../../src/simulation/spec-file.ts';
import { clearRules, eject, leave, releaseFree } from './client-area.ts';
import { give, releaseOnce } from './command.ts';
import { correctedIdentity, edit, without } from './edits.ts';

/** Answers each block of a story, also by edits of the spec, and in the client area. */
export const answer: OperatorAnswer = async (operator, blocked, all) => {
  const { stage, file } = operator;
  const { key, remedies } = blocked;
  if (blocked.code === 'identity_changed') {
    await recognise(operator, blocked);
    return file;
  }
  await expectContinuation(operator, blocked);
  if (blocked.code === 'server_type_not_supported') return edit(stage, file, blocked) ?? file;
  if (runs(remedies, 'resolve').some(([its]) => its === key)) {
    const corrected = correctedIdentity(stage, file, remedies);
    if (corrected !== undefined) return corrected;
  } else if (blocked.code === 'iso_in_use' && stepsOf(remedies).some(({ type }) => type === 'outside')) {
    await eject(operator, blocked);
    return file;
  }
  if (await settleOutcome(operator, blocked, give)) return file;
  if (blocked.code === 'firewall_would_lose') {
    await clearRules(operator, blocked);
    return file;
  }
  // `unmanaged: ignore` is no answer as long as another unmanaged resource belongs to the spec.
  const isOwn = (each: Blocked) =>
    each.code === 'unmanaged_resources' && each.key !== key && ownId(stage, each.key) !== undefined;
  const hasOthers = all.some(isOwn);
  if (blocked.code === 'unmanaged_resources')
    return (await tellApart(operator, blocked)) || hasOthers
      ? file
      : (valid(stage, edit(stage, file, blocked)) ?? file);
  const [used] = runs(remedies, 'resolve').find(([its]) => its !== key) ?? [];
  if (blocked.code === 'unlisted_servers' && used !== undefined) {
    await identify(operator, key, used as ResourceKey);
    return file;
  }
  if (blocked.code === 'unlisted_servers' && (await isOfAnotherEntry(operator, key))) return file;
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
    await releaseOnce(operator, key);
    return file;
  }
  const mayBeWrong = runs(remedies, 'adopt').length > 0;
  if (blocked.code === 'network_in_use' && edited !== wish && !mayBeWrong) {
    await leave(operator, blocked);
    return file;
  }
  // The bound resource, and the other one with its name, may both be of the line: the entry keeps the second choice.
  const [, other = ''] = blocked.code === 'name_exists' ? (runs(remedies, 'adopt')[0] ?? []) : [];
  const isSecond = edited === wish && stage.history.releasedFrom('network', other) === key;
  if (edited !== undefined && (isSecond || entryOf(file, key)?.id !== undefined)) return edited;
  // That it has the size already would be a lie, and a binding to the own resource is not wrong.
  const isOfSize = blocked.code === 'disk_would_shrink' || blocked.code === 'size_unconfirmed';
  const [its, offered] = isOfSize ? [] : (runs(remedies, 'adopt')[0] ?? []);
  if (its !== undefined && offered !== undefined) {
    const adopting = its as ResourceKey;
    // The resource is the one of the blocked entry, whose place the other entry has. The remedies say so too.
    const { kind } = takeApart(key);
    const isMade = blocked.code === 'key_conflict' && adopting !== key && isSort(kind);
    if (isMade && offered !== 'ID' && stage.history.makerOf(kind, offered) === key)
      return without(stage, file, adopting);
    const own = await freeId(operator, { key: adopting, remedies }, ownId(stage, adopting, offered));
    // To confirm the binding again would not settle who has the other one.
    const { bindings } = await stage.readState(operator.controller);
    const isBound = bindings.some((each) => each.key === adopting && each.id === own);
    const isOfOther = blocked.code === 'key_conflict' && isBound && offered !== 'ID';
    const id = isOfOther ? offered : (own ?? (edited === undefined ? offered : undefined));
    const isOpen = id === offered || offered === 'ID' || blocked.verb !== 'update';
    if (id !== undefined && id !== 'ID' && isOpen) {
      await give(operator, { do: 'adopt', key: adopting, id });
      return file;
    }
  }
  return edited ?? file;
};

/** Whether the remedies name resources to distinguish. Adopts the resource that this spec made. Ignores or releases the named resources that no entry of the spec wants. */
async function tellApart(operator: Operator, { key, remedies }: Blocked): Promise<boolean> {
  const { stage, controller, file } = operator;
  const { project } = stage;
  const [named] = runs(remedies, 'ignore');
  // An earlier command has given a resource of another user to the entry.
  const given = named
    ?.map((name) => String(project.ips.find(({ address }) => address === name)?.id ?? name))
    .find((id) => (['server', 'ip'] as const).some((sort) => stage.history.makerOf(sort, id) === key));
  const isOwn = (its = '', id = '') => ownId(stage, its as ResourceKey, id) === id;
  const own = await freeId(operator, { key, remedies }, ownId(stage, key) ?? given);
  const { bindings } = await stage.readState(controller);
  const bound = new Map(bindings.map((each) => [each.key, each.id]));
  if (own !== undefined && bound.get(key) !== own) {
    await give(operator, { do: 'adopt', key, id: own });
    return true;
  }
  const [other, offered] = runs(remedies, 'adopt').find(([its, id]) => its !== key && isOwn(its, id)) ?? [];
  if (other !== undefined && offered !== undefined) {
    await give(operator, { do: 'adopt', key: other as ResourceKey, id: offered });
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
    // A released server is gone, and no read shows that.
    if (birth === undefined) return /^\d+$/.test(name);
    if (isCovered || isBound) return false;
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
  if (foreign.length > 0) await give(operator, { do: 'ignore', names: foreign });
  return true;
}

/** The client area shows every server that an earlier state has created, also for the entry `used`. */
async function identify(operator: Operator, key: ResourceKey, used: ResourceKey): Promise<void> {
  const { stage, controller } = operator;
  const own = ownId(stage, key);
  if (own !== undefined) await give(operator, { do: 'adopt', key, id: own });
  if (own !== undefined || (await isOfAnotherEntry(operator, key))) return;
  const { claims, bindings } = await stage.readState(controller);
  // No entry of the spec wants the server that the key was used for.
  const left = stage.project.servers
    .flatMap(({ id }) => stage.history.birthOf('server', String(id)) ?? [])
    .filter((birth) => stage.history.madeUnder(birth) === used && !stage.history.isGivenUp(birth))
    .filter((birth) => !bindings.some(({ kind, id }) => kind === 'server' && id === birth.id));
  for (const birth of left) stage.history.dismiss(birth);
  if (left.length > 0) await give(operator, { do: 'ignore', names: left.map(({ id }) => id) });
  // The answer to a question about another entry has settled this one too.
  if (!claims.some((each) => isUnidentified(each) && each.holder.key === used)) return;
  await give(operator, { do: 'resolve', key: used, as: { type: 'absent' } });
}

/**
 * Whether the server that only a number shows is one that the spec made for another entry: that entry adopts the server.
 * If its entry has another server, after a replacement or by word of the operator, the operator ignores this one.
 */
async function isOfAnotherEntry(operator: Operator, key: ResourceKey): Promise<boolean> {
  const { stage, controller, file } = operator;
  const { bindings } = await stage.readState(controller);
  const bound = new Set(bindings.flatMap(({ kind, id }) => (kind === 'server' ? [id] : [])));
  const own = ownId(stage, key);
  if (own !== undefined && !bound.has(own)) return false;
  const has = new Set(bindings.map((each) => each.key));
  const entries = stage.load(file).resources.filter(({ managed }) => managed);
  const wanted = new Set(entries.map((each) => each.key));
  const others = stage.project.servers.flatMap(({ id }) => {
    const maker = stage.history.makerOf('server', String(id));
    const birth = stage.history.birthOf('server', String(id));
    if (birth !== undefined && stage.history.isGivenUp(birth)) return [];
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
    await give(operator, { do: 'ignore', names: surplus });
  }
  return others.length > 0;
}

/** Is the resource with the bound id the same, a new one of an entry, or another user's by now? @assumption A17 */
async function recognise(operator: Operator, { key, remedies }: Blocked): Promise<void> {
  const { stage, controller, file } = operator;
  const [[, id = ''] = []] = runs(remedies, 'adopt');
  const { bindings, open } = await stage.readState(controller);
  const binding = bindings.find((each) => each.key === key);
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
    await give(operator, { do: 'adopt', key: its, id });
  } else {
    await give(operator, { do: 'resolve', key, as: { type: 'absent' } });
    // A state that was put back bought the address for an entry that the spec no longer has.
    if (maker !== undefined && birth.sort === 'ip') releaseFree(stage, id);
    else stage.history.dismiss(birth);
  }
}
