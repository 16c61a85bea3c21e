import { type Command, Help } from 'commander';
import { defaultSpec, defaultState, gitDefaults } from './flags.ts';

/** Examples below the help of each command: the most common calls. */
export const examples: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  validate: [['vdcsync validate -f shop.yaml', 'every error at once, offline']],
  plan: [
    ['vdcsync plan', 'shows the operations of the next apply'],
    ['vdcsync plan --out plan.json', 'saves the plan for apply --plan plan.json'],
    [
      'vdcsync plan --format markdown --detailed-exitcode',
      'for a merge request: exits with 2 if there are changes',
    ],
    ['vdcsync plan --target servers.web-1', 'one server and its dependencies'],
    ['vdcsync plan --undo 2026-01-31T12:00:00Z', 'the way back from that run of `vdcsync history`'],
    ['vdcsync plan --format svg --out plan.svg', 'as a picture'],
  ],
  apply: [
    ['vdcsync apply', 'shows the plan, asks, applies it'],
    ['vdcsync apply --yes --format json', 'in CI: one JSON object a line'],
    ['vdcsync apply --yes --plan plan.json', 'exactly the plan that was reviewed'],
    ['vdcsync apply --yes --timeout 30m', 'ends after 30 minutes, for example if no graphics cards are free'],
    ["vdcsync apply --yes --check-command 'node policy.mjs'", 'only a plan that your policy accepts'],
    ['vdcsync apply --emulator', 'uses the embedded emulator'],
  ],
  destroy: [
    ['vdcsync destroy --dry-run', 'shows the deletions'],
    ['vdcsync destroy', 'asks for the name of the project'],
    ['vdcsync destroy --max-deletions 5', 'allows up to 5 deletions'],
  ],
  run: [
    ['vdcsync run -f vdcsync.yaml', 'watches the file'],
    ['vdcsync run --git-url https://git.example.com/shop.git', 'watches a branch'],
  ],
  export: [['vdcsync export --out vdcsync.yaml', 'the first step to take over an existing project']],
  adopt: [['vdcsync adopt servers.web-1 2001', 'binds servers.web-1 to server 2001']],
  forget: [['vdcsync forget servers.old', 'releases servers.old: the resource stays in the project']],
  ignore: [
    ['vdcsync ignore 2001 203.0.113.10', 'both belong to another team, and no longer block creations'],
    [
      'vdcsync ignore --undo 2001',
      'removes the mark: server 2001 is unmanaged again, and may block creations',
    ],
    ['vdcsync ignore 2002', 'for a deleted server: vdcsync no longer reports its backups'],
  ],
  resolve: [
    ['vdcsync resolve servers.web-1 --adopt 2001', 'the API has created server 2001'],
    [
      'vdcsync resolve servers.web-1 --absent',
      'the API has not created the server: the next apply creates it',
    ],
  ],
  approve: [['vdcsync approve dd33ed3fcc4b', 'the daemon applies the plan with this digest']],
  'approve-commit': [['vdcsync approve-commit 9f2c41d08b1e', "with the fleet's URL in VDCSYNC_STATE"]],
  explain: [
    ['vdcsync explain outcome_unknown', 'the meaning of a code, and the next step'],
    ['vdcsync explain servers.web-1', 'entry, binding, planned operations, and why it is blocked'],
  ],
  status: [['vdcsync status --format json', 'the result as JSON, for scripts']],
  bill: [
    ['vdcsync bill --prices prices.yaml', 'the current month, with a forecast'],
    ['vdcsync bill --month 2026-10 --format csv > october.csv', 'a past month, for a spreadsheet'],
  ],
  output: [
    ['vdcsync output --format ansible --out inventory.yaml', 'for ansible-playbook -i inventory.yaml'],
    ['vdcsync output --format ssh-config --out ~/.ssh/vdc.conf', 'for Include in ~/.ssh/config'],
    ['vdcsync output --key servers.web-1', 'one server, as JSON'],
  ],
  doctor: [
    ['vdcsync doctor', 'before the first apply, and to find a problem'],
    [
      'vdcsync doctor --probe-writes',
      'also checks whether vdcsync can find out the outcome after a lost answer; sends up to 20 writes',
    ],
  ],
  history: [
    ['vdcsync history servers.web-1', 'the writes of one resource'],
    ['vdcsync history 2026-01-31T12:00:00Z --svg run.svg', 'the writes of one run, with a picture'],
  ],
  rehearse: [['vdcsync rehearse --svg run.svg', 'crashes and faults, with a picture of the run']],
  emulator: [
    ['vdcsync emulator --speed 60', '60 times real speed; set `time_scale: 60` in the API profile'],
    [
      'vdcsync emulator --faults faults.yaml --profile profile.yaml',
      'with faults and undocumented operations',
    ],
  ],
  init: [
    ['vdcsync init', 'writes vdcsync.yaml for the project of the token'],
    ['vdcsync init --emulator', 'a first spec for the emulator'],
  ],
  render: [['vdcsync render project.ts --out vdcsync.yaml', 'then review, plan and apply the YAML file']],
  schema: [['vdcsync schema > vdcsync.schema.json', 'for editors']],
  completion: [
    ['vdcsync completion bash > /etc/bash_completion.d/vdcsync', 'for all users'],
    ['source <(vdcsync completion zsh)', 'for this session'],
  ],
};

/** The text below a command's help, or nothing. */
export function exampleText(command: Command): string {
  const own = examples[command.name()] ?? [];
  if (own.length === 0) return '';
  return ['', 'Examples:', ...rows(own, command)].join('\n');
}

/** The variables that vdcsync reads. A flag has priority over its variable. */
export const environment: readonly (readonly [name: string, meaning: string])[] = [
  ['VDC_BASE_URL', 'URL of the API with its version, such as https://api.example.com/v1'],
  ['VDC_TOKEN', 'the API token'],
  [
    'VDC_TOKEN_FILE',
    'file with the API token, or with several tokens, one per line; or a folder of these files. Read again after a change',
  ],
  ['VDCSYNC_STATE', 'the same as --state'],
  ['VDCSYNC_API_PROFILE', 'the same as --api-profile'],
  ['VDCSYNC_PRICES', 'the same as --prices'],
  [
    'VDCSYNC_HTTP_TOKEN',
    'token that `run` requires for the status page, /status and /metrics; VDCSYNC_HTTP_TOKEN_FILE: a file with it',
  ],
  [
    'VDCSYNC_APPROVE_TOKEN',
    'token that `run` requires for `POST /approve`; VDCSYNC_APPROVE_TOKEN_FILE: a file with it; see docs/how-to/approval.md',
  ],
  [
    'VDCSYNC_WEBHOOK_SECRET',
    'secret of webhooks; while you rotate it: old and new, separated by a comma; VDCSYNC_WEBHOOK_SECRET_FILE: a file with it',
  ],
  [
    'VDCSYNC_GIT_TOKEN',
    'token for --git-url over https; VDCSYNC_GIT_TOKEN_FILE: a file with it; see docs/daemon/git.md',
  ],
  ['VDCSYNC_GIT_USER', `user name for VDCSYNC_GIT_TOKEN (default: ${gitDefaults.user})`],
  ['VDCSYNC_GIT_SSH_KEY_FILE', 'ssh key for --git-url'],
  ['VDCSYNC_GIT_KNOWN_HOSTS_FILE', 'host keys for --git-url over ssh'],
  ['VDCSYNC_GIT_ALLOWED_SIGNERS_FILE', 'ssh keys that must sign each commit'],
  ['VDCSYNC_FLEET_CONFIG', 'the same as --fleet-config of `run`'],
  ['VDCSYNC_ALLOW_EPHEMERAL_STATE', '1: `run` accepts a state folder that disappears with its container'],
  ['VDCSYNC_ALLOW_ENV', 'the same as --allow-env, separated by commas'],
  ['VDCSYNC_TOKEN_FOLDER', 'the same as --token-folder'],
  ['VDCSYNC_TOKEN_ENV_PREFIX', 'the same as --token-env-prefix'],
  [
    'VDCSYNC_COMMIT_STATUS_TOKEN',
    'token for --commit-status; VDCSYNC_COMMIT_STATUS_TOKEN_FILE: a file with it; see docs/how-to/commit-status.md',
  ],
  [
    'VDCSYNC_NOTIFY_URL',
    'URL for the notifications of `run`, as JSON; VDCSYNC_NOTIFY_URL_FILE: a file with it; VDCSYNC_SLACK_URL for Slack',
  ],
  ['VDCSYNC_PUBLIC_URL', 'URL of the status page of `run`, for links in notifications'],
  ['LOG_LEVEL', 'lowest level that is logged: fatal, error, warn, info (default), debug, trace; or silent'],
  ['LOG_FORMAT', 'format of the log: text or json'],
  ['OTEL_…', 'traces, if an OpenTelemetry SDK is loaded; see docs/daemon/notifications.md'],
  ['TRACEPARENT', 'trace that the command continues; not used by `vdcsync run`'],
  ['NO_COLOR', 'no colours'],
];

/** The exit codes of the process. */
export const endings: readonly (readonly [code: number, meaning: string])[] = [
  [0, 'done (apply: or all that is left waits for a window)'],
  [1, 'failed, or you declined the plan'],
  [2, 'with --detailed-exitcode: the plan has changes, or the project has not converged'],
  [3, 'blocked: manual decision needed (plan and status: with --detailed-exitcode)'],
  [64, 'wrong usage'],
  [130, 'interrupted; the next run continues'],
];

/** Files with default names. */
export const files: readonly (readonly [path: string, meaning: string])[] = [
  [defaultSpec, 'the default spec; if it is missing: vdcsync.yml, vdc.yaml, vdc.yml'],
  [defaultState, 'the state: the bindings of keys to live resources, and every write'],
  [
    '.vdcsync/emulator.json',
    'the resources of --emulator; if you delete this file or the state, delete both',
  ],
];

/** The text below the list of commands. */
export function programHelp(program: Command): string {
  return [
    '',
    'Environment:',
    ...rows(environment, program),
    '',
    'Exit codes:',
    ...rows(endings, program),
    '',
    'Files:',
    ...rows(files, program),
    '',
    'Try it without an API:\n  vdcsync init --emulator && vdcsync apply --emulator',
  ].join('\n');
}

/** Names with their meanings, in two columns. */
function rows(pairs: readonly (readonly [string | number, string])[], command: Command): string[] {
  const help = command.createHelp();
  help.prepareContext({ helpWidth: command.configureOutput().getOutHelpWidth?.() ?? 80 });
  const width = Math.max(...pairs.map(([name]) => String(name).length));
  return pairs.map(([name, meaning]) => help.formatItem(String(name), width, meaning, help));
}

/** Wraps a meaning next to its name; if there is little space, below its name. */
export const formatItem: Help['formatItem'] = (name, width, meaning, help) => {
  const { helpWidth = 80, minWidthToWrap } = help;
  const isWide = helpWidth - width - 4 >= minWidthToWrap;
  if (isWide) return Help.prototype.formatItem.call(help, name, width, meaning, help);
  return `  ${name}\n${help.boxWrap(meaning, helpWidth - 6)}`.replaceAll('\n', '\n      ');
};
