import type { Desired } from '../core/desired.ts';
import { ApiProblem, NotAbsentError, StateError, StateInUseError, TooSoonError } from '../core/errors.ts';
import type { ResourceKey } from '../core/keys.ts';
import { type CommandResult, type Remedy, stepsOf } from '../core/remedy.ts';
import { TransportError } from '../core/transport.ts';
import type { Execution } from '../emulator/world.ts';
import type { Resolution } from '../engine/deps.ts';
import type { Engine } from '../engine/engine.ts';
import type { Controller } from './controller.ts';
import type { StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

/** An operator at a machine, and the spec that the messages are about. */
export interface Operator {
  readonly stage: StoryStage;
  readonly controller: Controller;
  readonly file: SpecModel;
}

/** A command of vdcsync with its arguments. */
export type Command =
  | { readonly do: 'forget'; readonly key: ResourceKey }
  | { readonly do: 'adopt'; readonly key: ResourceKey; readonly id: string }
  | { readonly do: 'ignore' | 'unignore'; readonly names: readonly string[] }
  | { readonly do: 'resolve'; readonly key: ResourceKey; readonly as: Resolution };

function textOf(command: Command): string {
  switch (command.do) {
    case 'forget':
      return `forget ${command.key}`;
    case 'adopt':
      return `adopt ${command.key} ${command.id}`;
    case 'ignore':
    case 'unignore':
      return `${command.do} ${command.names.join(' ')}`;
    case 'resolve':
      return `resolve ${command.key} ${wordOf(command.as)}`;
  }
}

/** The resolution as an argument of `vdcsync resolve`. */
export function wordOf(resolution: Resolution): string {
  return resolution.type === 'adopt' ? `--adopt ${resolution.id}` : `--${resolution.type}`;
}

async function carryOut(engine: Engine, desired: Desired, command: Command): Promise<CommandResult> {
  switch (command.do) {
    case 'forget':
      return engine.forget(desired, command.key);
    case 'adopt':
      return engine.adopt(desired, command.key, command.id);
    case 'ignore':
    case 'unignore':
      return engine[command.do](desired, command.names);
    case 'resolve':
      return engine.resolve(desired, command.key, command.as);
  }
}

/** Gives a command that must succeed. Returns the remedies that it names afterwards. */
export type Give = (operator: Operator, command: Command) => Promise<readonly Remedy[]>;

export const give: Give = async (operator, command) =>
  remediesOf(operator, command, await runCommand(operator, command));

/** Runs a command; gives its result, its error, or `undefined` if it died. */
export async function runCommand(
  operator: Operator,
  command: Command,
  tries = 1,
): Promise<CommandResult | Error | undefined> {
  const { stage, controller, file } = operator;
  const desired = stage.load(file);
  const { running, engine } = await stage.start(controller, desired);
  running.byOperator = true;
  const ended = carryOut(engine, desired, command).catch((error: unknown) => error);
  const said = (await stage.clock.run(Promise.race([ended, running.crashable.died]))) as
    | CommandResult
    | Error
    | undefined;
  const reported = said instanceof Error ? `failed: ${said.message}` : (said?.text ?? 'crash');
  stage.trace.add('op', `$ vdcsync ${textOf(command)} → ${reported}`);
  await stage.end(running);
  if (said instanceof TooSoonError) {
    await stage.clock.advance(Math.ceil(said.restMs / 1000) * 1000);
    return runCommand(operator, command);
  }
  if (isOfApi(said) && tries < mostTries) {
    await stage.clock.advance(60_000);
    return runCommand(operator, command, tries + 1);
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
  { stage }: Operator,
  command: Command,
  said: CommandResult | Error | undefined,
): readonly Remedy[] {
  // The API's answer to the key proves more than the client area: the next apply binds the resource that it names.
  if (said instanceof NotAbsentError) return [];
  // A list that ends early may lack the resource that the client area shows. @assumption A8
  const isCut = stage.emulator.readings.pageSize !== null;
  // A revoked token says nothing about the command.
  const isRevoked = said instanceof ApiProblem && said.status === 401;
  // The operator reads the state again, which may hold the answer or not.
  const isOfDisk = said instanceof StateError && !(said instanceof StateInUseError);
  if (said instanceof Error && !isCut && !isRevoked && !isOfDisk)
    stage.fail('I12', `vdcsync ${textOf(command)}: failed: ${said.message}`);
  return said instanceof Error ? [] : (said?.remedies ?? []);
}

/** The id by which the API names the created resource. The history names the server of a part as well. */
export function apiId(made: Execution | undefined): string | undefined {
  return made?.id?.split('/').at(-1);
}

/**
 * The id of the resource that this spec made under the key, if it still exists and only the state has lost it. Of
 * several, it is the offered one, otherwise the last one.
 */
export function ownId(stage: StoryStage, key: ResourceKey, offered?: string): string | undefined {
  const live = stage.executionsOf(key).filter((each) => stage.history.isLive(each));
  return apiId(live.find((each) => apiId(each) === offered) ?? live.at(-1));
}

/** The arguments of each command of that name. */
export function runs(remedies: readonly Remedy[], command: string): readonly (readonly string[])[] {
  return stepsOf(remedies).flatMap((step) =>
    step.type === 'run' && step.command === command ? [step.args] : [],
  );
}
