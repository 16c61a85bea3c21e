import { ConfigError } from '../../../src/core/errors.ts';
import type { ResourceKey } from '../../../src/core/keys.ts';
import { stepsOf } from '../../../src/core/remedy.ts';
import {
  type Give,
  type Operator,
  remediesOf,
  runCommand,
} from '../../../src/simulation/operator-command.ts';
import { withoutEntry } from '../edited-file.ts';

/** Gives the command again where an error names a way to release the resource first, or to adopt the one that exists. */
export const give: Give = async (operator, command) => {
  const first = await runCommand(operator, command);
  const there = existing(first);
  const next = there === undefined ? command : ({ ...command, as: { type: 'adopt', id: there } } as const);
  const isFree = there !== undefined || (await freed(operator, first));
  return remediesOf(operator, next, isFree ? await runCommand(operator, next) : first);
};

/** The resource that an error names: reads show it, and the operator has declared it absent. */
function existing(said: unknown): string | undefined {
  const [step] = said instanceof ConfigError ? said.remedies : [];
  const isNamed = step?.type === 'run' && step.command === 'resolve' && step.args[1] === '--adopt';
  return isNamed ? step.args[2] : undefined;
}

/** Carries out the way of an error that releases the resource from the other key that has it. */
async function freed(operator: Operator, said: unknown): Promise<boolean> {
  const { file } = operator;
  const steps = said instanceof ConfigError ? stepsOf(said.remedies) : [];
  const last = steps.at(-1);
  const [key] = last?.type === 'run' && last.command === 'forget' ? (last.args as ResourceKey[]) : [];
  if (key === undefined) return false;
  const unpruned = { ...file, settings: { ...file.settings, prune: false } };
  const without = { ...operator, file: withoutEntry(unpruned, key) };
  const released = await runCommand(without, { do: 'forget', key });
  return released !== undefined && !(released instanceof Error);
}

/** Releases the resource of the key, unless an earlier message has released it with its server. */
export async function releaseOnce(operator: Operator, key: ResourceKey): Promise<void> {
  const { bindings } = await operator.stage.readState(operator.controller);
  if (bindings.some((each) => each.key === key)) await give(operator, { do: 'forget', key });
}
