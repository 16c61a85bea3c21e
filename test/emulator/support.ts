import * as fc from 'fast-check';
import type { HttpResponse } from '../../src/core/transport.ts';
import { createEmulator, type Emulator, type EmulatorOptions } from '../../src/emulator/emulator.ts';
import { type Readings, readingValues } from '../../src/emulator/readings.ts';
import { virtualClock } from '../support/virtual-clock.ts';

/** Saturday 1 August 2026, 12:00:00 UTC: a full minute. */
export const NOON = Date.UTC(2026, 7, 1, 12);

/** Lets everything that waits for nothing but other promises come to an end. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
}

export interface Answer {
  status: number;
  headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of every shape
  body: any;
}

export interface CallOptions {
  key?: string;
  token?: string;
  headers?: Record<string, string>;
}

/** An emulator under a clock that only the test moves, and a short way to call it. */
export function stage(options: Partial<EmulatorOptions> = {}) {
  const clock = virtualClock(NOON);
  const emulator = createEmulator({ clock, seed: 'tests', ...options });
  return { clock, emulator, call: caller(emulator) };
}

export function caller(emulator: Emulator) {
  return async (method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> => {
    const exchange = await emulator.handle({
      method,
      url: `http://emulator/v1${path}`,
      headers: {
        authorization: `Bearer ${options.token ?? emulator.tokens().readWrite}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(options.key === undefined ? {} : { 'idempotency-key': options.key }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    if (exchange.kind !== 'answer') throw new Error(exchange.kind);
    return parsed(exchange.response);
  };
}

export function parsed({ status, headers, body }: HttpResponse): Answer {
  try {
    return { status, headers, body: JSON.parse(body) };
  } catch {
    return { status, headers, body };
  }
}

/** The first image of the list called `ubuntu-24.04`. */
export async function imageOf(call: ReturnType<typeof caller>, typeId: number): Promise<string> {
  const { body } = await call('GET', `/server-types/${typeId}/images`);
  return body.data.find((image: { name: string }) => image.name === 'ubuntu-24.04').id;
}

/** A body that creates a slider server. */
export async function sliderServer(call: ReturnType<typeof caller>, more: object = {}): Promise<object> {
  const image = await imageOf(call, 3);
  return { name: 'web-1', server_type_id: 3, image, cores: 2, memory_mb: 4096, disk_gb: 40, ...more };
}

/** Any readings; a list that is cut off shows too little to compare. */
export const anyReadings = fc.record(
  Object.fromEntries(
    Object.entries(readingValues)
      .filter(([name]) => name !== 'pageSize')
      .map(([name, values]) => [
        name,
        fc.constantFrom(...values.map((value) => (value === 'number' ? 20_000 : value))),
      ]),
  ),
) as unknown as fc.Arbitrary<Readings>;
