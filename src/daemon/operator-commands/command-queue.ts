import type { Desired } from '../../core/desired.ts';
import { ConfigError, remediesOf } from '../../core/errors.ts';
import type { CommandResult } from '../../core/remedy.ts';
import type { Engine } from '../../engine/engine.ts';
import type { DaemonLogger } from '../ports.ts';
import type { Answer, OperatorCommand } from './control.ts';

/** Operator commands that wait until the project can carry them out. */
export class CommandQueue {
  readonly #log: DaemonLogger;
  #waiting: readonly { readonly order: OperatorCommand; readonly answer: (answer: Answer) => void }[] = [];

  constructor(log: DaemonLogger) {
    this.#log = log;
  }

  take(order: OperatorCommand): Promise<Answer> {
    return new Promise((answer) => {
      this.#waiting = [...this.#waiting, { order, answer }];
    });
  }

  async obey(engine: Engine, desired: Desired | undefined): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { order, answer } of waiting) {
      const key = 'key' in order ? { key: order.key } : {};
      this.#log.info({ ...key, sort: order.order }, 'operator command received');
      answer(await obey(order, engine, desired));
    }
  }
}

/** Carries out an operator command. Every result, also an error, is an answer. */
async function obey(order: OperatorCommand, engine: Engine, desired: Desired | undefined): Promise<Answer> {
  if (desired === undefined) return { refused: 'the daemon has no spec that can be used yet', misuse: false };
  try {
    return { done: await carryOut(order, engine, desired) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return {
      refused: message,
      misuse: error instanceof ConfigError && error.misuse,
      remedies: remediesOf(error),
    };
  }
}

/** Throws if the command is refused. */
export function carryOut(order: OperatorCommand, engine: Engine, desired: Desired): Promise<CommandResult> {
  switch (order.order) {
    case 'adopt':
      return engine.adopt(desired, order.key, order.id);
    case 'resolve':
      return engine.resolve(desired, order.key, order.resolution);
    case 'forget':
      return engine.forget(desired, order.key);
    case 'ignore':
      return engine.ignore(desired, order.names);
    case 'approve':
      return engine.approve(desired, order.digest);
    case 'unignore':
      return engine.unignore(desired, order.names);
  }
}
