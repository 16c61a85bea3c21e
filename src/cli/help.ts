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
  ignore: [['vdcsync ignore 2001 203.0.113.10', 'of another team: creating goes on beside them']],
  resolve: [
    ['vdcsync resolve servers.web-1 --adopt 2001', 'it was created, and is server 2001'],
    ['vdcsync resolve servers.web-1 --absent', 'it was not created: the next apply does'],
  ],
  status: [['vdcsync status --format json', 'what is managed, blocked, billed and idle']],
  doctor: [['vdcsync doctor', 'before the first apply, and when something is odd']],
  history: [['vdcsync history --key servers.web-1', 'every write that was sent for one resource']],
  rehearse: [['vdcsync rehearse --svg run.svg', 'a crash at every step, and no duplicate']],
  emulator: [
    ['vdcsync emulator --speed 60', 'a minute of the API in a second'],
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
