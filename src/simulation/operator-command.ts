import {
  ApiProblem,
  ConfigError,
  NotAbsentError,
  StateError,
  StateHeldError,
  TooSoonError,
} from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import { type CommandResult, type Remedy, stepsOf } from '../core/remedy.ts';
import { TransportError } from '../core/transport.ts';
import type { Execution } from '../emulator/world.ts';
import type { Controller } from './controller.ts';
import { withoutEntry } from './edited-file.ts';
import type { StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

type Work = (
  engine: Awaited<ReturnType<StoryStage['start']>>['engine'],
  desired: ReturnType<StoryStage['load']>,
) => Promise<CommandResult>;

/** Runs a command; gives its result, its error, or `undefined` if it died. */
export async function runCommand(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  text: string,
  run: Work,
  tries = 1,
): Promise<CommandResult | Error | undefined> {
  const desired = stage.load(file);
  const { running, engine } = await stage.start(controller, desired);
  running.byPerson = true;
  const ended = run(engine, desired).catch((error: unknown) => error);
  const said = (await stage.clock.run(Promise.race([ended, running.crashable.died]))) as
    | CommandResult
    | Error
    | undefined;
  const told = said instanceof Error ? `failed: ${said.message}` : (said?.text ?? 'crash');
  stage.trace.add('op', `$ vdcsync ${text} → ${told}`);
  await stage.end(running);
  if (said instanceof TooSoonError) {
    await stage.clock.advance(Math.ceil(said.restMs / 1000) * 1000);
    return runCommand(stage, controller, file, text, run);
  }
  if (isOfApi(said) && tries < mostTries) {
    await stage.clock.advance(60_000);
    return runCommand(stage, controller, file, text, run, tries + 1);
  }
  return said;
}

/** The operator gives a command no more often. */
const mostTries = 10;

/** The API did not answer the reads of the command, which has then changed nothing. */
function isOfApi(said: unknown): boolean {
  return (
    said instanceof TransportError ||
    (said instanceof ApiProblem && (said.status === 429 || said.status >= 500))
  );
}

/** A command that must succeed; gives the remedies that it names afterwards. */
export async function command(
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  text: string,
  run: Work,
): Promise<readonly Remedy[]> {
  const first = await runCommand(stage, controller, file, text, run);
  const isFreed = await freed(stage, controller, file, first);
  const said = isFreed ? await runCommand(stage, controller, file, text, run) : first;
  // The API's answer to the key proves more than the client area: the next apply binds the resource that it names.
  if (said instanceof NotAbsentError) return [];
  // A list that ends early may lack the resource that the client area shows. @assumption A8
  const isCut = stage.emulator.readings.pageSize !== null;
  // A revoked token says nothing about the command.
  const isRevoked = said instanceof ApiProblem && said.status === 401;
  // The operator reads the state again, which may hold the answer or not.
  const isOfDisk = said instanceof StateError && !(said instanceof StateHeldError);
  if (said instanceof Error && !isCut && !isRevoked && !isOfDisk)
    stage.fail('I12', `vdcsync ${text}: failed: ${said.message}`);
  return said instanceof Error ? [] : (said?.remedies ?? []);
}

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

/** The id by which the API names the created resource. The history names the server of a part as well. */
export function apiId(made: Execution | undefined): string | undefined {
  return made?.id?.split('/').at(-1);
}

/** The arguments of each command of that name. */
export function runs(remedies: readonly Remedy[], command: string): readonly (readonly string[])[] {
  return stepsOf(remedies).flatMap((step) =>
    step.type === 'run' && step.command === command ? [step.args] : [],
  );
}
