import { type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import type { Running } from './controller.ts';
import { boundariesOf, describe } from './exchanges.ts';
import type { Rules } from './rules/rules.ts';
import { isWrite, keyOf } from './rules/truth.ts';
import type { VirtualClock } from './virtual-clock.ts';

export interface Watching {
  readonly rules: Rules;
  readonly clock: VirtualClock;
  /** A rule was broken: nothing is sent any more. */
  readonly isOver: () => boolean;
  readonly fail: (rule: string, message: string) => void;
}

/** The transport of a process. Each request is a boundary; the rules judge it before and after. */
export function watchedTransport(
  process: Running,
  inner: Transport,
  { rules, clock, isOver, fail }: Watching,
): Transport {
  return {
    send: (request, options) => {
      // A write that was on its way at the suspension is sent: then the key protects.
      if (process.crashable.isFenced && isWrite(request))
        fail('I7', `${process.name} sends ${describe(request)} after it has lost its state`);
      return process.crashable.cross(boundariesOf(request), async () => {
        rules.arrives(process, request);
        if (isOver()) throw new Error('the scenario is over');
        const sentAt = clock.monotonic();
        let response: HttpResponse | undefined;
        let refused = false;
        try {
          response = await inner.send(request, options);
          return response;
        } catch (error) {
          refused = error instanceof TransportError && error.effect === 'none';
          throw error;
        } finally {
          if (response !== undefined) process.answered.add(keyOf(request));
          const isLate = clock.monotonic() > sentAt;
          rules.handled(process, request, { response, refused, isLate });
        }
      });
    },
    close: () => inner.close(),
  };
}
