/** Examples below the help of each command: those that people come for. */
export const examples: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  validate: [['vdcsync validate -f shop.yaml', 'every error at once, offline']],
  plan: [
    ['vdcsync plan', 'what would be done'],
    ['vdcsync plan --out plan.json', 'and keep it, for apply --plan plan.json'],
    ['vdcsync plan --format markdown --detailed-exitcode', 'for a merge request: 2 where there are changes'],
    ['vdcsync plan --target servers.web-1', 'of one server and what it needs'],
    ['vdcsync plan --format svg --out plan.svg', 'as a picture'],
  ],
  apply: [
    ['vdcsync apply', 'shows the plan, asks, carries it out'],
    ['vdcsync apply --yes --format json', 'in CI: one JSON object a line'],
    ['vdcsync apply --yes --plan plan.json', 'exactly the plan that was reviewed'],
    [
      'vdcsync apply --yes --timeout 30m',
      'no longer, though cards of a GPU server are waited for up to a day',
    ],
    ['vdcsync apply --emulator', 'without an API'],
  ],
  destroy: [
    ['vdcsync destroy --dry-run', 'what would go'],
    ['vdcsync destroy', "asks for the project's name"],
    ['vdcsync destroy --max-deletions 5', 'where settings.max_deletions is less'],
  ],
  run: [
    ['vdcsync run -f vdcsync.yaml', 'watches the file'],
    ['vdcsync run --git-url https://git.example.com/shop.git', 'watches a branch'],
  ],
  export: [['vdcsync export --out vdcsync.yaml', 'take over a project that is there']],
  adopt: [['vdcsync adopt servers.web-1 2001', 'server 2001 is the one that the file calls web-1']],
  forget: [['vdcsync forget servers.old', 'it has left the file, and stays in the project']],
  ignore: [
    ['vdcsync ignore 2001 203.0.113.10', 'of another team: creating goes on beside them'],
    ['vdcsync ignore --undo 2001', 'it is not: creating waits until it is adopted or ignored'],
    ['vdcsync ignore 2002', 'a server that is gone: the backups it left are deleted, or known'],
  ],
  resolve: [
    ['vdcsync resolve servers.web-1 --adopt 2001', 'it was created, and is server 2001'],
    ['vdcsync resolve servers.web-1 --absent', 'it was not created: the next apply does'],
  ],
  'approve-commit': [
    ['vdcsync approve-commit 9f2c41d', "with the fleet's URL in VDCSYNC_STATE: its deletions are meant"],
  ],
  status: [['vdcsync status --format json', 'what is managed, blocked, billed and idle']],
  output: [
    ['vdcsync output --format ansible --out inventory.yaml', 'for ansible-playbook -i inventory.yaml'],
    ['vdcsync output --format ssh-config --out ~/.ssh/vdc.conf', 'for Include in ~/.ssh/config'],
    ['vdcsync output --key servers.web-1', 'one server, as JSON'],
  ],
  doctor: [
    ['vdcsync doctor', 'before the first apply, and when something is odd'],
    ['vdcsync doctor --probe-writes', 'whether a lost answer settles itself; takes up to 20 writes'],
  ],
  history: [['vdcsync history --key servers.web-1', 'every write that was sent for one resource']],
  rehearse: [['vdcsync rehearse --svg run.svg', 'a crash at every step, and no duplicate']],
  emulator: [
    [
      'vdcsync emulator --speed 60',
      'a minute of the API in a second; wants `time_scale: 60` in the API profile',
    ],
    [
      'vdcsync emulator --faults faults.yaml --profile profile.yaml',
      'with faults and undocumented operations',
    ],
  ],
  init: [
    ['vdcsync init', 'asks, and writes vdcsync.yaml'],
    ['vdcsync init --yes --emulator', 'a first file to try'],
  ],
  schema: [['vdcsync schema > vdcsync.schema.json', 'for editors']],
  completion: [['vdcsync completion bash > /etc/bash_completion.d/vdcsync', 'or zsh, fish']],
};

/** The text below a command's help, or nothing. */
export function exampleText(name: string): string {
  const own = examples[name] ?? [];
  if (own.length === 0) return '';
  const width = Math.max(...own.map(([call]) => call.length));
  return `\nExamples:\n${own.map(([call, does]) => `  ${call.padEnd(width)}  ${does}`).join('\n')}`;
}

/** What is taken from the environment. Flags come before it. */
export const environment: readonly (readonly [name: string, meaning: string])[] = [
  ['VDC_BASE_URL', 'where the API is; ends in its version, such as /v1'],
  ['VDC_TOKEN', 'the API token, or'],
  ['VDC_TOKEN_FILE', 'a file that holds it (read again when it changes)'],
  ['VDCSYNC_STATE', 'like --state'],
  ['VDCSYNC_API_PROFILE', 'like --api-profile'],
  ['VDCSYNC_PRICES', 'like --prices'],
  ['VDCSYNC_HTTP_TOKEN', 'asked for by status, metrics and page of run (or …_FILE)'],
  ['VDCSYNC_WEBHOOK_SECRET', 'of POST /hooks/FORGE; two, separated by a comma, while rotating (or …_FILE)'],
  ['VDCSYNC_GIT_TOKEN', 'for --git-url over https (or …_FILE); more in docs/operating.md'],
  ['VDCSYNC_ALLOW_ENV', 'like --allow-env of run, separated by commas'],
  ['VDCSYNC_TOKEN_FOLDER', 'like --token-folder of run'],
  ['VDCSYNC_TOKEN_ENV_PREFIX', 'like --token-env-prefix of run'],
  ['VDCSYNC_NOTIFY_URL', 'where run tells changes, as JSON (or …_FILE); VDCSYNC_SLACK_URL for Slack'],
  ['VDCSYNC_PUBLIC_URL', 'the address of the status page of run: notifications link to it'],
  ['LOG_LEVEL', 'silent, fatal, error, warn, info (default), debug, trace'],
  ['LOG_FORMAT', 'text, json'],
  ['OTEL_…', 'traces, where an OpenTelemetry SDK is loaded; see docs/operating.md'],
  ['TRACEPARENT', 'the span that a trace continues, but not that of run'],
  ['NO_COLOR', 'no colours'],
];

/** What the process ends with. */
export const endings: readonly (readonly [code: number, meaning: string])[] = [
  [0, 'done'],
  [1, 'failed, or declined at the question'],
  [2, 'with --detailed-exitcode: a plan has changes, a project has not converged'],
  [3, 'blocked: something needs an operator (plan and status: with --detailed-exitcode)'],
  [64, 'wrong usage'],
  [130, 'interrupted; the next run goes on'],
];

/** Files that are there without being named. */
export const files: readonly (readonly [path: string, meaning: string])[] = [
  ['vdcsync.yaml', 'the spec, where no -f names one; then vdcsync.yml, vdc.yaml, vdc.yml'],
  ['.vdcsync/state.db', 'the state: which live resource a key stands for, and every write ever sent'],
  ['.vdcsync/emulator.json', 'the world of --emulator; with the state deleted, it begins anew'],
];

/** The text below the list of commands. */
export function programHelp(): string {
  return [
    '',
    'Environment:',
    ...rows(environment),
    '',
    'Exit codes:',
    ...rows(endings.map(([code, meaning]) => [String(code), meaning])),
    '',
    'Files:',
    ...rows(files),
    '',
    'Try it without an API:  vdcsync init --yes --emulator && vdcsync apply --emulator',
  ].join('\n');
}

function rows(pairs: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`);
}
