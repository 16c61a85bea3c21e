/** Computes the value at its first use. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Runs each piece of work when those before it have ended. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  take<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => undefined);
    return done;
  }

  /** Resolves when all earlier work has ended. */
  async end(): Promise<void> {
    await this.#tail;
  }
}
