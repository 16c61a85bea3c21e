import type { Explained, QuestionTexts } from './explained.ts';

/** Writes whose task failed, or is past its deadline. */
export const task = {
  stuck: {
    meaning: 'a task is past its deadline',
    next: 'run `vdcsync apply` later: it continues to wait, and does not send the write again',
    why: 'the API did not report the end of the task in the time that vdcsync allows for it',
    example: 'The task of servers.web-1 has run for more than 30 minutes.',
    ways: ['vdcsync apply'],
  },
  tainted: {
    meaning: 'a write failed and left a resource',
    next: 'if you can use it, `vdcsync adopt KEY ID`; otherwise delete it in the client area',
    why: 'vdcsync cannot know whether the resource works',
    example: 'The task of servers.web-1 failed, and left server 2001, which is billed.',
    ways: [
      'vdcsync adopt servers.web-1 2001   # if you can use it',
      'delete server 2001 in the client area, and apply',
    ],
  },
} as const satisfies QuestionTexts;

/** Writes whose resource no documented read shows. */
export const unseen = {
  not_there: {
    meaning: 'the API accepted a write, and its reads do not show the effect',
    next: '`vdcsync resolve KEY --adopt ID` or `--absent`, and report it to the provider',
    why: 'only a list could show the effect, and a list may be incomplete',
    example: 'The task of networks.backend succeeded, and GET /networks does not list it.',
    ways: [
      'vdcsync resolve networks.backend --adopt 31   # the client area shows it',
      'vdcsync resolve networks.backend --absent   # the client area does not show it',
    ],
  },
  outcome_unknown: {
    meaning: 'neither the idempotency key nor the reads show whether a write had its effect',
    next: 'check the client area, then `vdcsync resolve KEY --adopt ID` or `--absent`',
    why: 'reads do not show the resource, or show a resource that may belong to another user',
    example: 'The creation of servers.web-1 got no answer, and the reads show two new servers.',
    ways: [
      'vdcsync resolve servers.web-1 --adopt 2001   # the client area shows that 2001 is servers.web-1',
      'vdcsync resolve servers.web-1 --absent   # the client area does not show it',
    ],
  },
} as const satisfies QuestionTexts;

/** Writes and resources that the documented reads cannot distinguish from others. */
export const candidates = {
  identity_changed: {
    meaning: 'the resource with the bound id has another name, address or network than before',
    next: 'if it is the same resource, `vdcsync adopt KEY ID`; otherwise `vdcsync resolve KEY --absent`',
    why: 'the id may belong to another resource now',
    example: 'Server 2001 had the address 203.0.113.10, and has 203.0.113.99 now.',
    ways: [
      'vdcsync adopt servers.web-1 2001   # the same server',
      'vdcsync resolve servers.web-1 --absent   # another server has its id now',
    ],
  },
  task_failed: {
    meaning: 'the API accepted a write, and its task failed',
    next: 'remove the cause, then `vdcsync apply`. If the message has a `vdcsync resolve` command, run it first',
    why: 'vdcsync cannot remove the reason of the failure. A new resource in the project may come from the task, or belong to another user',
    example: 'The task of isos.rescue failed: the URL answers 404.',
    ways: ['isos: {rescue: {url: "https://…"}}   # then: vdcsync apply'],
  },
} as const satisfies QuestionTexts;

/** Writes whose idempotency key is too old. */
export const expired = {
  key_too_old: {
    meaning: 'a write stayed unconfirmed for 23 hours, so its idempotency key cannot be used again',
    next: 'check the client area, then `vdcsync resolve KEY --adopt ID` or `--absent`',
    why: 'the API no longer stores the answer under the idempotency key, and lists may be incomplete',
    example: 'The creation of servers.web-1 was interrupted two days ago.',
    ways: [
      'vdcsync resolve servers.web-1 --adopt 2001   # the client area shows it',
      'vdcsync resolve servers.web-1 --absent   # the client area does not show it',
    ],
  },
} as const satisfies QuestionTexts;

/** Operations that continue without a decision. */
export const none = {
  dependency_blocked: {
    meaning: 'the operation depends on a blocked operation, or on a resource that does not exist',
    next: 'resolve the other operation, or create the resource. The message names it',
    example: 'servers.web-1 needs networks.backend, whose creation is blocked.',
    ways: ['vdcsync explain networks.backend'],
  },
  key_not_answered: {
    meaning: 'the answer to a creation was lost, and the API has not shown the outcome yet',
    next: '`vdcsync apply` asks the API again',
    example: 'The connection broke while servers.web-1 was created.',
    ways: ['vdcsync apply'],
  },
  moved_in_flight: {
    meaning: 'the entry was renamed, and one of the two keys has an open write',
    next: '`vdcsync apply` finishes that write first',
    example: 'servers.web-1 was renamed before its creation had ended.',
    ways: ['vdcsync apply'],
  },
  not_shown: {
    meaning: 'a deletion or purchase became possible during the run, and the first plan did not show it',
    next: '`vdcsync plan` to check it, then `vdcsync apply`. The daemon continues in the next reconciliation',
    example:
      'ips.web could be deleted only after another change of the run, so the plan of the run did not show it.',
    ways: ['vdcsync apply   # after you have checked the operation with vdcsync plan'],
  },
  outside_window: {
    meaning: 'no open window under `settings.windows` allows the change',
    next: 'if the message names a moment: none. The daemon, or `vdcsync apply`, carries the change out while the window is open. Otherwise allow the change in a window',
    example: 'The spec allows replacements on Saturdays at 02:00, and it is Monday.',
    ways: ['vdcsync apply   # while the window is open'],
  },
  rate_limit_exceeded: {
    meaning:
      'the API limited the requests until a write was past its deadline. The write was not carried out',
    next: '`vdcsync apply` sends the write again. If this lasts, find the other clients that use the token',
    example: 'Another client used up the request budget of the token for 30 minutes.',
    ways: ['vdcsync apply'],
  },
  read_failed: {
    meaning: 'a read failed, so the current value is unknown',
    next: 'run the command again',
    example: 'GET /servers/2001/firewall answered 503 five times.',
    ways: ['vdcsync plan'],
  },
  superseded: {
    meaning: 'the resource is gone, and during this run the API gave its id to another resource',
    next: '`vdcsync apply` creates the resource again',
    example: 'Server 2001 was deleted, and a new server of the same run got its id.',
    ways: ['vdcsync apply'],
  },
  unreachable: {
    meaning: 'vdcsync did not reach the API before the deadline of a write, and sent nothing',
    next: 'restore the connection, then `vdcsync apply`',
    example: 'vdcsync could not connect to the API for 30 minutes.',
    ways: ['vdcsync apply'],
  },
  unresolved_create: {
    meaning: 'another creation is unconfirmed, and this creation could be confused with it',
    next: '`vdcsync apply` finishes the other creation first. If that one is blocked, resolve it',
    example:
      'The creation of servers.a is unconfirmed. A server that appears next could be servers.a or servers.b.',
    ways: ['vdcsync explain servers.a'],
  },
} as const satisfies Readonly<Record<string, Explained>>;
