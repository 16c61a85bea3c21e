import { ApiProblem, NotAbsentError, StateError, StateHeldError, TooSoonError } from '../core/errors.ts';
import { type CommandResult, type Remedy, stepsOf } from '../core/remedy.ts';
import { TransportError } from '../core/transport.ts';
import type { Execution } from '../emulator/world.ts';
import type { Controller } from './controller.ts';
import type { StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

export type Work = (
  engine: Awaited<ReturnType<StoryStage['start']>>['engine'],
  desired: ReturnType<StoryStage['load']>,
) => Promise<CommandResult>;

/** A command that must succeed; gives the remedies that it names afterwards. */
export type Command = (
  stage: StoryStage,
  controller: Controller,
  file: SpecModel,
  text: string,
  run: Work,
) => Promise<readonly Remedy[]>;

export const command: Command = async (stage, controller, file, text, run) =>
  remediesOf(stage, text, await runCommand(stage, controller, file, text, run));

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

/** The remedies of a command that must have succeeded. */
export function remediesOf(
  stage: StoryStage,
  text: string,
  said: CommandResult | Error | undefined,
): readonly Remedy[] {
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
