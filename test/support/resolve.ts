import type { Blocked, Warning } from '../../src/core/plan.ts';
import { type CommandResult, type Remedy, resolveText } from '../../src/core/remedy.ts';

/** The remedies in one text, as `resolve` of the JSON forms has them. */
export function resolveOf(blocked: Pick<Blocked, 'remedies'> | undefined): string {
  return blocked === undefined ? '' : resolveText(blocked.remedies);
}

/** What a command of the operator says, with the remedies that it names. */
export function saidBy(said: CommandResult | string): string {
  return typeof said === 'string' ? said : [said.text, resolveText(said.remedies)].join(' ');
}

/** The same of a warning. */
export function warnedBy({ message, remedies = [] }: Pick<Warning, 'message' | 'remedies'>): string {
  return [message, resolveText(remedies)].join(' ');
}

/** Stands for remedies whose text is this one, or matches. */
export function resolving(expected: string | { asymmetricMatch(text: string): boolean }): readonly Remedy[] {
  const matcher = {
    $$typeof: Symbol.for('jest.asymmetricMatcher'),
    asymmetricMatch: (actual: readonly Remedy[]) => {
      const text = resolveText(actual);
      return typeof expected === 'string' ? text === expected : expected.asymmetricMatch(text);
    },
    toString: () => 'Resolving',
    toAsymmetricMatcher: () => `Resolving<${String(expected)}>`,
  };
  return matcher as unknown as readonly Remedy[];
}
