/** Asks one question; an empty answer is the default. `check` gives what is wrong with an answer. */
export type Ask = (
  question: string,
  fallback: string,
  check?: (answer: string) => string | undefined,
) => Promise<string>;

/** What is on sale, where the API was asked. */
export interface Offer {
  readonly types: readonly {
    readonly name: string;
    readonly mode: string;
    readonly images: readonly string[];
    readonly packages: readonly string[];
  }[];
}

/** Interviews a person and gives the text of a first file. */
export async function interview(
  ask: Ask,
  projectId: number | undefined,
  offer: Offer | undefined,
): Promise<string> {
  const project = await ask(
    'Id of the project',
    projectId === undefined ? '' : String(projectId),
    wholeNumber,
  );
  const network = await ask('Name of a private network (- for none)', 'backend', named);
  const cidr = network === '-' ? '' : await ask('Its subnet', '10.20.0.0/24', subnet);
  const server = await ask('Name of a first server (- for none)', 'web-1', named);
  const lines = [...head, 'version: 1', '', `project: { id: ${project} }`, ''];
  if (network !== '-') lines.push('networks:', `  ${network}: { cidr: ${cidr} }`, '');
  if (server === '-') return lines.join('\n');
  const address = await yesNo(ask, 'Shall it have a public address, which is billed', 'yes');
  if (address) lines.push('ips:', `  ${server}: {}`, '');
  lines.push('servers:', `  ${server}:`, ...(await serverLines(ask, offer)));
  if (address) lines.push(`    public_ipv4: { ip: ${server} }`);
  if (network !== '-') lines.push(`    network_interfaces: [${network}]`);
  if (address)
    lines.push(...firewallLines(await ask('TCP ports that are open to everybody', '22,443', portList)));
  return `${lines.join('\n')}\n`;
}

const head = [
  '# What this project should have. `vdcsync plan` shows what would be done, and `vdcsync apply` does it.',
  '# `vdcsync schema > vdcsync.schema.json` gives editors completion: point yaml-language-server at it.',
];

function firewallLines(ports: string): string[] {
  return [
    '    firewall:',
    '      enabled: true',
    '      policy_in: drop',
    '      rules:',
    `        - { direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "${ports}" }`,
  ];
}

async function serverLines(ask: Ask, offer: Offer | undefined): Promise<string[]> {
  const names = offer?.types.map(({ name }) => name) ?? [];
  const type = await ask(`Server type${listed(names)}`, names[0] ?? 'sliders-1', oneOf(names));
  const found = offer?.types.find(({ name }) => name === type);
  const images = found?.images ?? [];
  const image = await ask(`Image${listed(images)}`, images[0] ?? 'ubuntu-24.04', oneOf(images));
  const sizes = await sizeLines(ask, found);
  const keys = await ask('Ids of SSH keys, as the client area shows them (- for none)', '-', idList);
  return [`    server_type: ${type}`, `    image: ${image}`, ...sizes, keyLine(keys)];
}

/** Only creation puts keys in: a server without one is made anew for it. */
function keyLine(keys: string): string {
  return keys === '-'
    ? '    # ssh_keys: [101]  # ids from the client area; they are put in at creation alone'
    : `    ssh_keys: [${keys}]`;
}

async function sizeLines(ask: Ask, found: Offer['types'][number] | undefined): Promise<string[]> {
  if (found?.mode === 'plans') return [`    plan_id: ${await ask('Id of the plan', '51', wholeNumber)}`];
  if (found?.mode === 'fixed') {
    const sold = found.packages;
    return [`    gpu_package: ${await ask(`Package${listed(sold)}`, sold[0] ?? '', oneOf(sold))}`];
  }
  return [
    `    cores: ${await ask('Cores', '2', wholeNumber)}`,
    `    memory_mb: ${await ask('Memory in MB', '4096', wholeNumber)}`,
    `    disk_gb: ${await ask('Disk in GB', '40', wholeNumber)}`,
  ];
}

async function yesNo(ask: Ask, question: string, fallback: 'yes' | 'no'): Promise<boolean> {
  const check = (answer: string) => (/^(y|yes|n|no)$/i.test(answer) ? undefined : 'answer yes or no');
  return /^y/i.test(await ask(question, fallback, check));
}

function listed(choices: readonly string[]): string {
  return choices.length === 0 ? '' : ` (${choices.join(', ')})`;
}

function oneOf(choices: readonly string[]) {
  return (answer: string) =>
    choices.length === 0 || choices.includes(answer) ? undefined : `one of: ${choices.join(', ')}`;
}

function wholeNumber(answer: string): string | undefined {
  return /^[1-9]\d{0,14}$/.test(answer) ? undefined : 'a whole number from 1';
}

function named(answer: string): string | undefined {
  return answer === '-' || /^[A-Za-z0-9][A-Za-z0-9_-]{0,29}$/.test(answer)
    ? undefined
    : 'up to 30 letters, digits, underscores or hyphens';
}

function subnet(answer: string): string | undefined {
  return /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/.test(answer) ? undefined : 'a subnet such as 10.20.0.0/24';
}

function idList(answer: string): string | undefined {
  return /^(-|[1-9]\d*( *, *[1-9]\d*)*)$/.test(answer) ? undefined : 'ids with commas between them, or -';
}

function portList(answer: string): string | undefined {
  return /^\d{1,5}(,\d{1,5})*$/.test(answer) ? undefined : 'ports with commas between them, such as 22,443';
}
