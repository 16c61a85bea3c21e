import type { ResourceKey } from '../../src/core/keys.ts';
import type { ApplyReport } from '../../src/core/progress.ts';
import type { Intent } from '../../src/core/state.ts';
import { aliveIds } from './invariants.ts';
import { load, type Rig } from './rig.ts';

/**
 * An operator who looks into the client area, and runs what a blocked operation asks for:
 * adopts what is there, and else says that it is absent.
 */
export async function settleByHand(rig: Rig, spec: string): Promise<readonly string[]> {
  const done: string[] = [];
  for (const intent of await rig.store.openIntents()) {
    if (intent.phase !== 'blocked' && intent.phase !== 'accepted') continue;
    const id = liveIdOf(rig, intent);
    const resolution =
      intent.verb === 'delete'
        ? ({ type: 'abandon' } as const)
        : id === undefined
          ? ({ type: 'absent' } as const)
          : ({ type: 'adopt', id } as const);
    const said = rig.engine.resolve(load(spec), intent.key, resolution);
    done.push((await rig.clock.run(said)).text);
  }
  for (const binding of await rig.store.bindings()) {
    if (binding.tainted === undefined) continue;
    const said = rig.engine.adopt(load(spec), binding.key as ResourceKey, binding.id);
    done.push((await rig.clock.run(said)).text);
  }
  return done;
}

/** Applies, and does what is asked in between, until there is nothing left to do. */
export async function applyWithHelp(
  rig: Rig,
  spec: string,
  most = 5,
): Promise<{ readonly reports: readonly ApplyReport[]; readonly helped: readonly string[] }> {
  const reports: ApplyReport[] = [];
  const helped: string[] = [];
  for (let turn = 0; turn < most; turn++) {
    const report = await rig.apply(spec);
    reports.push(report);
    if (report.outcome === 'converged') break;
    helped.push(...(await settleByHand(rig, spec)));
  }
  return { reports, helped };
}

/** What the intent made, if that lives: only the world knows. */
function liveIdOf({ emulator }: Rig, intent: Intent): string | undefined {
  if (intent.verb !== 'create') return undefined;
  const alive = aliveIds(emulator);
  const made = emulator.world.executions.findLast(
    ({ idempotencyKey, kind, id }) => idempotencyKey === intent.idempotencyKey && alive.has(`${kind} ${id}`),
  );
  return made?.id?.split('/').at(-1);
}
