import { flowYaml } from '../../core/flow-yaml.ts';
import type { Change, Operation } from '../../core/plan.ts';

/** Limits for one message, which is read on a telephone. The full list is in status, page and plan. */
const most = { operations: 20, changes: 4, characters: 60 } as const;

/**
 * The changes that were made outside vdcsync, one line each: `update servers.web-1.firewall: policy_in: accept →
 * drop`.
 */
export function driftLines(moved: readonly Operation[]): readonly string[] {
  const lines = moved.slice(0, most.operations).map(lineOf);
  const more = moved.length - lines.length;
  return more === 0 ? lines : [...lines, `and ${more} more`];
}

function lineOf({ verb, key, changes, reason }: Operation): string {
  const why = verb === 'update' ? changesText(changes) : (reason ?? '');
  return why === '' ? `${verb} ${key}` : `${verb} ${key}: ${why}`;
}

function changesText(changes: readonly Change[]): string {
  const shown = changes
    .slice(0, most.changes)
    .map(({ path, from, to }) => `${path}: ${short(from)} → ${short(to)}`);
  const more = changes.length - shown.length;
  return [...shown, ...(more === 0 ? [] : [`${more} more`])].join(', ');
}

function short(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  const text = flowYaml(value);
  if (text.length <= most.characters) return text;
  return Array.isArray(value)
    ? `${value.length} entries`
    : `${text.slice(0, most.characters).toWellFormed()}…`;
}
