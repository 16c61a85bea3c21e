import type { StateStore } from '../../src/core/state.ts';
import type { Transport } from '../../src/core/transport.ts';
import { changing } from '../../src/simulation/durable.ts';

/** What a process does to the outside: each is a moment at which it may die. */
const changes = new Set<string>(changing);

/**
 * A process that dies at a chosen moment: before or after one of its durable changes and
 * sends. From then on it changes and sends nothing more.
 */
export function crashable() {
  let moments = 0;
  let fatal: number | undefined;
  let dead = false;
  let timing: 'before' | 'after' = 'before';

  async function live<Result>(work: () => Promise<Result>): Promise<Result> {
    if (dead) throw new Error('the process is dead');
    moments += 1;
    const last = moments === fatal;
    if (last && timing === 'before') die();
    const result = await work();
    if (last) die();
    return result;
  }

  function die(): never {
    dead = true;
    throw new Error('the process dies');
  }

  return {
    /** Moments lived through so far. */
    get moments() {
      return moments;
    },
    /** Dies at that moment, counted from now; `undefined`: never. */
    dieAt(moment: number | undefined, when: 'before' | 'after') {
      moments = 0;
      fatal = moment;
      timing = when;
      dead = false;
    },
    store: (inner: StateStore): StateStore =>
      new Proxy(inner, {
        get(target, name) {
          const member = target[name as keyof StateStore] as (...given: unknown[]) => Promise<unknown>;
          if (!changes.has(String(name))) return member?.bind(target);
          return (...given: unknown[]) => live(() => member.apply(target, given));
        },
      }),
    transport: (inner: Transport): Transport => ({
      close: () => inner.close(),
      send: (request, options) =>
        request.method === 'GET' ? inner.send(request, options) : live(() => inner.send(request, options)),
    }),
  };
}
