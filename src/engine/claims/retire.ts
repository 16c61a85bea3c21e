import { comesWithServer, type ResourceKey, retiringKey, takeApart } from '../../core/keys.ts';
import type { Binding, StateChange } from '../../core/state.ts';
import { boundIn, type Run } from '../run.ts';
import { released } from './release.ts';

/**
 * The changes by which a server retires: its binding, and the bindings of everything inside it, pass to a key of their
 * own, because another server takes over the key. The next plan deletes the resources of these keys. One transaction
 * contains these changes and the binding of the other server, so that a crash leaves both servers bound.
 */
export function retiring(run: Run, server: Binding): StateChange[] {
  const to = retiringKey(server.key, server.id);
  return [server, ...boundIn(run, server.key)].flatMap((each) => passing(run, each, server.key, to));
}

/**
 * The changes after the deletion of a resource. If the spec still declares it, a new one takes over its key: the address
 * of a deleted server then retires, and stays until the new server exists.
 */
export function deleted(run: Run, key: ResourceKey, reason: string): StateChange[] {
  const id = run.bindings.get(key)?.id;
  const isReplaced = id !== undefined && run.world.subjects.get(key)?.desired?.managed === true;
  const addresses = boundIn(run, key).filter(({ kind }) => comesWithServer({ kind, parent: key }));
  return [
    ...(isReplaced ? addresses.flatMap((each) => passing(run, each, key, retiringKey(key, id))) : []),
    ...released(run, key, reason),
  ];
}

function passing(run: Run, binding: Binding, from: ResourceKey, to: ResourceKey): StateChange[] {
  const key = `${to}${binding.key.slice(from.length)}` as ResourceKey;
  const { formerKeys: _, ...rest } = binding;
  // From now on, no entry of the spec says that the address stays, or that the server is protected.
  const entry = run.world.subjects.get(from)?.desired;
  const keep = rest.keep || (entry?.value.keep_ip === true && comesWithServer(takeApart(key)));
  const protect = entry?.protect ?? rest.protect;
  return [
    { type: 'release', key: binding.key, gone: false, reason: `retires as ${key}` },
    { type: 'bind', binding: { ...rest, key, keep, protect } },
  ];
}
