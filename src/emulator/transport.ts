import type { Clock } from '../core/clock.ts';
import { type HttpResponse, type Transport, TransportError } from '../core/transport.ts';
import type { Emulator } from './options.ts';

/**
 * The emulator as a transport, without a network. Time-outs run on the caller's
 * clock. When the caller gives a request up, the request continues inside the emulator, as it would
 * on the other side of a network.
 */
export function inProcessTransport(emulator: Emulator, clock: Clock): Transport {
  let closed = false;
  return {
    send: async (request, { timeoutMs, signal }) => {
      if (closed) throw new TransportError('the transport is closed', 'none', 'ERR_CLOSED');
      if (signal?.aborted === true) {
        throw new TransportError('given up before it was sent', 'none', 'ABORT_ERR', signal.reason);
      }
      const answer = emulator.handle(request).then((exchange): HttpResponse => {
        switch (exchange.kind) {
          case 'answer':
            return exchange.response;
          case 'truncated':
            throw new TransportError('the connection broke inside the answer', 'unknown', 'ECONNRESET');
          case 'reset':
            throw new TransportError('the connection was reset', 'unknown', 'ECONNRESET');
          case 'refused':
            throw new TransportError('the connection was refused', 'none', 'ECONNREFUSED');
        }
      });
      return await Promise.race([answer, giveUp(answer, clock, timeoutMs, signal)]);
    },
    close: async () => {
      closed = true;
    },
  };
}

/** Resolves with the answer. Rejects if the time-out or the signal of the caller comes first. */
async function giveUp(
  answer: Promise<HttpResponse>,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<HttpResponse> {
  const done = new AbortController();
  // Without a reason, each request would create an error with its stack.
  const finished = () => done.abort('answered');
  answer.then(finished, finished);
  const stop = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal]);
  try {
    await clock.sleep(timeoutMs, stop);
  } catch (error) {
    if (!done.signal.aborted) throw new TransportError('given up', 'unknown', 'ABORT_ERR', error);
    return answer;
  }
  throw new TransportError(`no answer within ${timeoutMs} ms`, 'unknown', 'ETIMEDOUT');
}
