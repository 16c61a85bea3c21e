import { ConfigError } from '../../../src/core/errors.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { type Remedy, stepsOf } from '../../../src/core/remedy.ts';
import type { Controller } from '../../../src/simulation/controller.ts';
import { apiId, type Command, remediesOf, runCommand } from '../../../src/simulation/operator-command.ts';
import type { StoryStage } from '../../../src/simulation/stage.ts';
import type { SpecModel } from '../../../src/simulation/story.ts';
import { withoutEntry } from '../edited-file.ts';

/** Gives the command again where an error names a way to release the resource first. */
export const command: Command = async (stage, controller, file, text, run) => {
  const first = await runCommand(stage, controller, file, text, run);
  const isFreed = await freed(stage, controller, file, first);
  const said = isFreed ? await runCommand(stage, controller, file, text, run) : first;
  return remediesOf(stage, text, said);
};

/** Carries out the way of an error that releases the resource from the other key that has it. */
async function freed(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  said: unknown,
): Promise<boolean> {
  const steps = said instanceof ConfigError ? stepsOf(said.remedies) : [];
  const last = steps.at(-1);
  const [key] = last?.type === 'run' && last.command === 'forget' ? (last.args as ResourceKey[]) : [];
  if (key === undefined) return false;
  const unpruned = { ...file, settings: { ...file.settings, prune: false } };
  const without = withoutEntry(unpruned, key);
  const released = await runCommand(stage, controller, without, `forget ${key}`, (engine, desired) =>
    engine.forget(desired, key),
  );
  return released !== undefined && !(released instanceof Error);
}

export function adopt(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  key: ResourceKey,
  id: string,
): Promise<readonly Remedy[]> {
  return command(stage, controller, file, `adopt ${key} ${id}`, (engine, desired) =>
    engine.adopt(desired, key, id),
  );
}

/** Releases the resource of the key, unless an earlier message has released it with its server. */
export async function releaseOnce(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  key: ResourceKey,
): Promise<void> {
  const store = await controller.box.open(stage.clock.now());
  const isBound = (await store.bindings()).some((each) => each.key === key);
  await controller.box.release();
  if (!isBound) return;
  await command(stage, controller, file, `forget ${key}`, (engine, desired) => engine.forget(desired, key));
}

/**
 * The id of the resource that this spec made under the key, if it still exists and only the state has lost it. Of
 * several, it is the offered one, otherwise the last one.
 */
export function ownId(stage: StoryStage, key: ResourceKey, offered?: string): string | undefined {
  const live = stage.executionsOf(key).filter((each) => stage.history.isLive(each));
  return apiId(live.find((each) => apiId(each) === offered) ?? live.at(-1));
}
