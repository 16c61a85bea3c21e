import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError, reasonOf } from '../../core/errors.ts';
import { type Plan, planJson } from '../../core/plan.ts';
import type { CommonFlags, PlanFormat } from '../flags.ts';
import { planMarkdown } from '../render/plan-markdown.ts';
import { planSvg } from '../render/plan-svg.ts';
import { planText } from '../render/plan-text.ts';
import { type Io, type Paint, paintFor, type Style } from '../terminal.ts';

interface OutputFlags extends CommonFlags {
  readonly format?: PlanFormat;
  readonly out?: string;
}

/** The plan in one of its forms. */
export function formatPlan(plan: Plan, format: PlanFormat, paint: Paint): string {
  switch (format) {
    case 'text':
      return planText(plan, paint);
    case 'json':
      return `${JSON.stringify(planJson(plan), null, 2)}\n`;
    case 'markdown':
      return planMarkdown(plan, paint.flags);
    case 'svg':
      return planSvg(plan);
  }
}

/**
 * Prints the plan; with a file, writes it there in the asked form. A file without a form
 * is for `apply --plan`, so it gets JSON, and the operator gets the text.
 */
export function putPlan(plan: Plan, flags: OutputFlags, io: Io): void {
  const { format, out } = flags;
  if (out === undefined) {
    io.stdout.write(formatPlan(plan, format ?? 'text', paintFor(io.stdout, io)));
    return;
  }
  const plain: Paint = Object.assign((_style: Style, text: string) => text, { flags: io.flags ?? '' });
  writeOut(out, formatPlan(plan, format ?? 'json', plain), io, 0o600);
  if (format === undefined) io.stdout.write(formatPlan(plan, 'text', paintFor(io.stdout, io)));
  io.stderr.write(`vdcsync: the plan is in ${out}\n`);
}

/** Writes a result file, with this mode where one is given. @throws ConfigError that says why it could not be written. */
export function writeOut(path: string, text: string, io: Io, mode?: number): void {
  try {
    const target = resolve(io.cwd, path);
    writeFileSync(target, text, mode === undefined ? {} : { mode });
    // The mode above is that of a new file alone.
    if (mode !== undefined && statSync(target).isFile()) chmodSync(target, mode);
  } catch (error) {
    const folder = dirname(resolve(io.cwd, path));
    const reason = existsSync(folder) ? reasonOf(error) : `there is no folder ${folder}`;
    throw new ConfigError(`${path} cannot be written: ${reason}`);
  }
}
