import type { Call } from './call.ts';

/** Idempotency keys of requests that wait inside the service, and until when. */
export class HeldKeys {
  readonly #holders = new Map<string, { readonly call: Call; readonly untilMs: number }>();

  hold(projectId: number, key: string, call: Call, untilMs: number): void {
    this.#holders.set(`${projectId}:${key}`, { call, untilMs });
  }

  /** Until when another request than this one holds the key. */
  busyUntil(projectId: number, key: string, call: Call): number | undefined {
    const holder = this.#holders.get(`${projectId}:${key}`);
    return holder === undefined || holder.call === call ? undefined : holder.untilMs;
  }

  release(call: Call): void {
    for (const [key, holder] of this.#holders) if (holder.call === call) this.#holders.delete(key);
  }

  clear(): void {
    this.#holders.clear();
  }
}
