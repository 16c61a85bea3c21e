import type { Desired } from '../../core/desired.ts';
import { ConfigError } from '../../core/errors.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Answer, Order } from './control.ts';

/** An order that waits for its turn, and where its answer goes. */
export interface PendingOrder {
  readonly order: Order;
  readonly answer: (answer: Answer) => void;
}

/** Carries a person's word out; whatever comes of it is an answer. */
export async function obey(order: Order, engine: Engine, desired: Desired | undefined): Promise<Answer> {
  if (desired === undefined) return { refused: 'the daemon has no spec that can be used yet', misuse: false };
  try {
    return { done: await carryOut(order, engine, desired) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { refused: message, misuse: error instanceof ConfigError && error.misuse };
  }
}

/** Throws where it is refused. */
export function carryOut(order: Order, engine: Engine, desired: Desired): Promise<string> {
  switch (order.order) {
    case 'adopt':
      return engine.adopt(desired, order.key, order.id);
    case 'resolve':
      return engine.resolve(desired, order.key, order.resolution);
    case 'forget':
      return engine.forget(desired, order.key);
    case 'ignore':
      return engine.ignore(desired, order.names);
  }
}
