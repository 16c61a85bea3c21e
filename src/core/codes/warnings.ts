import type { Explained } from './explained.ts';

/** Codes of warnings, which block nothing. */
export const warnings = {
  address_free: {
    meaning: 'the plan buys an address, while another one is billed and attached to no server',
    next: '`vdcsync adopt KEY ID`, write `public_ipv4: {reuse: true}`, or `vdcsync ignore ADDRESS`',
    example: 'The plan buys ips.web, and 203.0.113.10 (id 5001) is already paid for and unused.',
    ways: ['vdcsync adopt ips.web 5001', 'vdcsync ignore 203.0.113.10'],
  },
  address_left_idle: {
    meaning: 'the server of an address is gone, and no other server of the spec uses the address',
    next: 'remove the entry of the address too, unless you want to keep it',
    example:
      'servers.web-1 left the spec, and ips.web stayed in it: 203.0.113.10 is billed without a server.',
    ways: ['remove ips.web from the spec'],
  },
  address_pool_unchecked: {
    meaning: 'a new server names an address that was not allocated for its server type',
    next: 'if the API refuses the address, name one whose entry has the `server_type_id` of the server',
    example: 'servers.gpu-1 names ips.web, which was allocated for sliders-1.',
    ways: ['ips: {gpu: {server_type_id: 8}}   # and servers: {gpu-1: {public_ipv4: {ip: gpu}}}'],
  },
  address_unchecked: {
    meaning: 'the API does not show for which server type an adopted address was allocated',
    next: 'if `server_type_id` is right, confirm it: `vdcsync adopt KEY ID`; otherwise remove the field',
    example: 'ips.web was adopted, and the spec says `server_type_id: 3`, which no read shows.',
    ways: ['vdcsync adopt ips.web 5001   # confirms the spec'],
  },
  addresses_may_exchange: {
    meaning: 'the API attaches any free address, so two keys under `ips` may exchange their addresses',
    next: 'nothing, if either address is right; otherwise write the `id:` of the address',
    example: 'servers.web-1 names ips.web, and ips.mail is free too.',
    ways: ['ips: {web: {id: 5001}}'],
  },
  backup_creating: {
    meaning: 'a backup is in progress, so vdcsync takes no second one',
    next: 'nothing: vdcsync checks again',
    example: 'servers.db-1.backup is due, and a backup of server 2001 has the status creating.',
  },
  backup_not_listed: {
    meaning: 'the list of backups lacks a backup that vdcsync took',
    next: 'if the backup no longer exists, `vdcsync forget KEY`',
    example: 'The state knows backup 2026-01-05T09:00:28Z of servers.db-1, and the list of backups lacks it.',
    ways: ['vdcsync forget servers.db-1.backup   # if the client area shows that the backup is gone'],
  },
  backup_policy_differs: {
    meaning: 'the backup schedule differs from the spec, and the API does not document how to change it',
    next: 'change it in the client area, or enable `update_backup_policy` in the API profile',
    example: 'The spec asks for backups at 3 o’clock, and the schedule of server 2001 says 1 o’clock.',
    ways: ['operations: {update_backup_policy: …}   # in the API profile, if the API has it'],
  },
  backup_unclear: {
    meaning: 'a backup has an unknown status or time, so vdcsync takes no further backup',
    next: 'check it in the client area',
    example: 'The newest backup of server 2001 has a status that the API does not document.',
  },
  backups_kept: {
    meaning: 'there are more backups than `keep`, and they are billed',
    next: 'delete them in the client area, or enable `delete_backup` in the API profile',
    example: 'servers.db-1 declares `backup: {keep: 3}`, and server 2001 has 5 backups.',
    ways: ['operations: {delete_backup: …}   # in the API profile, if the API has it'],
  },
  billed_twice: {
    meaning: 'the old server is deleted after the new one is complete. In the meantime, both are billed',
    next: 'nothing; or write `replace: {order: delete_first}`',
    example:
      'servers.web-1 gets `cores: 8`: server 2001 is deleted once the new server and its firewall are in place.',
    ways: ['servers: {web-1: {replace: {order: delete_first}}}'],
  },
  cap_unchecked: {
    meaning: 'the plan buys a resource without a known price, which `max_monthly_increase` does not count',
    next: 'add the price with `--prices FILE`, or check the cost yourself',
    example: 'The spec says `max_monthly_increase: 50`, and the price of servers.web-1 is not known.',
    ways: ['vdcsync plan --prices prices.yaml'],
  },
  catalogue_changed: {
    meaning: 'the type, plan or image of a server is no longer sold',
    next: 'nothing now. vdcsync could not create this server again',
    example: 'servers.web-1 was created from ubuntu-22.04, and the catalogue no longer has this image.',
  },
  contract_breach: {
    meaning: 'an answer of the API differs from its documentation',
    next: 'report it to the provider, with the request id',
    example: 'GET /ips answers with an entry that has no address.',
  },
  drift: {
    meaning: 'the resource was changed outside vdcsync, and `settings.drift` is `report`',
    next: 'to keep the change, write it into the spec; to undo it, set `drift: correct`',
    example: 'Another user changed the firewall of server 2001, and the spec says `drift: report`.',
    ways: ['settings: {drift: correct}'],
  },
  drive_differs: {
    meaning: 'the drive differs from the spec, and the API does not document how to change it',
    next: 'change it in the client area, or enable `insert_iso` and `eject_iso` in the API profile',
    example: 'servers.web-1 declares `iso: rescue`, and its drive is empty.',
    ways: ['operations: {insert_iso: …}   # in the API profile, if the API has it'],
  },
  expired: {
    meaning:
      'the time in `expires` of the entry or of the project is over, so the entry counts as removed from the spec',
    next: 'to keep the resource, change or remove `expires`; otherwise remove the entry',
    example: 'servers.trial has `expires: 2027-01-31T00:00:00Z`, and it is 2027-02-01.',
    ways: ['servers: {trial: {expires: 2027-06-30T00:00:00Z}}   # to keep it until then'],
  },
  expires_soon: {
    meaning: 'the entry expires within a week, and then counts as removed from the spec',
    next: 'to keep the resource, change or remove `expires`; otherwise nothing',
    example: 'servers.trial has `expires: 2027-01-31T00:00:00Z`, and it is 2027-01-26.',
    ways: ['servers: {trial: {expires: 2027-06-30T00:00:00Z}}   # to keep it until then'],
  },
  exposed: {
    meaning: 'a server has a public address, a declared firewall, and no firewall in force',
    next: 'apply the firewall, or restrict the traffic of the server in the client area',
    example: 'The firewall of server 2001 was switched off in the client area.',
    ways: ['vdcsync apply --target servers.web-1.firewall'],
  },
  firewall_field_dropped: {
    meaning: 'live rules have an undocumented field, which the API probably adds. vdcsync does not send it',
    next: 'if you added the field yourself, write it in the rules of the spec',
    example: 'Live rules have the field position, which the API document does not show.',
    ways: ['{protocol: tcp, destination_port: "443", position: 1}   # only if you set it'],
  },
  firewall_lockout: {
    meaning: 'ssh is open now, and the change closes it',
    next: 'make sure that you have another way to log in',
    example: 'tcp 22 is open on server 2001, and the new rules allow only tcp 443.',
    ways: ['{direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "22"}'],
  },
  flags_change: {
    meaning: 'the spec changes `protect` or `keep_ip` of the entry',
    next: 'nothing: the next apply records this in the state, and sends nothing for it',
    example: 'After the last apply, you added `protect: true` to servers.web-1.',
    ways: ['vdcsync apply'],
  },
  gpu_package_not_sold: {
    meaning: 'the server type does not sell a package of the list',
    next: 'nothing: vdcsync takes the next package of the list',
    example: 'servers.gpu-1 lists [a100-9, l40s-1], and its type sells only l40s-1.',
  },
  in_flight: {
    meaning: 'an earlier run left an open write, or an adopted server is still being created',
    next: '`vdcsync apply` finishes the write',
    example: 'The last run was interrupted while the API created servers.web-1.',
    ways: ['vdcsync apply'],
  },
  key_not_derived: {
    meaning:
      'the resource was created less than a day ago under another idempotency key, which the spec does not lead to, and the key of its entry could not be reserved',
    next: 'write the earlier `scope` or `moved` again for a day, or the `id`, or keep a copy of the state',
    example: 'servers.web-1 was created an hour ago, and the spec said `scope: blue` then.',
    ways: ['project: {scope: blue}', 'servers: {www: {moved: {from: servers.web}}}'],
  },
  key_used_elsewhere: {
    meaning:
      'another state used the idempotency key of the entry less than a day ago, but the resource of the entry was not created under that key',
    next: 'check the client area for a resource without an entry. Adopt it, or delete it',
    example:
      'The state was lost, and you adopted another server than the one that servers.web-1 had created.',
    ways: ['vdcsync adopt servers.web-2 2001'],
  },
  left_out: {
    meaning: '`--target` or `--exclude` leaves out operations',
    next: 'nothing: the next plan shows them',
    example: 'vdcsync plan --target networks.backend shows 1 of 8 operations.',
    ways: ['vdcsync plan'],
  },
  moved: {
    meaning: 'the entry was renamed',
    next: 'nothing: the binding moves to the new key',
    example: 'servers.web-2 says `moved: {from: servers.web-1}`.',
    ways: ['vdcsync apply'],
  },
  network_not_listed: {
    meaning: 'the list of networks lacks networks that certainly exist, so it is incomplete',
    next: 'nothing: vdcsync continues when a list is complete',
    example:
      'networks.backend is bound to 32, and GET /networks lacks it although servers.web-1 is in that network.',
  },
  no_firewall: {
    meaning: 'a new server has a public address, and no `firewall` in its entry',
    next: 'write a firewall; if the server needs none, `firewall: {enabled: false}`',
    example: 'servers.web-1 has `public_ipv4: {new: true}` and no `firewall`.',
    ways: ['servers: {web-1: {firewall: {enabled: true, policy_in: drop, rules: []}}}'],
  },
  no_longer_declared: {
    meaning: 'a part of a server, or a server image, has left the spec, and still exists',
    next: 'restore the entry, or `vdcsync forget KEY`',
    example: 'The entry of servers.web-1 lost its `firewall`: the live firewall stays unchanged.',
    ways: ['vdcsync forget servers.web-1.firewall'],
  },
  overtaken: {
    meaning: 'the project changed between plan and write',
    next: 'nothing: vdcsync plans again',
    example: 'Another user deleted server 2001 after the plan and before the write.',
  },
  perhaps_renamed: {
    meaning: 'a new entry equals one that has left the spec, except for its key',
    next: 'if you renamed it, write `moved: {from: KEY}` in the entry',
    example: 'servers.web-1 left the spec, and the new servers.web-2 has the same fields.',
    ways: ['servers: {web-2: {moved: {from: servers.web-1}}}'],
  },
  released: {
    meaning: 'vdcsync stops managing the resource, and sends nothing for this',
    next: 'nothing',
    example: 'The entry of servers.web-1 says `managed: false` now: server 2001 stays, and is still billed.',
  },
  replacement_reverted: {
    meaning: 'the spec asks again for the old server of a replacement, and that server still exists',
    next: 'nothing: the old server takes its key back, and the new server is deleted',
    example: 'servers.web-1 was edited to `cores: 4`, and the edit was reverted while both servers existed.',
    ways: ['vdcsync apply'],
  },
  replacement_unchecked: {
    meaning:
      'the old resource is deleted first, and the API checks the payment, the quota and some of the new values only after the deletion',
    next: 'first create a second one with these values under a new key, or check them in the client area',
    example:
      'servers.web-1 is replaced, and gets `cores: 64`. The API checks the number of cores only in a creation.',
    ways: ['servers: {web-1-trial: {cores: 64, …}}   # try the new size first'],
  },
  server_differs: {
    meaning: 'the API shows another name, size or address, and the API does not document how to change it',
    next: 'change the entry, change the server in the client area, or enable `resize_server` in the API profile',
    example: 'servers.web-1 declares `cores: 4`, and the API shows 8.',
    ways: ['servers: {web-1: {cores: 8}}'],
  },
  server_image_not_taken: {
    meaning: 'the API does not document how to take an image from a server',
    next: 'take it in the client area and write its `id:`, or enable `take_server_image` in the API profile',
    example: 'server_images.golden names servers.web-1, and the API profile has no take_server_image.',
    ways: ['server_images: {golden: {id: ID}}   # once taken in the client area'],
  },
  server_unchecked: {
    meaning: 'the API does not show the type, image or size of a server that was adopted or is resized',
    next: 'if the values in the spec are right, confirm them: `vdcsync adopt KEY ID`. If not, first correct them: this does not replace the server',
    example: 'servers.web-1 was adopted, and no read shows that it really has the image of the spec.',
    ways: ['vdcsync adopt servers.web-1 2001   # confirms the spec'],
  },
  surplus_network_interface: {
    meaning: 'a server has a network interface that the spec does not declare',
    next: 'add its network to the entry, or remove the network interface in the client area',
    example: 'Server 2001 has a network interface on networks.backend, which its entry does not name.',
    ways: ['servers: {web-1: {network_interfaces: [backend]}}'],
  },
  unused_address: {
    meaning: 'the plan buys an address that no server of the spec uses',
    next: 'name it in a server, or remove its entry, unless you want to keep it',
    example: 'ips.spare is in the spec, and no server has `public_ipv4: {ip: spare}`.',
    ways: ['servers: {web-1: {public_ipv4: {ip: spare}}}'],
  },
  value_doubtful: {
    meaning: 'a value of the entry is probably a typing error, or a firewall rule can never match',
    next: 'correct the value or the rule; or keep it: vdcsync applies it unchanged',
    example: 'A rule says `protocol: tpc`, which resembles tcp.',
    ways: ['{protocol: tcp, destination_port: "443"}'],
  },
} as const satisfies Readonly<Record<string, Explained>>;
