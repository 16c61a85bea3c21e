/** Every code of vdcsync in plans, reports and warnings, with its meaning and the next step. Other codes are the API's own. */
export const codes = {
  address_free: [
    'an address of the project is billed and attached to no server, while the plan buys another one',
    'adopt it for the entry (`vdcsync adopt KEY ID`), write `public_ipv4: {reuse: true}` or `public_ipv4: {ip: NAME}` in the server, or mark it as not managed (`vdcsync ignore ADDRESS`)',
  ],
  unused_address: [
    'the plan buys an address that no server of the file uses',
    'nothing, if you want to keep it in reserve; otherwise name it in a server, or remove its entry',
  ],
  address_in_use: [
    'the address of the entry is attached to another server',
    'name another address, or delete that server',
  ],
  addresses_may_exchange: [
    'the API attaches any free address to a new server, and this file has several: two keys under `ips` may exchange their addresses',
    'nothing, if either address is right. To fix the address of a key, write its `id:`, or enable `named_address` in the API profile',
  ],
  address_left_idle: [
    'the server of an address is deleted, or is gone, and no other server of the file uses the address',
    'remove the entry of the address too, unless you want to keep the address in reserve',
  ],
  address_not_as_declared: [
    'a server has another address than its entry declares, or an address that its entry does not declare',
    'change the entry, or change the server in the client area',
  ],
  address_not_the_only_free_one: [
    'the API attaches any free address, and several are free',
    'attach or delete the others, or enable `named_address` in the API profile',
  ],
  address_pool_unchecked: [
    'a new server names an address that was not allocated for its server type',
    'nothing, if the API accepts the address. If the API refuses it (`ip_not_usable`) or attaches another one, name an address whose entry has the `server_type_id` of the server',
  ],
  address_unchecked: [
    'this address was adopted, and the API does not show for which server type it was allocated',
    'if `server_type_id` is right, confirm it: `vdcsync adopt KEY ID`; otherwise remove the field',
  ],
  backup_creating: [
    'a backup is in progress, so vdcsync takes no second one',
    'nothing: vdcsync checks again',
  ],
  backup_policy_differs: [
    'the backup schedule differs from the file, and the API does not document how to change it',
    'change it in the client area, or enable `update_backup_policy` in the API profile',
  ],
  backups_kept: [
    'there are more backups than `keep`, and they are billed',
    'delete them in the client area, or enable `delete_backup` in the API profile. Backups of a protected server stay',
  ],
  backup_not_listed: [
    'the list of backups lacks a backup that vdcsync took. The list may be incomplete',
    'if the backup no longer exists, `vdcsync forget KEY`; otherwise nothing',
  ],
  backup_unclear: [
    'a backup has an unknown status or time, so vdcsync takes no further backup',
    'check it in the client area',
  ],
  billed_twice: [
    'a server is replaced, and the old server is deleted after the new one is complete. In the meantime, both are billed',
    'nothing. To have the old server deleted first, write `replace: {order: delete_first}`',
  ],
  cap_unchecked: [
    '`settings.max_monthly_increase` counts known prices only, and the plan buys a resource without a known price',
    'add the price with `--prices FILE`. Without the price, check the cost of that resource yourself: the limit does not count it',
  ],
  catalogue_changed: [
    'the type, plan or image of a server is no longer sold',
    'nothing now, but vdcsync could not create this server again',
  ],
  check_refused: [
    'the command of `--check-command` refuses the plan',
    'change the spec, or the policy. After a change of the policy, send SIGHUP: the daemon checks a plan only once',
  ],
  contract_breach: [
    'an answer of the API differs from its documentation',
    'report it to the provider, with the request id',
  ],
  default_network: ['vdcsync never changes the default network', 'write `managed: false` in its entry'],
  dependency_blocked: [
    'the operation depends on another operation that is blocked, or on a resource that does not exist',
    'resolve the other operation first, or create the missing resource. The message names it',
  ],
  drift: [
    'the resource was changed outside vdcsync, and `settings.drift` is `report`',
    'to keep the change, write it into the file; to undo it, set `drift: correct`',
  ],
  disk_would_shrink: [
    'a resize would make a disk smaller, or could do so, and destroy data',
    'write the actual size; for an adopted server, confirm the file with `vdcsync adopt KEY ID`; if you want the smaller disk, write `replace: allowed`',
  ],
  drive_differs: [
    'the drive differs from the file, and the API does not document how to change it',
    'change it in the client area, or enable `insert_iso` and `eject_iso` in the API profile',
  ],
  entry_incomplete: [
    'the change needs a replacement, and the entry with `id:` lacks fields that a creation needs',
    'restore the old value; or remove `id:`, and add these fields',
  ],
  firewall_doubtful: [
    'a value in the firewall is probably a typing error, or an earlier rule matches all traffic of a rule',
    'correct the value, or move or remove the rule; or keep it: vdcsync sends the firewall unchanged',
  ],
  firewall_field_dropped: [
    'every live rule has an undocumented field. vdcsync assumes that the API adds this field, so vdcsync does not send it',
    'if you added the field yourself, write it in the rules of the file; otherwise nothing',
  ],
  firewall_lockout: [
    'ssh is open now, and the change closes it',
    'make sure that you have another way to log in',
  ],
  firewall_no_public_iface: [
    'a firewall needs a public network interface',
    'give the server a `public_ipv4`, or write `enabled: false`',
  ],
  firewall_would_lose: [
    'the live firewall has values that vdcsync cannot send back, so a change would delete them',
    'write these values in the rules of the file, or remove the live rules that have them. If the value is `policy_out`, which vdcsync cannot send, set it to accept in the client area',
  ],
  gpu_package_not_found: ['the server type does not sell that package', 'write a package that it sells'],
  gpu_package_not_sold: [
    'the server type does not sell a package of the list',
    'nothing: vdcsync takes the next package of the list',
  ],
  gpu_package_required: ['the server type is sold in packages', 'write `gpu_package` instead of sizes'],
  id_conflict: [
    'the file and the state have different ids for the key',
    '`vdcsync adopt KEY ID`, or correct `id:`',
  ],
  identity_changed: [
    'the resource with the bound id has another name, address or network than before',
    'if it is still the same resource: `vdcsync adopt KEY ID`; if the bound resource is gone: `vdcsync resolve KEY --absent`',
  ],
  image_ambiguous: ['several images have that name', 'write the id'],
  image_not_found: ['the server type does not have the image', 'write an image that it has'],
  image_not_supported: [
    "a server cannot be created from a project's own ISO",
    'write an image of the server type',
  ],
  image_taken_before: [
    'the state is new, and this image may have been created with an earlier state. The API has no list of images',
    'adopt the image with its id from the client area; to create a new image, set `unmanaged: ignore` under `settings`',
  ],
  immutable: [
    'the field cannot be changed, not even by a replacement',
    'restore the old value, or add a new entry',
  ],
  in_flight: [
    'an earlier run left an open write, or an adopted server is still being created',
    '`vdcsync apply` finishes the write',
  ],
  iso_in_use: [
    'the ISO is in a drive',
    'write `iso: null` in the entry of that server, and apply. Without `eject_iso` in the API profile, eject the ISO in the client area',
  ],
  ip_in_use: [
    'the address is attached to a server that stays',
    'detach the address in the client area, or delete that server, or `vdcsync forget` the address',
  ],
  exposed: [
    'a new server is exposed: it has a public address, and its firewall is not set yet',
    'resolve the firewall operation, or restrict the traffic of the server in the client area',
  ],
  profile_changed: [
    'a write is unconfirmed, and the API profile or an environment variable has changed, so a repeated request would differ from the first one',
    'restore the profile or the variable, or `vdcsync resolve KEY --adopt ID` or `--absent`',
  ],
  key_conflict: [
    'another file of the project, or an earlier state, used the idempotency key of this creation, and may have created a resource with it',
    'if it was another file, set `project.scope: NAME` in one of the two. If the resource belongs to this file, adopt it; if there is no resource, `vdcsync resolve KEY --absent`. The message shows the commands',
  ],
  key_not_answered: [
    'the answer to a creation was lost or cannot be read, and the API has not shown the outcome yet',
    'nothing: the next `vdcsync apply` asks the API again, with the same idempotency key',
  ],
  key_too_old: [
    'a write stayed unconfirmed for 23 hours, so its idempotency key cannot be used again',
    'check the client area, then `vdcsync resolve KEY --adopt ID` or `--absent`',
  ],
  left_out: ['`--target` or `--exclude` leaves out operations', 'nothing: the next plan shows them'],
  max_deletions: [
    'the run would delete more than `settings.max_deletions`',
    'if you want these deletions, raise the limit, or use `vdcsync destroy --max-deletions`',
  ],
  max_monthly_increase: [
    'the known prices add more than `settings.max_monthly_increase`',
    'if you want to spend this, raise the limit',
  ],
  moved: ['the entry was renamed', 'nothing: the binding moves to the new key'],
  moved_from_unknown: [
    '`moved` names a key that the state does not bind',
    'correct the key, or remove the line. Until then, vdcsync deletes no resource of the same kind that has left the file',
  ],
  flags_change: [
    'the file changes `protect` or `keep_ip` of the entry',
    'nothing: the next apply records this in the state, and sends nothing for it',
  ],
  perhaps_renamed: [
    'the entry is new, and equals an entry that has left the file, except for its key',
    'if you renamed it, write `moved: {from: KEY}` in the entry: then nothing is deleted or created',
  ],
  moved_in_flight: [
    'the entry was renamed, and one of the two keys has an open write',
    '`vdcsync apply` finishes that write first',
  ],
  moved_onto_bound: [
    'the entry was renamed, and both keys are bound to a resource',
    '`vdcsync forget KEY` for the previous key, or remove `moved`',
  ],
  name_ambiguous: ['several networks have that name', 'write `id:`'],
  name_exists: [
    'an unmanaged resource has that name',
    'if it belongs to this file, `vdcsync adopt KEY ID`; otherwise give the entry another `name:`',
  ],
  network_not_listed: [
    'the list of networks lacks networks that certainly exist, so it is incomplete',
    'nothing: vdcsync continues when a list is complete',
  ],
  network_in_use: [
    'the network would be deleted or replaced, and servers are on it',
    'remove the servers from the network, or delete them first',
  ],
  no_gpu_capacity: [
    'for a day, no host had the graphics cards free',
    'add further packages to `gpu_package`, or wait',
  ],
  not_shown: [
    'a deletion became possible during the run, but the first plan did not show it. `--yes` and the daemon leave it for the next run',
    '`vdcsync plan` to check it, then `vdcsync apply`. The daemon does it in its next reconciliation',
  ],
  no_longer_declared: [
    'a part of a server (such as its firewall), or a server image, has left the file, and still exists unchanged',
    'restore the entry, or `vdcsync forget KEY`',
  ],
  no_firewall: [
    'a new server has a public address, and no `firewall` in its entry',
    'write a firewall; if the server should be exposed, `firewall: {enabled: false}`',
  ],
  not_found: [
    'the project does not have the resource that the file or a write names',
    'remove the entry, or correct it. To create a new resource, remove `id:` and add the fields that a creation needs',
  ],
  not_there: [
    'the API accepted a write, and its reads do not show the effect',
    '`vdcsync resolve KEY --adopt ID` or `--absent`, and report it to the provider',
  ],
  outcome_unknown: [
    'the answer to a write is missing, and neither its idempotency key nor the reads show whether it had its effect',
    'check the client area, then `vdcsync resolve KEY --adopt ID` or `--absent`',
  ],
  overtaken: ['the project changed between plan and write', 'nothing: vdcsync plans again'],
  price_unused: [
    "a type of the price list is not in the project's catalogue",
    'correct its name or id, or remove it',
  ],
  project_not_active: [
    'the project is not Active, for example because of an unpaid invoice',
    'pay, or ask the provider. Until the project is Active, the API refuses new spending, and vdcsync starts no replacement',
  ],
  protected: [
    'the entry has, or last had, `protect: true`',
    'to delete it: write `protect: false` and run `vdcsync apply --target KEY`. Then remove the entry, set `prune: true` and run `vdcsync apply`. To replace it: write `protect: false` and `replace: allowed`',
  ],
  bound_already: ['another entry is bound to the same resource', 'correct the `id:` of one of the two'],
  plan_not_found: ['the server type does not have the plan', 'write a plan that it has'],
  prune_disabled: [
    'the entry has left the file, and `settings.prune` is false',
    'to delete the resource, set `prune: true`; to keep it, `vdcsync forget KEY`; or restore the entry',
  ],
  rate_limit_exceeded: [
    'the API limited the requests for so long that the deadline of a write passed. The write was not carried out',
    'nothing: the next `vdcsync apply` sends the write again. If this lasts, find the other clients that use the token',
  ],
  read_failed: ['a read failed, so the current value is unknown', 'run the command again'],
  released: ['vdcsync stops managing the resource, and sends nothing for this', 'nothing'],
  recovered_unconfirmed: [
    'a new state found the resource under an idempotency key. Another file of the project may manage it, so vdcsync neither deletes nor replaces it',
    'if only this file manages the resource: `vdcsync adopt KEY ID`. Otherwise: `vdcsync forget KEY`',
  ],
  replace_not_allowed: [
    'the change needs a replacement: the resource is deleted and created again',
    'write `replace: allowed`, and remove `id:` if the entry has it; or restore the old value',
  ],
  replacement_unchecked: [
    'no read shows whether the API accepts the new values, and the replacement deletes the old server first',
    'first create a second server with these values under a new key, or check the values in the client area',
  ],
  server_differs: [
    'the API shows another name or size, and the API does not document how to change it',
    'change the entry, or enable `resize_server` in the API profile',
  ],
  server_error: [
    'the API answered several attempts of a write with a server error, and reads show no effect',
    '`vdcsync apply` later. `vdcsync history` shows the request ids',
  ],
  server_image_not_taken: [
    'the API does not document how to take an image from a server',
    'take it in the client area and write its `id:`, or enable `take_server_image` in the API profile',
  ],
  server_unchecked: [
    'the API does not show the type, image or size of an adopted server',
    'if the values in the file are right, confirm them: `vdcsync adopt KEY ID`. If they are wrong, correct them in the file: as long as you have not confirmed them, this edit does not replace the server. If the API can show sizes, enable `read_server` in the API profile',
  ],
  server_type_not_found: ['the catalogue does not have the server type', 'write a type that it has'],
  server_type_not_supported: [
    'the API takes no image from a packaged graphics-card server',
    'name another server',
  ],
  size_unconfirmed: [
    'a resize sends all sizes of the entry, and vdcsync does not know the live value of one of them',
    'if the file is right, `vdcsync adopt KEY ID`; otherwise correct the size or, if the entry has `id:`, remove it',
  ],
  sizing_mode_mismatch: [
    'the server type uses other size fields',
    'write the fields of the type: cores, memory and disk, or `plan_id`, or `gpu_package`',
  ],
  stuck: [
    'a task is past its deadline',
    'run `vdcsync apply` later: it continues to wait, and does not send the write again',
  ],
  surplus_network_interface: [
    'a server has a network interface that the file does not declare',
    'add its network to the entry, or remove the network interface in the client area. vdcsync removes only network interfaces that it added, and only with `remove_network_interface` in the API profile',
  ],
  suspended: [
    '`settings.suspend` stops all changes',
    'remove `suspend` from the file, or wait for the time in `until` if there is one',
  ],
  suspension_over: ['the time in `settings.suspend.until` has passed', 'remove `suspend` from the file'],
  superseded: [
    'the resource is gone, and during this run the API gave its id to another resource',
    '`vdcsync apply` creates the resource again',
  ],
  tainted: [
    'a write failed and left a resource',
    'if you can use it, `vdcsync adopt KEY ID`; otherwise delete it in the client area',
  ],
  task_failed: [
    'the API accepted a write, and its task failed',
    'remove the cause, then run `vdcsync apply`. If the task may have left a resource, first run the `vdcsync resolve` command of the message',
  ],
  unlisted_servers: [
    'a network has more servers than vdcsync knows. They may be from an earlier state, or from a creation for which you ran `vdcsync resolve --absent`',
    'adopt the servers of this file with their ids from the client area, and `vdcsync ignore` the others; or set `unmanaged: ignore` under `settings`',
  ],
  unmanaged_resources: [
    'the project has unmanaged servers or addresses. A creation could be a duplicate of one of them',
    '`vdcsync adopt` those of this file, and `vdcsync ignore` the others; or set `unmanaged: ignore` under `settings`',
  ],
  unreachable: [
    'vdcsync did not reach the API before the deadline of a write, so the write was not sent',
    'restore the connection, then `vdcsync apply`',
  ],
  unresolved_create: [
    'another creation is unconfirmed, and this creation could be confused with it',
    '`vdcsync apply` finishes the other creation first. If that creation is blocked, first run the command of its message',
  ],
  url_missing: [
    'an ISO must be added again, and its entry has `id:` and no url',
    'remove `id:`, and write `url:`',
  ],
} as const satisfies Readonly<Record<string, Explanation>>;

/** Codes of the API that are no codes of vdcsync. The API may have others. @source API §7 */
export const apiCodes: readonly string[] = [
  'disk_type_not_supported',
  'gpus_not_supported',
  'insufficient_privileges',
  'insufficient_scope',
  'invalid_request',
  'payment_required',
  'resources_managed_by_package',
  'server_busy',
  'server_not_found',
];

type Explanation = readonly [meaning: string, next: string];

export type Code = keyof typeof codes;

export function isCode(code: string): code is Code {
  return Object.hasOwn(codes, code);
}

/** `undefined`: a code of the API. */
export function explanationOf(code: string): Explanation | undefined {
  return isCode(code) ? codes[code] : undefined;
}
