import { backOff, type Clock } from '../core/clock.ts';
import type { HttpRequest, Transport } from '../core/transport.ts';

/** One request may take so long, in real ms. */
const timeoutMs = 10_000;
/** Retries after 5, 10, 20 … s. */
const retry = { firstMs: 5_000, mostMs: 160_000, times: 6 } as const;

/**
 * The answer of a receiver outside the API: its status, or the reason why there is none. A reason names no address,
 * because an address can be a secret.
 */
export function answerOf(transport: Transport, request: HttpRequest): Promise<number | string> {
  return transport.send(request, { timeoutMs }).then(
    ({ status }) => status,
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'it failed'),
  );
}

/** The reason why an answer of {@link answerOf} is no success. */
export function failureText(answer: number | string): string {
  return typeof answer === 'number' ? `the answer was ${answer}` : answer;
}

/** Waits before the next attempt; `false` after the last attempt. `attempt` counts from 1. */
export async function waitToRetry(clock: Clock, attempt: number): Promise<boolean> {
  if (attempt > retry.times) return false;
  await clock.sleep(backOff(retry, attempt - 1, 0));
  return true;
}
