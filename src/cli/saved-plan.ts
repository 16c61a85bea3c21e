import { ConfigError } from '../core/errors.ts';
import { member } from '../core/json.ts';
import type { Plan } from '../core/plan.ts';
import { type Remedy, run } from '../core/remedy.ts';
import { planSchema } from '../view/plan-schema.ts';
import { readText } from './settings/config.ts';
import type { Io } from './terminal.ts';

/**
 * Reads a saved plan strictly. A plan is a permission, so no value may be guessed.
 *
 * @throws ConfigError with the error of the file.
 */
export function readPlan(path: string, projectId: number, io: Io): Plan {
  const document = parsed(readText(path, 'the plan', io), path);
  const version = member(document, 'format_version');
  if (version === undefined) {
    throw new ConfigError(`${path} is not a plan of vdcsync`, false, making(path));
  }
  if (version !== 1) {
    throw new ConfigError(
      `${path} has the plan format ${JSON.stringify(version)}; this version reads format 1`,
    );
  }
  const result = planSchema.safeParse(document);
  if (!result.success) {
    const [issue] = result.error.issues;
    const at = issue?.path.join('.') || 'the plan';
    throw new ConfigError(
      `${path} was changed after it was written: ${at}: ${issue?.message ?? 'cannot be read'}`,
    );
  }
  const plan = result.data as unknown as Plan;
  if (plan.project.id !== projectId) {
    throw new ConfigError(
      `${path} is a plan for project ${plan.project.id}, and the spec is for project ${projectId}`,
    );
  }
  return plan;
}

function making(path: string): readonly Remedy[] {
  // A file with another content may be a spec, which the command would overwrite.
  const out = /\.json$/i.test(path) ? path : 'plan.json';
  return [run('plan', ['--out', out], { when: 'to make a plan' })];
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(`${path} is not JSON`, false, making(path));
  }
}
