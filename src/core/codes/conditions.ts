import { newToken } from '../remedy.ts';
import type { Explained } from './explained.ts';

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
