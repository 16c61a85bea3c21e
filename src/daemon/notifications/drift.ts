import { canonicalJson } from '../../core/json.ts';
import type { Change, Operation, Plan } from '../../core/plan.ts';
import { flowYaml } from '../../core/text.ts';
import { consequences } from '../../view/plan.ts';

/** Limits for one message, which is read on a telephone. The full list is in status, page and plan. */
const most = { operations: 20, changes: 4, characters: 60 } as const;

/** The result of drift: the last line of its notification. */
export const driftEndings = {
  corrected: 'vdcsync corrects the drift now',
  waits: 'the correction waits for your approval',
  refused: 'the check command refuses the correction',
} as const;

/** `observed`: nothing is corrected, and the condition of the project reports it. */
export type DriftEnding = keyof typeof driftEndings | 'observed';

/**
 * The changes that were made outside vdcsync, one line each: `update servers.web-1.firewall: policy_in: accept →
 * drop`.
 */
export function driftLines(moved: readonly Operation[]): readonly string[] {
  return firstLines(moved, (each) => [lineOf(each)]);
}

/** The plan that the operator approves: each operation with its fields and its impact, and the cost. */
export function approvalLines(plan: Plan): readonly string[] {
  const { known_monthly_delta: delta, monthly, unpriced } = plan.cost;
  const sign = Number(delta) > 0 ? '+' : '';
  const currency = monthly.currency === null ? '' : ` ${monthly.currency}`;
  return [
    ...firstLines(plan.operations, (each) => [
      fieldsLine(each),
      ...consequences(each, plan).map((text) => `  → ${text}`),
    ]),
    ...(Number(delta) === 0 ? [] : [`cost: ${sign}${delta}${currency} a month`]),
    ...(unpriced.length === 0 ? [] : [`no known price: ${unpriced.join(', ')}`]),
  ];
}

function firstLines(
  operations: readonly Operation[],
  linesOf: (operation: Operation) => readonly string[],
): readonly string[] {
  const shown = operations.slice(0, most.operations);
  const more = operations.length - shown.length;
  return [...shown.flatMap(linesOf), ...(more === 0 ? [] : [`and ${more} more`])];
}

function fieldsLine(operation: Operation): string {
  const { verb, key, changes } = operation;
  // A deletion has every field of its resource, and a new resource has no values before.
  const texts = verb === 'delete' ? [] : changeTexts(changes);
  const fields = verb === 'create' ? texts.map((each) => each.replace('none → ', '')) : texts;
  return fields.length === 0 ? lineOf(operation) : `${verb} ${key}: ${fields.join(', ')}`;
}

function lineOf({ verb, key, changes, reason }: Operation): string {
  const why = verb === 'update' ? changeTexts(changes).join(', ') : (reason ?? '');
  return why === '' ? `${verb} ${key}` : `${verb} ${key}: ${why}`;
}

function changeTexts(changes: readonly Change[]): readonly string[] {
  const { shown, more } = firstChanges(changes);
  return [...shown.map(({ path, values }) => `${path}: ${values}`), ...(more === 0 ? [] : [`${more} more`])];
}

/** The first changes with both values, and the number of the others. */
export function firstChanges(changes: readonly Change[]) {
  const all = changes.flatMap(finest);
  const shown = all
    .slice(0, most.changes)
    .map(({ path, from, to }) => ({ path, values: `${short(from)} → ${short(to)}` }));
  return { shown, more: all.length - shown.length };
}

/** The parts of a map, or of a list of the same length, that change: `rules[1].action: accept → drop`. */
function finest(change: Change): readonly Change[] {
  const { path, from, to } = change;
  if (!isRecord(from) || !isRecord(to)) return [change];
  const isList = Array.isArray(from);
  if (isList !== Array.isArray(to) || from.length !== to.length) return [change];
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return names
    .map((name) => ({
      path: isList ? `${path}[${name}]` : `${path}.${name}`,
      from: from[name] ?? null,
      to: to[name] ?? null,
    }))
    .filter((each) => canonicalJson(each.from) !== canonicalJson(each.to))
    .flatMap(finest);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function short(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  const text = flowYaml(value);
  if (text.length <= most.characters) return text;
  return Array.isArray(value)
    ? `${value.length} ${value.length === 1 ? 'entry' : 'entries'}`
    : `${text.slice(0, most.characters).toWellFormed()}…`;
}
