import type { Publications, PublishedSpec, WaitingSpec } from '../../src/core/fleet.ts';
import type { Json } from '../../src/core/json.ts';

/** What a fleet has published, in memory. */
export class MemoryPublications {
  last: { readonly version: number; readonly head: Json } | undefined;
  readonly #specs = new Map<string, PublishedSpec & { readonly version: number }>();
  readonly #waiting = new Map<number, WaitingSpec>();
  #asked = 0;

  /** A connection, some of whose methods are others. */
  open(others: Partial<Publications> = {}): Publications {
    return {
      publication: async () => this.last,
      waiting: async () => [...this.#waiting.values()],
      publishedFor: async () => undefined,
      projects: async () => [],
      changed: async () => [],
      asked: async () => this.#asked,
      setAsked: async (version) => {
        this.#asked = version;
      },
      published: async (after, upTo) =>
        [...this.#specs.values()].filter(({ version }) => version > after && version <= upTo),
      publish: async (news, head, { put, gone }) => {
        for (const each of put) this.#waiting.set(each.project, each);
        for (const project of gone) this.#waiting.delete(project);
        const version = (this.last?.version ?? 0) + 1;
        for (const each of news) this.#specs.set(each.name, { ...each, version });
        this.last = { version, head };
        return version;
      },
      close: async () => {},
      ...others,
    };
  }
}
