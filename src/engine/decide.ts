import type { Desired } from '../core/desired.ts';
import { ConfigError } from '../core/errors.ts';
import { type KindName, type ResourceKey, takeApart } from '../core/keys.ts';
import type { Ip, ServerId } from '../core/resources.ts';
import type { Binding, Intent, StateChange } from '../core/state.ts';
import { draftOne } from '../plan/draft.ts';
import { described } from '../plan/strangers.ts';
import { boundBy, close } from './endings.ts';
import type { EngineDeps, Resolution } from './engine.ts';
import { openRun } from './look.ts';
import { bindingOf } from './operate.ts';
import { letGo, released } from './release.ts';
import type { Run } from './run.ts';
import { vouchFor } from './strangers.ts';
import { survey } from './survey.ts';
import type { WriteGate } from './write-gate.ts';

/** Binds a key of the file to a live resource, whoever made it. */
export async function adoptKey(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  key: ResourceKey,
  id: string,
): Promise<string> {
  const run = await openRun(deps, gate, desired);
  const subject = run.world.subjects.get(key);
  if (subject?.binding?.id === id && subject.desired === undefined) return knowAgain(run, subject.binding);
  if (subject?.desired === undefined) {
    const keys = desired.resources.map((each) => each.key).join(', ');
    throw new ConfigError(`The file has no ${key}. It has: ${keys}`, true);
  }
  const open = run.intents.get(key);
  if (open !== undefined) {
    throw new ConfigError(
      `${key} has an unsettled ${open.verb}: use \`vdcsync resolve ${key} --adopt ${id}\`.`,
    );
  }
  refuseMalformed(subject.kind, id);
  if (!(await isLive(run, key, id))) {
    throw new ConfigError(`The project has no ${subject.kind.replaceAll('_', ' ')} ${id}.`);
  }
  await deps.store.claimProject(desired.projectId);
  await run.keepMoves();
  const binding = bindingOf(run, subject, id);
  const before = subject.binding?.id === id ? undefined : subject.binding;
  await run.change([
    ...takenFrom(run, binding),
    ...(before === undefined ? [] : letGo(run, key, `bound to ${id} instead`)),
    { type: 'bind', binding },
  ]);
  if (before === undefined) return `${key} is bound to ${id}.`;
  const theirs = before.kind === 'server' ? ` If that is meant: vdcsync ignore ${before.id}` : '';
  return `${key} is bound to ${id}.${stays(run, before)}${theirs}`;
}

/** What has left the file and looks otherwise now is the same all the same: a person says so. */
async function knowAgain(run: Run, binding: Binding): Promise<string> {
  const { key, kind, id } = binding;
  const subject = run.world.subjects.get(key) ?? { key, kind };
  const { identity } = bindingOf(run, subject, id);
  await run.change([{ type: 'bind', binding: { ...binding, identity } }]);
  return `${key} is ${id}, as it is now.`;
}

/** Says of servers (by id) and addresses (as text) that they are somebody else's. */
export async function ignoreStrangers(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  names: readonly string[],
): Promise<string> {
  const run = await openRun(deps, gate, desired);
  const { world } = run;
  const servers = names.filter((name) => !name.includes('.')).map((name) => Number(name) as ServerId);
  for (const id of servers) refuseOurs(run, 'server', `server ${id}`, await isServer(run, id), String(id));
  const addresses = names
    .filter((name) => name.includes('.'))
    .flatMap((name) => {
      const live = world.ips.find(({ address }) => address === name);
      refuseOurs(run, 'ip', `address ${name}`, live !== undefined, String(live?.id));
      return live ?? [];
    });
  await deps.store.claimProject(desired.projectId);
  await vouchFor(run, { servers, addresses });
  const held = servers.flatMap((id) => world.ipsOf(String(id)));
  const what = described({ servers, addresses: [...addresses, ...held] });
  return `${what} ${names.length === 1 ? 'is' : 'are'} somebody else's: left alone, and in nobody's way.`;
}

function refuseOurs(run: Run, kind: KindName, noun: string, there: boolean, id: string): void {
  if (!there) throw new ConfigError(`The project has no ${noun}.`);
  const key = run.world.keyOf(kind, id);
  if (key !== undefined) throw new ConfigError(`${noun} is ${key}: \`vdcsync forget ${key}\` lets go of it.`);
}

async function isServer({ world, cache, deps }: Run, id: ServerId): Promise<boolean> {
  if (world.ipsOf(String(id)).length > 0 || world.servers?.some((each) => each.id === id)) return true;
  const read = cache.since(deps.clock.monotonic());
  return (await read.findNetworkInterfaces(id)) !== undefined;
}

/** Lets go of what a key stands for, which stays as it is. */
export async function forgetKey(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  key: ResourceKey,
): Promise<string> {
  const run = await openRun(deps, gate, desired);
  const binding = run.bindings.get(key);
  if (binding === undefined) throw new ConfigError(`The state binds nothing to ${key}.`, true);
  const open = [...run.intents.values()].find((each) => each.key === key || each.key.startsWith(`${key}.`));
  if (open !== undefined)
    throw new ConfigError(`${open.key} has an unsettled ${open.verb}: settle that first.`);
  const { parent, kind, id } = { ...takeApart(key), ...binding };
  if (parent === undefined && run.world.subjects.get(key)?.desired !== undefined)
    throw new ConfigError(
      `${key} is in the file, and would be made anew: take it out first, or write \`managed: false\` and \`id: ${id}\` in it.`,
    );
  await run.keepMoves();
  await run.change(letGo(run, key, 'a person let go of it'));
  const address = kind === 'ip' ? run.world.ip(id) : undefined;
  await vouchFor(run, {
    servers: kind === 'server' ? [Number(id)] : [],
    addresses: address === undefined ? [] : [address],
  });
  return `${key} stands for nothing any more.${stays(run, binding)}`;
}

/** What is let go of goes on being billed where it is still there. */
function stays({ world, kindOf }: Run, { kind, id }: Binding): string {
  const held = kind === 'server' ? world.ipsOf(id).map(({ address }) => address) : [];
  const name = kind === 'ip' ? world.ip(id)?.address : id;
  const noun = kind === 'ip' ? 'address' : kind.replaceAll('_', ' ');
  const what = [`${noun} ${name ?? id}`, ...(held.length === 0 ? [] : [`address ${held.join(', ')}`])];
  const billed = kindOf(kind).billed ? ', and is billed as long as it is there' : '';
  return ` What it stood for is nobody's now${billed}: ${what.join(' with ')}.`;
}

/** Ends an intent on a person's word, checked against the project where that is possible. */
export async function resolveIntent(
  deps: EngineDeps,
  gate: WriteGate,
  desired: Desired,
  key: ResourceKey,
  resolution: Resolution,
): Promise<string> {
  const run = await openRun(deps, gate, desired);
  await run.keepMoves();
  const intent = run.intents.get(key);
  const bound = run.bindings.get(key);
  if (intent === undefined && bound !== undefined && resolution.type === 'absent' && isAnother(run, key))
    return goneAndUsedAgain(run, bound);
  if (intent === undefined) {
    const open = [...run.intents.keys()];
    const others = open.length === 0 ? 'Nothing is unsettled.' : `Unsettled: ${open.join(', ')}`;
    throw new ConfigError(`${key} has no unsettled write. ${others}`, true);
  }
  switch (resolution.type) {
    case 'adopt':
      return adoptOutcome(run, intent, resolution.id);
    case 'absent':
      return absentOutcome(run, intent);
    case 'abandon':
      await close(run, intent, 'abandoned', 'a person gave it up');
      return `${key}: the ${intent.verb} is given up. ${leftBehind(run, intent)}`;
  }
}

/** What is known of what a write made is named, for nothing is bound to it. */
function leftBehind({ world }: Run, { verb, kind, resourceId }: Intent): string {
  if (verb !== 'create') return 'What it stands for stays bound, as it is.';
  if (resourceId === undefined) return "What it may have made is nobody's, and is billed if it is there.";
  const noun = kind === 'ip' ? 'address' : kind.replaceAll('_', ' ');
  const name = kind === 'ip' ? world.ip(resourceId)?.address : resourceId;
  const held = kind === 'server' ? world.ipsOf(resourceId).map(({ address }) => address) : [];
  const what = [`${noun} ${name ?? resourceId}`, ...held.map((address) => `address ${address}`)].join(
    ' and ',
  );
  const unseen = kind === 'server' && held.length === 0 ? ', which no plan will show' : '';
  return `It made ${what}${unseen}: nobody's now, and billed as long as it is there.`;
}

function isAnother({ deps, world }: Run, key: ResourceKey): boolean {
  const subject = world.subjects.get(key);
  const verdict = subject && draftOne(deps.kinds, world, subject).diff.verdict;
  return verdict?.verdict === 'blocked' && verdict.code === 'identity_changed';
}

/** What has the bound id is somebody else's now, and what was bound is gone. @assumption A17 */
async function goneAndUsedAgain(run: Run, { key, kind, id }: Binding): Promise<string> {
  await run.change(released(run, key, 'a person said that it is gone, and its id used again'));
  const address = kind === 'ip' ? run.world.ip(id) : undefined;
  await vouchFor(run, {
    servers: kind === 'server' ? [Number(id)] : [],
    addresses: address === undefined ? [] : [address],
  });
  return `${key}: taken as gone; ${kind.replaceAll('_', ' ')} ${id} is somebody else's, and left alone.`;
}

async function adoptOutcome(run: Run, intent: Intent, id: string): Promise<string> {
  refuseMalformed(intent.kind, id);
  if (intent.verb === 'delete') {
    throw new ConfigError(
      `${intent.key} is being deleted: use --absent once it is gone, or --abandon.`,
      true,
    );
  }
  const read = run.cache.since(run.deps.clock.monotonic());
  const found = await run.kindOf(intent.kind).evidence({ ...intent, resourceId: id }, read, () => new Set());
  if (found.verdict === 'not_done' || found.verdict === 'unclear' || found.id !== id) {
    throw new ConfigError(
      `The project has no ${intent.kind.replaceAll('_', ' ')} ${id} that fits ${intent.key}.`,
    );
  }
  const facts = found.verdict === 'done' ? found.facts : undefined;
  const bound = boundBy(run, intent, id, facts);
  const taken = bound.flatMap((change) => (change.type === 'bind' ? takenFrom(run, change.binding) : []));
  await close(run, intent, 'done', `a person adopted ${id}`, { changes: [...taken, ...bound] });
  return `${intent.key} is bound to ${id}.`;
}

/**
 * A resource has one key. Another one that is bound to its id either is the same resource,
 * and keeps it, or was one that is gone and whose id was used again. @assumption A17
 */
function takenFrom(run: Run, { key, kind, id, parentId, identity }: Binding): StateChange[] {
  const owner = [...run.bindings.values()].find(
    (each) =>
      each.kind === kind &&
      each.id === id &&
      each.key !== key &&
      (kind === 'ip' || each.parentId === parentId),
  );
  if (owner === undefined) return [];
  const differs = Object.entries(owner.identity).some(
    ([field, value]) => identity[field] !== undefined && identity[field] !== value,
  );
  if (!differs) throw new ConfigError(`${id} is bound to ${owner.key} already.`);
  return released(run, owner.key, `its id ${id} is another resource's now`);
}

/** A person's word goes where reads tell nothing, and not against what they do tell. */
async function absentOutcome(run: Run, intent: Intent): Promise<string> {
  const { key, verb, kind } = intent;
  refuseTooSoon(run, intent);
  const read = run.cache.since(run.deps.clock.monotonic());
  const found = await run.kindOf(kind).evidence(intent, read, (each) => run.known(each, intent));
  if (verb === 'delete' && found.verdict !== 'done') {
    throw new ConfigError(`${key} is still there, so its deletion cannot be taken as done: use --abandon.`);
  }
  const isThere =
    found.verdict === 'pending' || found.verdict === 'failed' || (found.verdict === 'done' && found.certain);
  if (verb !== 'delete' && isThere) {
    throw new ConfigError(`${key} is not absent: it is ${found.id}. Use --adopt ${found.id}.`);
  }
  const changes = verb === 'delete' ? released(run, key, 'a person said that it is gone') : [];
  const outcome = verb === 'delete' ? 'done' : 'absent';
  const left = verb === 'create' && kind === 'server' ? leftFree(run, intent, await read.ips()) : [];
  await close(run, intent, outcome, 'a person said that it is absent', { changes });
  const billed =
    left.length === 0
      ? ''
      : ` But address ${left.join(', ')} came meanwhile, is free and is billed: release it, if it is nobody's.`;
  return `${key}: taken as absent; the next apply goes on from there.${billed}`;
}

/** A write that nobody has answered may take effect until its time-out and a while longer. */
function refuseTooSoon({ deps }: Run, { key, ambiguous, phase, lastSentAt }: Intent): void {
  if (!ambiguous && phase !== 'sending') return;
  const age = deps.clock.now() - lastSentAt;
  const rest = deps.requestTimeoutMs + 30_000 - age;
  if (age < 0 || rest <= 0) return;
  throw new ConfigError(
    `${key} was sent ${Math.round(age / 1000)} s ago and may still take effect: say so again in ${Math.ceil(rest / 1000)} s.`,
  );
}

/** What a server that came and went may have left: nothing would tell of it any more. */
function leftFree(run: Run, intent: Intent, ips: readonly Ip[]): readonly string[] {
  const { ips: before = [] } = intent.preimage as { readonly ips?: readonly number[] };
  const ours = run.known('ip', intent);
  return ips
    .filter(({ id, server_id }) => server_id === null && !before.includes(id) && !ours.has(String(id)))
    .map(({ address }) => address);
}

/** Looks as if the key were bound to the id already. */
async function isLive(run: Run, key: ResourceKey, id: string): Promise<boolean> {
  const subject = run.world.subjects.get(key);
  if (subject === undefined) return false;
  const parentId = subject.parent === undefined ? undefined : run.world.idOf(subject.parent);
  const supposed: Binding = {
    key,
    kind: subject.kind,
    id,
    ...(parentId === undefined ? {} : { parentId }),
    identity: {},
    applied: null,
    protect: false,
    keep: false,
    boundAt: 0,
  };
  const read = run.cache.since(run.deps.clock.monotonic());
  const world = await survey({
    desired: run.desired,
    bindings: new Map([...run.bindings, [key, supposed]]),
    kinds: run.deps.kinds,
    profile: run.deps.profile,
    read,
    catalogueRead: read,
  });
  return (world.observed.get(key) as { readonly id?: string } | undefined)?.id === id;
}

/** @source API §2: integers are identifiers unless stated otherwise */
function refuseMalformed(kind: KindName, id: string): void {
  const form =
    kind === 'iso' ? /^uiso-\d{1,10}$/ : ['server', 'ip', 'network'].includes(kind) ? /^\d+$/ : /./;
  if (form.test(id)) return;
  const like = kind === 'iso' ? 'uiso-12' : '2001';
  throw new ConfigError(
    `"${id}" is no id of ${kind === 'ip' || kind === 'iso' ? 'an' : 'a'} ${kind}: it looks like ${like}.`,
    true,
  );
}
