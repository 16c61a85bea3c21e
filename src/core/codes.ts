import { apiCodes } from './codes/api.ts';
import { conditionCodes } from './codes/conditions.ts';
import { decisions } from './codes/decisions.ts';
import { type BlockingCode, type Explained, type QuestionClass, questionClasses } from './codes/explained.ts';
import { outcomes } from './codes/outcomes.ts';
import { refusals } from './codes/refusals.ts';
import { warnings } from './codes/warnings.ts';

/** The codes under which a plan or a run reports an operation as blocked. */
export const questions = { ...decisions, ...refusals, ...outcomes } as const;

/** Every code of vdcsync in plans, reports and warnings. Other codes are the API's own. */
export const codes = { ...questions, ...warnings } as const;

export type BlockCode = keyof typeof questions;

export type Code = keyof typeof codes;

const explained = new Map<string, Explained & Partial<BlockingCode>>(
  Object.entries({ ...apiCodes, ...conditionCodes, ...codes }),
);

/** The explanation of a code of vdcsync or of the API, or of a condition; `undefined`: a code of the API that is not documented. */
export function explanationOf(code: string): (Explained & Partial<BlockingCode>) | undefined {
  return explained.get(code);
}

/** The class of the question that the code asks; `undefined`: a code of the API, of the class *refusal*. */
export function questionClass(code: string): QuestionClass | undefined {
  return explained.get(code)?.asks;
}

/** Whether the answer of the operator settles the outcome of a write, or says to whom a resource belongs. */
export function settlesAnOutcome(code: string): boolean {
  return questionClasses[questionClass(code) ?? 'refusal'].settles;
}
