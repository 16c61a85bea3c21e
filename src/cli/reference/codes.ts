/** Every code that a plan or a report of this program can carry, with what it means and what to do. */
export const codes: Readonly<Record<string, readonly [meaning: string, todo: string]>> = {
  address_free: [
    'an address of the project is attached to nothing and billed, while another one is bought',
    "`vdcsync adopt` it for the entry, or write `{reuse: true}` or `{ip: NAME}`; `vdcsync ignore` it if it is somebody else's",
  ],
  address_for_nobody: [
    'an address is bought that no server of the file asks for',
    'nothing if it is to be kept in reserve; else name it in a server, or take it out of the file',
  ],
  address_in_use: [
    'the address that the entry names is attached to another server',
    'name another address, or delete that server',
  ],
  address_left_idle: [
    'the server that holds an address of the file goes, and no other one of the file asks for it; or the one that asks for it is gone',
    'take the address out of the file as well, unless it is to stay, billed',
  ],
  address_not_as_declared: [
    'a server holds another address than its entry says, or one nobody asked for',
    'change the entry, or the server in the client area',
  ],
  address_not_the_only_free_one: [
    'the API can only be asked for *a* free address, and several are free',
    'attach or release the others, or enable `named_address`',
  ],
  address_pool_unchecked: [
    'a new server names an address that was not taken for its type',
    "name one whose entry has the type's `server_type_id`, where the API refuses this one (`ip_not_usable`) or gives the server another",
  ],
  address_unchecked: [
    'no documented read shows from which pool an adopted address was taken',
    '`vdcsync adopt KEY ID` (once more) where it is as the file says; else leave `server_type_id` out',
  ],
  backup_creating: ['a backup is being taken, so no second one is', 'nothing: it is looked at again'],
  backup_policy_differs: [
    'the schedule differs, and changing it is not documented',
    'change it in the client area, or enable `update_backup_policy`',
  ],
  backups_kept: [
    'more backups are there than `keep` asks for, and stay billed',
    'delete them in the client area, or enable `delete_backup`; those of a protected server stay',
  ],
  backup_not_listed: [
    'the list of backups lacks one that was taken, and may be cut short',
    'nothing; `vdcsync forget` it if it is gone',
  ],
  backup_unclear: [
    'a backup has an unknown status or time, so none is taken beside it',
    'look at it in the client area',
  ],
  cap_unchecked: [
    '`settings.max_monthly_increase` counts known prices only, and the plan buys something whose price is not known',
    '`--prices FILE`, or read the plan as one without that cap',
  ],
  catalogue_changed: [
    'what a server was made from is not sold any more',
    'nothing now; it could not be made again',
  ],
  contract_breach: ['an answer was not as the API documents it', 'report it to the API, with the request id'],
  default_network: ['the default network is never touched', 'write `managed: false` in its entry'],
  dependency_blocked: ['it waits for something that is blocked or missing', 'settle that first'],
  drift: [
    'it was changed elsewhere, and `settings.drift` is `report`',
    'change the file, or set `drift: correct`',
  ],
  disk_would_shrink: [
    'a resize in place would make a disk smaller, or may: what it holds beyond that is lost',
    'write the size that it has, or say of an adopted server by `vdcsync adopt` that the file is right; else `replace: allowed`, where the file itself asks for it',
  ],
  drive_differs: [
    'what is in a drive is not as the file says, and changing it is not documented',
    'change it in the client area, or enable `insert_iso` and `eject_iso`',
  ],
  entry_incomplete: [
    'what differs needs a replacement, and the entry, which binds by `id:`, does not say of what',
    'restore the value, or write what creation needs',
  ],
  firewall_doubtful: [
    'a word in the firewall is nearly one that is usual',
    'correct it, or let it stand: it is sent as it is',
  ],
  firewall_field_dropped: [
    "live rules carry a field that the document does not show, and that is taken as the server's own",
    'write the field in the rules of the file if an operator set it',
  ],
  firewall_lockout: ['ssh is open, and the change closes it', 'make sure that there is another way in'],
  firewall_no_public_iface: [
    'a firewall needs a public card',
    'give the server a `public_ipv4`, or write `enabled: false`',
  ],
  firewall_rule_shadowed: [
    'a rule never acts: an earlier one takes all that it matches',
    'remove or move it',
  ],
  firewall_would_lose: [
    'live rules carry what cannot be sent back',
    'write it in the file, or remove those rules',
  ],
  gpu_package_not_found: ['the type does not sell that package', 'write one that it sells'],
  gpu_package_not_sold: ['one of the preferences is not sold', 'nothing: the next one is taken'],
  gpu_package_required: ['the type is sold in packages', 'write `gpu_package` instead of sizes'],
  id_conflict: ['the state binds the key to another id than the file', '`vdcsync adopt`, or correct `id:`'],
  identity_changed: [
    'what has the bound id looks like another resource',
    '`vdcsync adopt` it if it is the same, `vdcsync resolve KEY --absent` if what was bound is gone',
  ],
  image_ambiguous: ['several images have that name', 'write the id'],
  image_not_found: ['the type has no such image', 'write one that it has'],
  image_not_supported: ["a server cannot be created from a project's own ISO", 'write an image of the type'],
  image_taken_before: [
    'the state is new, the server was there before it, and no list shows whether an image was taken from it',
    '`vdcsync adopt` it by the id that the client area tells, or `unmanaged: ignore` under `settings` to have one taken',
  ],
  immutable: ['the field cannot be changed, not even by a replacement', 'restore it, or make a new entry'],
  in_flight: ['a write of an earlier run is unconfirmed', '`vdcsync apply` settles it'],
  iso_in_use: ['a drive holds the ISO', 'write `iso: null` in that server, and apply that first'],
  ip_in_use: [
    'the address is attached to a server that stays',
    'delete or detach that first, or `vdcsync forget` the address',
  ],
  stands_open: [
    'a new server has a public address, and its firewall could not be put yet',
    'settle what holds the firewall back, or close the server in the client area',
  ],
  profile_changed: [
    'a write is unconfirmed, and the API profile or an environment variable has changed the request that would be sent again',
    'restore the profile or the variable, or `vdcsync resolve`',
  ],
  key_conflict: [
    'another file of the project, or an earlier state, used the idempotency key of a creation, and may have created the resource',
    'set `project.scope: NAME` in one of the two files; if the resource belongs to this file: `vdcsync adopt KEY ID`, or `vdcsync resolve KEY --adopt ID` or `--absent`',
  ],
  key_not_answered: [
    'the answer to a creation was lost, and for half an hour no answer of the API has shown whether the creation was carried out',
    'nothing to decide: `vdcsync apply` asks the key again',
  ],
  key_too_old: [
    'a write stayed unconfirmed for 23 hours, so its idempotency key cannot be used again',
    'look in the client area, then `vdcsync resolve KEY --adopt ID` or `--absent`',
  ],
  let_go_before: [
    'the entry was not managed for a while, and what it stood for before is still there: this would be another one',
    '`vdcsync adopt` it to have it managed again, or `vdcsync ignore` it to have another one made; another image takes a new entry',
  ],
  left_out: ['`--target` or `--exclude` leaves operations out', 'nothing: the next plan shows them'],
  max_deletions: [
    'more deletions than `settings.max_deletions`',
    'raise it if this is meant, or `vdcsync destroy --max-deletions`',
  ],
  max_monthly_increase: [
    'the known prices add more than `settings.max_monthly_increase`',
    'raise it if this is meant',
  ],
  moved: ['the entry had another key', 'nothing: its binding moves with it'],
  moved_back: [
    'the key became another one, which the file leaves out: a rename was taken back',
    'write `moved: {from: …}` once more, the other way round; nothing is deleted or made until then',
  ],
  moved_from_unknown: [
    "the entry's `moved` names a key to which the state binds nothing",
    'correct it where something is meant that the file leaves out, which stays until then; else remove the line',
  ],
  flags_change: [
    "the entry's `protect` or `keep_ip` is not yet what the state has recorded",
    'nothing: the next apply records it, and sends nothing',
  ],
  perhaps_renamed: [
    'the entry is new, and one that leaves the file is the same but for its key',
    'write `moved: {from: KEY}` in it where it only has another name now: nothing is deleted or made',
  ],
  moved_in_flight: [
    'the entry had another key, and a write for one of the two is not settled',
    '`vdcsync apply` settles it; nothing else is done before',
  ],
  moved_onto_bound: [
    'the entry had another key, and a resource of its own stands under each of the two',
    '`vdcsync forget` the one that is not meant, or take `moved` out',
  ],
  name_ambiguous: ['several networks have that name', 'write `id:`'],
  name_exists: [
    'something has that name and is not of this file',
    '`vdcsync adopt` it if it is this, or give the entry another `name:`',
  ],
  network_not_listed: [
    'the list of networks lacks one of this file, and also what is there for certain: it is cut short',
    'nothing; the next look that shows it goes on',
  ],
  network_in_use: ['servers are on the network', 'take them off it, or delete them first'],
  no_gpu_capacity: ['no host had the cards free for a day', 'name further packages, or wait'],
  not_shown: [
    'nobody is asked (`--yes`, the daemon), and what became possible on the way would delete what the first plan did not show as to be deleted',
    '`vdcsync apply` again, or `plan` to see it first; the daemon shows and does it in its next pass',
  ],
  no_longer_declared: [
    'a part of a server, such as its firewall, has left its entry, or a server image the file, and stays as it is',
    'put it back, or `vdcsync forget KEY`',
  ],
  no_firewall: [
    'a new server has a public address, and no `firewall` in its entry',
    'write one, or `firewall: {enabled: false}` if it is to stand open',
  ],
  not_found: [
    'what the file names by id or name does not exist',
    'take the entry out, correct it, or have a new one made: without `id:`, and with what that needs',
  ],
  not_there: [
    'the API accepted it, and its reads do not show it',
    '`vdcsync resolve`, and report it to the API',
  ],
  outcome_unknown: [
    'the answer to a write is missing, and neither its idempotency key nor the reads show whether it had its effect',
    'look in the client area, then `vdcsync resolve KEY --adopt ID` or `--absent`',
  ],
  overtaken: ['the project moved between plan and write', 'nothing: it is planned again'],
  price_unused: [
    "a type of the price list is not in the project's catalogue",
    'correct its name or id, or take it out',
  ],
  project_not_active: [
    'the project is suspended',
    'what adds spending waits until it is Active, and so does a deletion that makes room for it',
  ],
  protected: [
    'the entry says `protect: true`, or said so last',
    'to delete it: `protect: false` in its entry, `vdcsync apply --target KEY`, then take the entry out, or destroy',
  ],
  named_elsewhere: [
    'it has left the file, and another entry names the same resource',
    'apply: the old name goes, and the resource stays',
  ],
  bound_already: ['another entry is bound to the same resource', 'correct the `id:` of one of the two'],
  plan_not_found: ['the type has no such plan', 'write one that it has'],
  prune_disabled: [
    'it has left the file, and `settings.prune` is false',
    'set `prune: true` to have it deleted, `vdcsync forget KEY` to keep it, or put the entry back',
  ],
  read_failed: ['a read failed, so nothing is known', 'run it again'],
  released: ['the state lets go of something, without a write', 'nothing'],
  replace_not_allowed: [
    'it could only be deleted and made again',
    'write `replace: allowed`, or restore the field',
  ],
  replacement_unchecked: [
    'nothing shows whether the API takes what the new server is to have, and the old one goes first',
    'make one with the same values under a new key before, or look them up in the client area',
  ],
  server_differs: [
    'the API shows another name or size, which cannot be changed',
    'change the entry, or enable `resize_server`',
  ],
  server_error: [
    'the API answered several attempts of a write with a server error, and reads show no effect',
    '`vdcsync apply` later; `vdcsync history` shows the request ids',
  ],
  server_image_not_taken: [
    'how an image is taken from a server is not documented',
    'take it in the client area and write its `id:`, or enable `take_server_image`',
  ],
  server_unchecked: [
    'no documented read shows what an adopted server was made of',
    '`vdcsync adopt KEY ID` (once more) where it is as the file says; else correct them or leave them out (with `id:`), or enable `read_server`, which may show sizes; an edit of them makes nothing anew before the entry was vouched for so',
  ],
  server_type_not_found: ['the catalogue has no such type', 'write one that it has'],
  server_type_not_supported: [
    'no image can be taken from a packaged graphics-card server',
    'name another server',
  ],
  size_unconfirmed: [
    'a resize sends every declared size, so also one of an adopted server that no read shows and nobody has confirmed',
    '`vdcsync adopt KEY ID` where it has what the file says; else correct the entry first, or leave that size out (with `id:`)',
  ],
  sizing_mode_mismatch: ['the type is sized in another way', 'write the fields that it takes'],
  stuck: ['a task has not ended in its time', 'run it again later; it is never sent twice'],
  surplus_network_interface: [
    'a server has a card that the file does not name',
    'name its network; cards of this file go with `remove_network_interface`',
  ],
  suspended: ['`settings.suspend` holds all changes', 'remove it from the file'],
  suspension_over: ['the moment in `settings.suspend.until` has passed', 'take `suspend` out of the file'],
  superseded: ['the API gave its id to another resource in this run', '`vdcsync apply` makes it again'],
  tainted: [
    'a write failed and left something behind',
    '`vdcsync adopt` it if it is of use, else delete it in the client area',
  ],
  task_failed: [
    'the API accepted a write and then failed at it',
    'see to the cause, then `vdcsync apply` tries again; where it left something that may be this, the message names `vdcsync resolve`',
  ],
  unlisted_servers: [
    'a network counts more servers than are known to be in it, and the state is new, or they came while a plan waited',
    '`vdcsync adopt` those of this file by the id that the client area tells, `vdcsync ignore` the others, or `unmanaged: ignore` under `settings`',
  ],
  unmanaged_resources: [
    'there are servers or addresses that neither file nor state names, and that were not there when the state was new',
    "`vdcsync adopt` what is of this file, `vdcsync ignore` what is somebody else's, or `unmanaged: ignore` under `settings`",
  ],
  unreachable: [
    'no connection to the API came about until the deadline of a write, so the write was not sent',
    'see to the connection, then `vdcsync apply`',
  ],
  unresolved_create: [
    'another creation is unconfirmed, and this one could take what it created, or be confused with it',
    '`vdcsync apply` settles that one; if it is blocked, resolve it first by the command in its message',
  ],
  url_missing: ['an ISO has to be added again, and the file has no url', 'write `url:`'],
};
