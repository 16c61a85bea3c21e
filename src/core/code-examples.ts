import type { Code } from './codes.ts';

/** A situation in which the code appears, and the commands or lines of the file that end it: alternatives, not steps. */
export type Example = readonly [situation: string, ...ways: readonly string[]];

/** One example for each code of vdcsync. */
export const codeExamples: Readonly<Record<Code, Example>> = {
  address_free: [
    'The plan buys ips.web, and 203.0.113.10 (id 5001) is already paid for and unused.',
    'vdcsync adopt ips.web 5001',
    'vdcsync ignore 203.0.113.10',
  ],
  unused_address: [
    'ips.spare is in the file, and no server has `public_ipv4: {ip: spare}`.',
    'servers: {web-1: {public_ipv4: {ip: spare}}}',
  ],
  address_in_use: [
    'servers.web-2 names ips.web, and server 2001 holds that address.',
    'servers: {web-2: {public_ipv4: {ip: other}}}',
  ],
  addresses_may_exchange: [
    'servers.web-1 names ips.web, and ips.mail is free too.',
    'ips: {web: {id: 5001}}',
  ],
  address_left_idle: [
    'servers.web-1 left the file, and ips.web stayed in it: 203.0.113.10 is billed without a server.',
    'remove ips.web from the file',
  ],
  address_not_as_declared: [
    'servers.web-1 declares `public_ipv4: {ip: web}`, and server 2001 holds 203.0.113.99 instead.',
    'servers: {web-1: {public_ipv4: {ip: the-other}}}',
  ],
  address_not_the_only_free_one: [
    'servers.web-1 names ips.web. 203.0.113.10 and 203.0.113.11 are free, and the API could attach either of them.',
    'operations: {named_address: …}   # in the API profile, if the API has this form',
  ],
  address_pool_unchecked: [
    'servers.gpu-1 names ips.web, which was allocated for sliders-1.',
    'ips: {gpu: {server_type_id: 8}}   # and servers: {gpu-1: {public_ipv4: {ip: gpu}}}',
  ],
  address_unchecked: [
    'ips.web was adopted, and the file says `server_type_id: 3`, which no read shows.',
    'vdcsync adopt ips.web 5001   # confirms the file',
  ],
  backup_creating: ['servers.db-1.backup is due, and a backup of server 2001 has the status creating.'],
  backup_policy_differs: [
    'The file asks for backups at 3 o’clock, and the schedule of server 2001 says 1 o’clock.',
    'operations: {update_backup_policy: …}   # in the API profile, if the API has it',
  ],
  backups_kept: [
    'servers.db-1 declares `backup: {keep: 3}`, and server 2001 has 5 backups.',
    'operations: {delete_backup: …}   # in the API profile, if the API has it',
  ],
  backup_not_listed: [
    'The state knows backup 2026-01-05T09:00:28Z of servers.db-1, and the list of backups lacks it.',
    'vdcsync forget servers.db-1.backup   # if the client area shows that the backup is gone',
  ],
  backup_unclear: ['The newest backup of server 2001 has a status that the API does not document.'],
  billed_twice: [
    'servers.web-1 gets `cores: 8`: server 2001 is deleted once the new server and its firewall are in place.',
    'servers: {web-1: {replace: {order: delete_first}}}',
  ],
  cap_unchecked: [
    'The file says `max_monthly_increase: 50`, and the price of servers.web-1 is not known.',
    'vdcsync plan --prices prices.yaml',
  ],
  catalogue_changed: [
    'servers.web-1 was created from ubuntu-22.04, and the catalogue no longer has this image.',
  ],
  check_refused: [
    'The command of --check-command refuses plans that delete a server, and the plan deletes servers.web-1.',
    'restore servers.web-1 in the file',
  ],
  contract_breach: ['GET /ips answers with an entry that has no address.'],
  default_network: [
    'networks.default declares a cidr, and is the default network of the project.',
    'networks: {default: {managed: false}}',
  ],
  dependency_blocked: [
    'servers.web-1 needs networks.backend, whose creation is blocked.',
    'vdcsync explain networks.backend',
  ],
  drift: [
    'Another user changed the firewall of server 2001, and the file says `drift: report`.',
    'settings: {drift: correct}',
  ],
  disk_would_shrink: [
    'servers.web-1 declares `disk_gb: 40`, and its disk has 80 GB.',
    'servers: {web-1: {disk_gb: 80}}',
    'servers: {web-1: {replace: allowed}}   # all data on the disk is lost',
  ],
  drive_differs: [
    'servers.web-1 declares `iso: rescue`, and its drive is empty.',
    'operations: {insert_iso: …}   # in the API profile, if the API has it',
  ],
  entry_incomplete: [
    'servers.web-1 has `id: 2001` and another `server_type` than before, and lacks `image`.',
    'servers: {web-1: {image: ubuntu-24.04}}   # without `id:`',
  ],
  firewall_doubtful: [
    'A rule says `protocol: tpc`, which resembles tcp.',
    '{protocol: tcp, destination_port: "443"}',
  ],
  firewall_field_dropped: [
    'Live rules have the field position, which the API document does not show.',
    '{protocol: tcp, destination_port: "443", position: 1}   # only if you set it',
  ],
  firewall_lockout: [
    'tcp 22 is open on server 2001, and the new rules allow only tcp 443.',
    '{direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22"}',
  ],
  firewall_no_public_iface: [
    'servers.db-1 declares a firewall, and has no public address.',
    'servers: {db-1: {public_ipv4: {new: true}}}',
    'servers: {db-1: {firewall: {enabled: false}}}',
  ],
  firewall_would_lose: [
    'A live rule has `source: 198.51.100.7`, and the file has no `source`.',
    '{protocol: tcp, destination_port: "22", source: 198.51.100.7}',
  ],
  gpu_package_not_found: [
    'servers.gpu-1 asks for a100-9, and its type sells l40s-1 and l40s-2.',
    'servers: {gpu-1: {gpu_package: l40s-1}}',
  ],
  gpu_package_not_sold: ['servers.gpu-1 lists [a100-9, l40s-1], and its type sells only l40s-1.'],
  gpu_package_required: [
    'servers.gpu-1 has the type gpu-fixed and declares `cores: 4`.',
    'servers: {gpu-1: {gpu_package: l40s-1}}',
  ],
  id_conflict: [
    'The file says `id: 2001` in servers.web-1, and the state binds servers.web-1 to 2002.',
    'vdcsync adopt servers.web-1 2001',
  ],
  identity_changed: [
    'Server 2001 had the address 203.0.113.10, and has 203.0.113.99 now.',
    'vdcsync adopt servers.web-1 2001   # the same server',
    'vdcsync resolve servers.web-1 --absent   # another server has its id now',
  ],
  image_ambiguous: ['Two images are named golden.', 'servers: {web-1: {image: os-88ffd7694c6a}}'],
  image_not_found: [
    'servers.web-1 says `image: ubuntu-24`, and its type has ubuntu-24.04.',
    'servers: {web-1: {image: ubuntu-24.04}}',
  ],
  image_not_supported: [
    'servers.web-1 names the ISO of isos.rescue as its image.',
    'servers: {web-1: {image: ubuntu-24.04}}',
  ],
  image_taken_before: [
    'The state was lost. server_images.golden may exist already.',
    'vdcsync adopt server_images.golden ID   # with the id from the client area',
  ],
  immutable: [
    'ips.web was allocated with `server_type_id: 3`, and the file says 8 now.',
    'ips: {gpu: {server_type_id: 8}}   # a new entry, a new address',
  ],
  in_flight: ['The last run was interrupted while the API created servers.web-1.', 'vdcsync apply'],
  iso_in_use: [
    'isos.rescue left the file, and is in the drive of server 2001.',
    'servers: {web-1: {iso: null}}',
  ],
  ip_in_use: [
    'ips.web left the file, and is attached to server 2001, which stays.',
    'vdcsync forget ips.web',
  ],
  exposed: ['The API refused the firewall of the new server 2001.', 'vdcsync explain servers.web-1.firewall'],
  profile_changed: [
    'The creation of servers.web-1 is unconfirmed, and a changed API profile would send another request.',
    'vdcsync resolve servers.web-1 --adopt 2001   # the client area shows it',
    'vdcsync resolve servers.web-1 --absent   # the client area does not show it',
  ],
  key_conflict: [
    'shop.yaml and shop-copy.yaml of one project both create servers.web-1.',
    'project: {id: 4711, scope: copy}',
  ],
  key_not_answered: ['The connection broke while servers.web-1 was created.', 'vdcsync apply'],
  key_too_old: [
    'The creation of servers.web-1 was interrupted two days ago.',
    'vdcsync resolve servers.web-1 --adopt 2001   # the client area shows it',
    'vdcsync resolve servers.web-1 --absent   # the client area does not show it',
  ],
  left_out: ['vdcsync plan --target networks.backend shows 1 of 8 operations.', 'vdcsync plan'],
  max_deletions: ['Three servers left the file, and `max_deletions` is 2.', 'settings: {max_deletions: 3}'],
  max_monthly_increase: [
    'The plan adds 120.00 a month, and `max_monthly_increase` is 100.',
    'settings: {max_monthly_increase: 120}',
  ],
  moved: ['servers.web-2 says `moved: {from: servers.web-1}`.', 'vdcsync apply'],
  moved_from_unknown: [
    'servers.web-2 says `moved: {from: servers.wbe-1}`, and the state binds servers.web-1.',
    'servers: {web-2: {moved: {from: servers.web-1}}}',
  ],
  flags_change: ['After the last apply, you added `protect: true` to servers.web-1.', 'vdcsync apply'],
  perhaps_renamed: [
    'servers.web-1 left the file, and the new servers.web-2 has the same fields.',
    'servers: {web-2: {moved: {from: servers.web-1}}}',
  ],
  moved_in_flight: ['servers.web-1 was renamed before its creation had ended.', 'vdcsync apply'],
  moved_onto_bound: [
    'servers.web-2 says `moved: {from: servers.web-1}`, and both are bound to a server.',
    'vdcsync forget servers.web-1',
  ],
  name_ambiguous: ['Two networks are named backend.', 'networks: {backend: {id: 32}}'],
  name_exists: [
    'The plan creates networks.backend, and an unmanaged network 32 has that name.',
    'vdcsync adopt networks.backend 32',
  ],
  network_not_listed: [
    'networks.backend is bound to 32, and GET /networks lacks it although servers.web-1 is in that network.',
  ],
  network_in_use: [
    'networks.backend left the file, and server 2001 is still on it.',
    'remove backend from `network_interfaces` of the server, and apply   # with `remove_network_interface` in the API profile',
    'remove the network interface in the client area',
  ],
  no_gpu_capacity: [
    'The API answered the creation of servers.gpu-1 with no_gpu_capacity for 24 h.',
    'servers: {gpu-1: {gpu_package: [l40s-2, l40s-1]}}',
  ],
  not_shown: [
    'ips.web could be deleted only after another change of the run, so the plan of the run did not show it.',
    'vdcsync apply   # after you have checked the deletion with vdcsync plan',
  ],
  no_longer_declared: [
    'The entry of servers.web-1 lost its `firewall`: the live firewall stays unchanged.',
    'vdcsync forget servers.web-1.firewall',
  ],
  no_firewall: [
    'servers.web-1 has `public_ipv4: {new: true}` and no `firewall`.',
    'servers: {web-1: {firewall: {enabled: true, policy_in: drop, rules: []}}}',
  ],
  not_found: ['servers.web-1 says `id: 2999`, and no server has that id.', 'servers: {web-1: {id: 2001}}'],
  not_there: [
    'The task of networks.backend succeeded, and GET /networks does not list it.',
    'vdcsync resolve networks.backend --adopt 31   # the client area shows it',
    'vdcsync resolve networks.backend --absent   # the client area does not show it',
  ],
  outcome_unknown: [
    'The creation of servers.web-1 got no answer, and the reads show two new servers.',
    'vdcsync resolve servers.web-1 --adopt 2001   # the client area shows that 2001 is servers.web-1',
    'vdcsync resolve servers.web-1 --absent   # the client area does not show it',
  ],
  overtaken: ['Another user deleted server 2001 after the plan and before the write.'],
  price_unused: [
    'prices.yaml has slider-1, and the catalogue has sliders-1.',
    'servers: {sliders-1: {…}}   # in prices.yaml',
  ],
  project_not_active: ['GET /project shows the status Suspended: the API refuses new spending.'],
  protected: [
    'servers.db-1 left the file, and had `protect: true`.',
    'put servers.db-1 back with `protect: false`, and apply; then remove the entry, set `prune: true`, and apply again',
    'vdcsync forget servers.db-1   # to keep it, no longer managed and still billed',
  ],
  bound_already: ['servers.a and servers.b both say `id: 2001`.', 'servers: {b: {id: 2002}}'],
  plan_not_found: [
    'servers.db-1 says `plan_id: 99`, and its type has 51 and 52.',
    'servers: {db-1: {plan_id: 52}}',
  ],
  prune_disabled: [
    'servers.old left the file, and the server still exists.',
    'settings: {prune: true}   # to delete it',
    'vdcsync forget servers.old   # to keep it, no longer managed and still billed',
  ],
  rate_limit_exceeded: [
    'Another client used up the request budget of the token for 30 minutes.',
    'vdcsync apply',
  ],
  read_failed: ['GET /servers/2001/firewall answered 503 five times.', 'vdcsync plan'],
  released: ['The entry of servers.web-1 says `managed: false` now: server 2001 stays, and is still billed.'],
  recovered_unconfirmed: [
    'The state was lost, `vdcsync apply --yes` found server 2001, and servers.web-1 left the file.',
    'vdcsync adopt servers.web-1 2001',
  ],
  replace_not_allowed: [
    'servers.web-1 has another `image` than at its creation.',
    'servers: {web-1: {replace: allowed}}   # deletes the server and creates it again',
  ],
  replacement_unchecked: [
    'servers.web-1 may be replaced, and gets `cores: 64`, which no read can verify before the deletion.',
    'servers: {web-1-trial: {cores: 64, …}}   # try the new size first',
  ],
  server_differs: ['servers.web-1 declares `cores: 4`, and the API shows 8.', 'servers: {web-1: {cores: 8}}'],
  server_error: ['POST /servers answered each of four attempts with 500.', 'vdcsync apply   # later'],
  server_image_not_taken: [
    'server_images.golden names servers.web-1, and the API profile has no take_server_image.',
    'server_images: {golden: {id: ID}}   # once taken in the client area',
  ],
  server_unchecked: [
    'servers.web-1 was adopted, and no read shows that it really has the image of the file.',
    'vdcsync adopt servers.web-1 2001   # confirms the file',
  ],
  server_type_not_found: [
    'servers.web-1 says `server_type: slider-1`, and the catalogue has sliders-1.',
    'servers: {web-1: {server_type: sliders-1}}',
  ],
  server_type_not_supported: [
    'server_images.golden names servers.gpu-1, a packaged graphics-card server.',
    'server_images: {golden: {server: web-1}}',
  ],
  size_unconfirmed: [
    'servers.web-1 was adopted, and the file changes `cores`. The resize would also send `disk_gb: 80`, which no read confirms.',
    'vdcsync adopt servers.web-1 2001   # confirms the file',
  ],
  sizing_mode_mismatch: [
    'servers.db-1 has the type plans-1 and declares `cores: 4`.',
    'servers: {db-1: {plan_id: 52}}',
  ],
  stuck: ['The task of servers.web-1 has run for more than 30 minutes.', 'vdcsync apply'],
  surplus_network_interface: [
    'Server 2001 has a network interface on networks.backend, which its entry does not name.',
    'servers: {web-1: {network_interfaces: [backend]}}',
  ],
  suspended: ['The file says `suspend: {reason: "audit"}`.', 'remove `suspend` under `settings`'],
  suspension_over: [
    'The file says `suspend: {until: 2026-01-01T00:00:00Z}`.',
    'remove `suspend` under `settings`',
  ],
  superseded: ['Server 2001 was deleted, and a new server of the same run got its id.', 'vdcsync apply'],
  tainted: [
    'The task of servers.web-1 failed, and left server 2001, which is billed.',
    'vdcsync adopt servers.web-1 2001   # if you can use it',
    'delete server 2001 in the client area, and apply',
  ],
  task_failed: [
    'The task of isos.rescue failed: the URL answers 404.',
    'isos: {rescue: {url: "https://…"}}   # then: vdcsync apply',
  ],
  unlisted_servers: [
    'Network default counts 3 servers, and vdcsync knows 1 of them. The others have no public address, so the API does not list them.',
    'vdcsync adopt servers.web-1 2001   # a server of this file; the client area shows the id',
    'vdcsync ignore 2002   # a server of another user',
    'settings: {unmanaged: ignore}   # all of them belong to others',
  ],
  unmanaged_resources: [
    'Server 2005 (203.0.113.30) is in the project, and neither in the file nor in the state.',
    'vdcsync adopt servers.web-1 2005',
    'vdcsync ignore 2005',
  ],
  unreachable: ['vdcsync could not connect to the API for 30 minutes.', 'vdcsync apply'],
  unresolved_create: [
    'The creation of servers.a is unconfirmed. A server that appears next could be servers.a or servers.b.',
    'vdcsync explain servers.a',
  ],
  url_missing: [
    'isos.rescue has only `id: uiso-7`, and the download of ISO uiso-7 failed.',
    'isos: {rescue: {url: "https://mirror.example.com/rescue.iso"}}   # without `id:`',
  ],
};
