import type { Explained } from './explained.ts';

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
