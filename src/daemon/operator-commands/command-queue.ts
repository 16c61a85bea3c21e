import type { Desired } from '../../core/desired.ts';
import { ConfigError, messageOf, remediesOf } from '../../core/errors.ts';
import type { CommandResult } from '../../core/remedy.ts';
import type { Engine } from '../../engine/engine.ts';
import type { DaemonLogger } from '../ports.ts';
import type { CommandAnswer, OperatorCommand } from './control.ts';

/** Operator commands that wait until the project can carry them out. */
export class CommandQueue {
  readonly #log: DaemonLogger;
  #waiting: readonly {
    readonly command: OperatorCommand;
    readonly answer: (answer: CommandAnswer) => void;
  }[] = [];

  constructor(log: DaemonLogger) {
    this.#log = log;
  }

  /** @param owner the other process that owns the state: only the owner can carry out a command */
  take(command: OperatorCommand, owner: string | undefined): Promise<CommandAnswer> {
    if (owner !== undefined)
      return Promise.resolve({ refused: `another process owns the state: ${owner}`, misuse: false });
    return new Promise((answer) => {
      this.#waiting = [...this.#waiting, { command, answer }];
    });
  }

  async obey(engine: Engine, desired: Desired | undefined): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { command, answer } of waiting) {
      const key = 'key' in command ? { key: command.key } : {};
      this.#log.info({ ...key, command: command.command }, 'operator command received');
      answer(await obey(command, engine, desired));
    }
  }
}

/** Carries out an operator command. Every result, also an error, is an answer. */
async function obey(
  command: OperatorCommand,
  engine: Engine,
  desired: Desired | undefined,
): Promise<CommandAnswer> {
  if (desired === undefined) return { refused: 'the daemon has no valid spec yet', misuse: false };
  try {
    return { done: await carryOut(command, engine, desired) };
  } catch (error) {
    return {
      refused: messageOf(error),
      misuse: error instanceof ConfigError && error.misuse,
      remedies: remediesOf(error),
    };
  }
}

/** Throws if the command is refused. */
export function carryOut(command: OperatorCommand, engine: Engine, desired: Desired): Promise<CommandResult> {
  switch (command.command) {
    case 'adopt':
      return engine.adopt(desired, command.key, command.id);
    case 'resolve':
      return engine.resolve(desired, command.key, command.resolution);
    case 'forget':
      return engine.forget(desired, command.key);
    case 'ignore':
      return engine.ignore(desired, command.names);
    case 'approve':
      return engine.approve(desired, command.digest);
    case 'unignore':
      return engine.unignore(desired, command.names);
  }
}
