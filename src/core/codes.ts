import { policy, unmanaged } from './codes/decisions.ts';
import {
  type Explained,
  type ExplainedCode,
  type QuestionClass,
  questionClasses,
} from './codes/explained.ts';
import { candidates, expired, none, task, unseen } from './codes/outcomes.ts';
import { refusal } from './codes/refusals.ts';
import { warnings } from './codes/warnings.ts';
import { given, namesIn } from './json.ts';
import { newToken } from './remedy.ts';

const byClass = { policy, unmanaged, refusal, task, unseen, candidates, expired, none } as const;

/** The codes under which a plan or a run reports an operation as blocked. */
export const questions = {
  ...{ ...policy, ...unmanaged, ...refusal, ...task },
  ...{ ...unseen, ...candidates, ...expired, ...none },
} as const;

/** The code of an operation that vdcsync itself blocks. After a refusal, the code of the API takes its place. */
export type BlockCode = keyof typeof questions;

/** Every code of vdcsync in plans, reports and warnings. Other codes are the API's own. */
export const codes = { ...questions, ...warnings } as const;

/** A code that vdcsync itself gives to a blocked operation or a warning. */
export type Code = keyof typeof codes;

/** Codes of the API that are no codes of vdcsync. The API may have others. @source API §7 */
export const apiCodes = {
  disk_type_not_supported: {
    meaning: 'the API accepts no `disk_type` for a server type that is sold in packages',
    next: 'remove `disk_type` from the entry, then `vdcsync apply`',
    example: 'servers.gpu-1 declares `disk_type` next to `gpu_package`.',
  },
  gpus_not_supported: {
    meaning: 'the API accepts no `gpus` for a server type that is sold in packages',
    next: 'remove `gpus` from the entry, then `vdcsync apply`',
    example: 'servers.gpu-1 declares `gpus` next to `gpu_package`.',
  },
  insufficient_privileges: {
    meaning: 'the token belongs to a team member who may not do this',
    next: 'grant the permission in the client area, or use a token of the owner. Then `vdcsync apply`',
    example: 'The token of a member without the permission to order servers creates servers.web-1.',
    ways: ['vdcsync doctor   # shows the rights of the token'],
  },
  insufficient_scope: {
    meaning: 'the token may only read',
    next: 'issue a token with the level *read and write*. Then `vdcsync apply`',
    example: 'vdcsync apply uses a token with the level *read*.',
    ways: ['vdcsync doctor   # shows the level of the token'],
  },
  invalid_request: {
    meaning: 'the API refused a field of the request. The message names the field, and its line in the spec',
    next: 'correct the line, then `vdcsync apply`',
    example: 'servers.web-1 names an ssh key that is not in the account.',
  },
  payment_required: {
    meaning: 'an invoice is unpaid, so the API accepts nothing that adds spending',
    next: 'pay the invoice, then `vdcsync apply`. The daemon continues by itself',
    example: 'The creation of servers.web-2 is refused, and deletions continue.',
  },
  resources_managed_by_package: {
    meaning: 'the API accepts no sizes for a server type that is sold in packages',
    next: 'remove `cores`, `memory_mb`, `disk_gb` and `plan_id` from the entry, then `vdcsync apply`',
    example: 'servers.gpu-1 declares `cores` next to `gpu_package`.',
  },
  server_busy: {
    meaning: 'the API is adding or deleting another image of the project',
    next: 'nothing: vdcsync sends the write again after the time that the API names',
    example: 'isos.rescue is added while another client deletes an ISO.',
  },
  server_not_found: {
    meaning: 'the server with this id does not exist',
    next: 'correct an `id:` in the spec; otherwise `vdcsync plan` shows the server as missing',
    example: 'Server 2001 was deleted in the client area while vdcsync wrote its firewall.',
  },
} as const satisfies Readonly<Record<string, Explained>>;

/** Conditions of a project that are no code of an operation, and that only the operator ends. */
export const conditionCodes = {
  awaiting_approval: {
    meaning: 'the plan waits for the operator, because the spec sets `settings.approval`',
    next: 'check the plan, then `vdcsync approve DIGEST`',
    example: 'The spec deletes servers.old, and the daemon waits for the approval of the deletion.',
  },
  failing: {
    meaning: 'the reconciliations of the project end with an error',
    next: 'read the error in `vdcsync status`, and remove its cause',
    example: 'GET /networks answers with a body that is not as documented.',
    ways: ['vdcsync doctor   # checks connection, token, project and state'],
  },
  fenced: {
    meaning: 'the token belongs to another project than the spec, so vdcsync writes nothing',
    next: 'use a token of the project in `project.id`, or correct `project.id`',
    example: 'The spec is for project 4711, and the token belongs to project 4712.',
    ways: ['vdcsync doctor   # shows the project of the token'],
  },
  unauthorized: {
    meaning: 'the API does not accept the token: it is unknown, expired or revoked',
    next: newToken,
    example: 'GET /project answered 401.',
    ways: ['vdcsync doctor   # checks the new token'],
  },
} as const satisfies Readonly<Record<string, Explained>>;

const explained: Readonly<Record<string, Explained>> = {
  ...{ ...apiCodes, ...conditionCodes },
  ...{ ...warnings, ...questions },
};

/** The explanation of a code of vdcsync or of the API, or of a condition; `undefined`: a code of the API that is not documented. */
export function explanationOf(code: string): ExplainedCode | undefined {
  const about = Object.hasOwn(explained, code) ? explained[code] : undefined;
  return about && { ...about, ...given({ asks: questionClass(code) }) };
}

/** The class of the question that the code asks; `undefined`: a code of the API, of the class *refusal*. */
export function questionClass(code: string): QuestionClass | undefined {
  return namesIn(byClass).find((asks) => Object.hasOwn(byClass[asks], code));
}

/** Whether the answer of the operator settles the outcome of a write, or says to whom a resource belongs. */
export function settlesAnOutcome(code: string): boolean {
  return questionClasses[questionClass(code) ?? 'refusal'].settles;
}
