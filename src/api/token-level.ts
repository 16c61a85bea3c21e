import type { Clock } from '../core/clock.ts';
import type { WriteName, WriteResult } from '../core/ports.ts';
import type { UseMemory } from './use-record.ts';

/** The level of one token, as far as the API's answers to writes have shown it. */
export interface TokenLevel {
  /** The first write of a process that it has let through. */
  readonly passed?: ShownBy;
  /** The last that it has refused for want of level or permission. */
  readonly refused?: ShownBy & { readonly code: string | null };
}

/** `at` is wall time in ms. */
export interface ShownBy {
  readonly at: number;
  readonly write: WriteName;
}

/**
 * No read shows a token's level. So vdcsync stores the evidence from writes, under the same name as
 * the token's budget: a hash, from which no token can be derived.
 *
 * @source API §5 rules 4, 5, 6
 */
export function createTokenLevels(memory: UseMemory, clock: Clock) {
  const shown = new Set<string>();

  return {
    /** @param token the name of the token of the write. A failure is ignored, because only a hint is lost. */
    learn(token: string, write: WriteName, result: WriteResult): void {
      // The API decided about a replayed answer when it first answered the key, possibly for another token.
      if (result.type !== 'answer' || result.replayed) return;
      const passed = result.status >= 200 && result.status < 300;
      const code = result.code ?? null;
      if (!passed && result.status !== 403) return;
      const name = noteName(token, passed ? 'passed' : 'refused');
      const once = passed ? name : `${name} ${write} ${code}`;
      if (shown.has(once)) return;
      shown.add(once);
      const at = clock.now();
      void memory.putNote(name, passed ? { at, write } : { at, write, code }).catch(() => {});
    },
    async known(this: void, token: string): Promise<TokenLevel> {
      const [seen, refused] = await Promise.all([
        memory.note(noteName(token, 'passed')),
        memory.note(noteName(token, 'refused')),
      ]);
      return {
        ...(seen === undefined ? {} : { passed: seen as unknown as ShownBy }),
        ...(refused === undefined
          ? {}
          : { refused: refused as unknown as NonNullable<TokenLevel['refused']> }),
      };
    },
  };
}

function noteName(token: string, what: 'passed' | 'refused'): string {
  return `token:${token}:${what}`;
}
