import type { QuestionTexts } from './explained.ts';

/** Operations that wait for a decision that the spec and its settings leave to the operator. */
export const policy = {
  address_not_as_declared: {
    meaning: 'a server has another address than its entry declares',
    next: 'change the entry, or the server in the client area',
    why: 'the server has taken a free address of the project, which may belong to another user',
    example:
      'servers.web-1 declares `public_ipv4: {new: true}`, and server 2001 holds 203.0.113.99, which this spec does not manage.',
    ways: ['servers: {web-1: {public_ipv4: {reuse: true}}}', 'vdcsync adopt servers.web-1.public_ipv4 5001'],
  },
  address_not_the_only_free_one: {
    meaning: 'the API attaches any free address, and several are free',
    next: 'attach or delete the others, or enable `named_address` in the API profile',
    why: 'the API attaches any free address, and the spec names one of several',
    example:
      'servers.web-1 names ips.web. 203.0.113.10 and 203.0.113.11 are free, and the API could attach either of them.',
    ways: ['operations: {named_address: …}   # in the API profile, if the API has this form'],
  },
  bound_already: {
    meaning: 'another entry is bound to the same resource',
    next: 'correct the `id:` of one of the two',
    why: '`id:` names a resource of another entry, or the API created a resource for a key that is already bound',
    example: 'servers.a and servers.b both say `id: 2001`.',
    ways: ['servers: {b: {id: 2002}}'],
  },
  check_refused: {
    meaning: 'the command of `--check-command` refuses the plan',
    next: 'change the spec, or the policy. After a change of the policy, send SIGHUP to the daemon',
    why: 'the plan breaks a rule of that command',
    example:
      'The command of --check-command refuses plans that delete a server, and the plan deletes servers.web-1.',
    ways: ['restore servers.web-1 in the spec'],
  },
  disk_would_shrink: {
    meaning: 'a resize would or could make a disk smaller, and destroy data',
    next: 'write the actual size; confirm an adopted server with `vdcsync adopt KEY ID`; or write `replace: allowed`',
    why: 'only the operator knows whether the data is still needed',
    example: 'servers.web-1 declares `disk_gb: 40`, and its disk has 80 GB.',
    ways: [
      'servers: {web-1: {disk_gb: 80}}',
      'servers: {web-1: {replace: allowed}}   # all data on the disk is lost',
    ],
  },
  firewall_would_lose: {
    meaning: 'a change would delete values of the live firewall that vdcsync cannot send back',
    next: 'write these values in the rules of the spec, or remove the live rules. Set `policy_out` to accept in the client area',
    why: 'only the operator knows whether these values are needed',
    example: 'A live rule has `source: 198.51.100.7`, and the spec has no `source`.',
    ways: ['{protocol: tcp, destination_port: "22", source: 198.51.100.7}'],
  },
  id_conflict: {
    meaning: 'the spec and the state have different ids for the key',
    next: '`vdcsync adopt KEY ID`, or correct `id:`',
    why: 'the entry was given another `id:` after its resource was bound',
    example: 'The spec says `id: 2001` in servers.web-1, and the state binds servers.web-1 to 2002.',
    ways: ['vdcsync adopt servers.web-1 2001'],
  },
  max_deletions: {
    meaning: 'the run would delete more than `settings.max_deletions`',
    next: 'if you want these deletions, raise the limit, or use `vdcsync destroy --max-deletions`',
    why: 'entries have left the spec, or their changes need replacements',
    example: 'Three servers left the spec, and `max_deletions` is 2.',
    ways: ['settings: {max_deletions: 3}'],
  },
  max_monthly_increase: {
    meaning: 'the known prices add more than `settings.max_monthly_increase`',
    next: 'if you want to spend this, raise the limit',
    why: 'the run buys resources, or makes them larger',
    example: 'The plan adds 120.00 a month, and `max_monthly_increase` is 100.',
    ways: ['settings: {max_monthly_increase: 120}'],
  },
  moved_onto_bound: {
    meaning: 'the entry was renamed, and both keys are bound to a resource',
    next: '`vdcsync forget KEY` for the previous key, or remove `moved`',
    why: 'both resources existed before the rename',
    example: 'servers.web-2 says `moved: {from: servers.web-1}`, and both are bound to a server.',
    ways: ['vdcsync forget servers.web-1'],
  },
  protected: {
    meaning: 'the entry has, or last had, `protect: true`',
    next: 'write `protect: false` and apply. Then remove the entry, or write `replace: allowed`',
    why: 'the spec protects the resource',
    example: 'servers.db-1 left the spec, and had `protect: true`.',
    ways: [
      'put servers.db-1 back with `protect: false`, and apply; then remove the entry, set `prune: true`, and apply again',
      'vdcsync forget servers.db-1   # to keep it, no longer managed and still billed',
    ],
  },
  prune_disabled: {
    meaning: 'the entry has left the spec, and `settings.prune` is false',
    next: 'to delete the resource, set `prune: true`; to keep it, `vdcsync forget KEY`; or restore the entry',
    why: 'the spec does not permit deletions',
    example: 'servers.old left the spec, and the server still exists.',
    ways: [
      'settings: {prune: true}   # to delete it',
      'vdcsync forget servers.old   # to keep it, no longer managed and still billed',
    ],
  },
  recovered_unconfirmed: {
    meaning:
      'a new state found the resource under an idempotency key, and another spec may manage it; or the entry took the resource over by an earlier key alone, or after a release. vdcsync neither deletes nor replaces it',
    next: '`vdcsync adopt KEY ID` if the entry means the resource, and only this spec manages it; otherwise remove the entry, then `vdcsync forget KEY`',
    why: 'the entry may mean another resource, or another spec may manage the resource',
    example: 'The state was lost, `vdcsync apply --yes` found server 2001, and servers.web-1 left the spec.',
    ways: ['vdcsync adopt servers.web-1 2001'],
  },
  replace_not_allowed: {
    meaning: 'the change needs a replacement: another resource is created, and the old one is deleted',
    next: 'write `replace: allowed`, and remove `id:` if the entry has it; or restore the old value',
    why: 'the spec does not permit the replacement',
    example: 'servers.web-1 has another `image` than at its creation.',
    ways: ['servers: {web-1: {replace: allowed}}   # deletes the server and creates it again'],
  },
  size_unconfirmed: {
    meaning: 'a resize sends all sizes, and vdcsync does not know the live value of one of them',
    next: 'if the spec is right, `vdcsync adopt KEY ID`; otherwise correct the size',
    why: 'no documented read shows the size that the resize would overwrite',
    example:
      'servers.web-1 was adopted, and the spec changes `cores`. The resize would also send `disk_gb: 80`, which no read confirms.',
    ways: ['vdcsync adopt servers.web-1 2001   # confirms the spec'],
  },
  suspended: {
    meaning: '`settings.suspend` stops all changes',
    next: 'remove `suspend` from the spec, or wait for the time in `until` if there is one',
    why: 'the spec asks for a stop of all changes',
    example: 'The spec says `suspend: {reason: "audit"}`.',
    ways: ['remove `suspend` under `settings`'],
  },
} as const satisfies QuestionTexts;

/** Creations that could duplicate an unmanaged resource. */
export const unmanaged = {
  image_taken_before: {
    meaning: 'the state is new, and an earlier state may have created this image',
    next: 'adopt the image with its id from the client area; to create a new image, set `unmanaged: ignore`',
    why: 'no documented read lists server images',
    example: 'The state was lost. server_images.golden may exist already.',
    ways: ['vdcsync adopt server_images.golden ID   # with the id from the client area'],
  },
  key_conflict: {
    meaning:
      'another spec or state used the idempotency key of this creation, and may have created the resource, or bound its entry to a resource of another key',
    next: 'adopt the resource; if there is none, `vdcsync resolve KEY --absent`. Two specs of one project need a `project.scope`',
    why: 'another spec or state used the idempotency key: the resource may belong to that spec',
    example: 'shop.yaml and shop-copy.yaml of one project both create servers.web-1.',
    ways: ['project: {id: 4711, scope: copy}'],
  },
  name_exists: {
    meaning: 'another resource has that name',
    next: 'if it belongs to this spec, `vdcsync adopt KEY ID`; otherwise give the entry another `name:`',
    why: 'the planned creation could duplicate that resource',
    example: 'The plan creates networks.backend, and an unmanaged network 32 has that name.',
    ways: ['vdcsync adopt networks.backend 32'],
  },
  unlisted_servers: {
    meaning:
      'a network, or a used idempotency key, shows that more servers may exist than vdcsync knows, and a creation could duplicate one of them',
    next: 'adopt the servers of this spec with their ids from the client area, and `vdcsync ignore` the others; `vdcsync resolve KEY --absent` if a used idempotency key has no other server there',
    why: 'the planned creation could duplicate one of these servers',
    example:
      'Network default counts 3 servers, and vdcsync knows 1 of them. The others have no public address, so the API does not list them.',
    ways: [
      'vdcsync adopt servers.web-1 2001   # a server of this spec; the client area shows the id',
      'vdcsync ignore 2002   # a server of another user',
      'settings: {unmanaged: ignore}   # all of them belong to others',
      'vdcsync resolve servers.web-1 --absent   # the client area shows no other server of this spec',
    ],
  },
  unmanaged_resources: {
    meaning: 'the project has unmanaged servers or addresses, and a creation could duplicate one of them',
    next: '`vdcsync adopt` those of this spec, and `vdcsync ignore` the others',
    why: 'the planned creation could duplicate one of these resources',
    example: 'Server 2005 (203.0.113.30) is in the project, and neither in the spec nor in the state.',
    ways: ['vdcsync adopt servers.web-1 2005', 'vdcsync ignore 2005'],
  },
} as const satisfies QuestionTexts;
