import type * as z from 'zod';
import { EmulatorInputError } from './readings.ts';

type Issue = z.core.$ZodIssue;

/** The error of a wrong input: it names the place and gives the first complaint. */
export function refusal(error: z.ZodError, what: string, base: readonly PropertyKey[] = []) {
  const [issue] = error.issues;
  const path = issue?.path ?? [];
  const at = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  const words = issue === undefined ? 'cannot be used' : wording(issue);
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  return new EmulatorInputError(`${what}${at}: ${words}`, [...base, ...path, ...unknown]);
}

function wording(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return /received undefined/.test(issue.message) ? 'is missing' : `must be ${noun(issue.expected)}`;
    case 'unrecognized_keys':
      return `unknown ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`;
    case 'invalid_value':
      return `must be ${listed(issue.values)}`;
    case 'invalid_union':
      return 'options' in issue && Array.isArray(issue.options)
        ? `must be ${listed(issue.options)}`
        : 'has none of its forms';
    case 'too_small':
      return `must be at least ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

function noun(expected: string): string {
  const nouns: Readonly<Record<string, string>> = {
    string: 'text',
    int: 'a whole number',
    number: 'a number',
    boolean: 'true or false',
    array: 'a list',
    object: 'a map',
    record: 'a map',
  };
  return nouns[expected] ?? expected;
}

function listed(values: readonly unknown[]): string {
  const texts = values.map(String);
  return texts.length === 1 ? String(texts[0]) : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}
