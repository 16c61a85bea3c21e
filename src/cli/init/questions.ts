import { stringify } from 'yaml';
import { SpecError } from '../../core/errors.ts';
import { loadSpec } from '../../spec/load.ts';

/** Asks one question; an empty answer is the default. `check` returns the error of an answer. */
export type Ask = (
  question: string,
  fallback: string,
  check?: (answer: string) => string | undefined,
) => Promise<string>;

/** The server types and images on sale, if the API was asked. */
export interface ServersOnSale {
  readonly types: readonly {
    readonly name: string;
    readonly mode: string;
    readonly images: readonly string[];
    readonly packages: readonly string[];
  }[];
}

/** The answers, as text. A dash is none. */
interface Answers {
  readonly project: string;
  /** Whether something other than vdcsync creates resources in the project. */
  readonly others: string;
  readonly network: string;
  readonly cidr: string;
  readonly server: string;
  readonly address: string;
  readonly type: string;
  readonly image: string;
  readonly plan: string;
  readonly package: string;
  readonly cores: string;
  readonly memory: string;
  readonly disk: string;
  readonly keys: string;
  readonly ports: string;
}

type Check = (answer: string) => string | undefined;

/** Interviews an operator and returns the text of a first file. Each answer is checked before the next question. */
export async function interview(
  ask: Ask,
  projectId: number | undefined,
  offer: ServersOnSale | undefined,
): Promise<string> {
  let answers = defaultsFor(projectId, offer);
  const modeOf = (name: string) => offer?.types.find((each) => each.name === name)?.mode;
  const put = async (name: keyof Answers, question: string, form: Check) => {
    const fallback = name === 'project' && projectId === undefined ? '' : answers[name];
    const check: Check = (answer) =>
      form(answer) ?? problemOf(fileText({ ...answers, [name]: answer }, modeOf));
    answers = { ...answers, [name]: await ask(question, fallback, check) };
  };
  await put('project', 'Id of the project', wholeNumber);
  await put(
    'others',
    'Does anything else create resources in this project (a team, a script, another file)',
    yesOrNo,
  );
  await put('network', 'Name of a private network (- for none)', anything);
  if (answers.network !== '-') await put('cidr', `Subnet of ${answers.network}`, anything);
  await put('server', 'Name of a first server (- for none)', anything);
  if (answers.server === '-') return fileText(answers, modeOf);
  await put('address', `Public address for ${answers.server} (billed)`, yesOrNo);
  const names = offer?.types.map(({ name }) => name) ?? [];
  await put('type', `Server type${listed(names)}`, oneOf(names));
  const found = offer?.types.find(({ name }) => name === answers.type);
  const { images = [], packages = [] } = found ?? {};
  answers = { ...answers, image: images[0] ?? answers.image, package: packages[0] ?? answers.package };
  await put('image', `Image${listed(images)}`, oneOf(images));
  if (found?.mode === 'plans') await put('plan', 'Id of the plan', wholeNumber);
  else if (found?.mode === 'fixed') await put('package', `Package${listed(packages)}`, oneOf(packages));
  else {
    await put('cores', 'Cores', wholeNumber);
    await put('memory', 'Memory in MB', wholeNumber);
    await put('disk', 'Disk in GB', wholeNumber);
  }
  await put('keys', 'Ids of SSH keys, as the client area shows them (- for none)', idList);
  if (hasAddress(answers)) await put('ports', 'TCP ports that are open to the internet', portList);
  return fileText(answers, modeOf);
}

function defaultsFor(projectId: number | undefined, offer: ServersOnSale | undefined): Answers {
  const [first] = offer?.types ?? [];
  return {
    ...{ project: String(projectId ?? 1), others: 'yes' },
    ...{ network: 'backend', cidr: '10.20.0.0/24', server: 'web-1', address: 'yes' },
    ...{ type: first?.name ?? 'sliders-1', image: first?.images[0] ?? 'ubuntu-24.04' },
    ...{ plan: '51', package: first?.packages[0] ?? 'none', cores: '2', memory: '4096', disk: '40' },
    ...{ keys: '-', ports: '80,443' },
  };
}

/** The error of the file that results from the answers so far, with defaults for the rest. */
function problemOf(text: string): string | undefined {
  try {
    loadSpec([{ file: 'vdcsync.yaml', text }], {});
    return undefined;
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    return error.diagnostics[0]?.message;
  }
}

/** The JSON Schema of the spec, next to it. */
export const schemaFile = 'vdcsync.schema.json';

const head = [
  // Editors with yaml-language-server check and complete the file by this line.
  `# yaml-language-server: $schema=./${schemaFile}`,
  '# The resources of this project. `vdcsync plan` shows the changes, and `vdcsync apply` makes them.',
];

function fileText(answers: Answers, modeOf: (type: string) => string | undefined): string {
  const { project, network, cidr, server, type, image } = answers;
  const lines = [...head, 'version: 1', '', `project: { id: ${project} }`, ...settingsLines(answers), ''];
  if (network !== '-') lines.push('networks:', `  ${scalar(network)}: { cidr: ${scalar(cidr)} }`, '');
  if (server === '-') return lines.join('\n');
  const address = hasAddress(answers);
  if (address) lines.push('ips:', `  ${scalar(server)}: {}`, '');
  lines.push('servers:', `  ${scalar(server)}:`, `    server_type: ${scalar(type)}`);
  lines.push(`    image: ${scalar(image)}`, ...sizeLines(answers, modeOf(type)), keyLine(answers.keys));
  if (address) lines.push(`    public_ipv4: { ip: ${scalar(server)} }`);
  if (network !== '-') lines.push(`    network_interfaces: [${scalar(network)}]`);
  if (address) lines.push(...firewallLines(answers.ports));
  return `${lines.join('\n')}\n`;
}

/** An unconfirmed purchase is adopted without a question only if no other user or program can have made it. */
function settingsLines({ others }: Answers): string[] {
  return isYes(others)
    ? ['# settings: { exclusive: true }  # if only vdcsync creates resources in this project']
    : ['settings: { exclusive: true }  # only vdcsync creates resources in this project'];
}

/** The text as a YAML scalar in one line, with quotes where YAML would read something else. */
function scalar(text: string): string {
  return stringify([text], { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 })
    .trimEnd()
    .slice(1, -1);
}

function firewallLines(ports: string): string[] {
  return [
    '    firewall:',
    '      enabled: true',
    '      policy_in: drop',
    '      rules:',
    `        - { direction: in, action: accept, enabled: true, protocol: tcp, destination_port: "${ports}" }`,
  ];
}

/** Only creation installs SSH keys: a server without a key is replaced to get one. */
function keyLine(keys: string): string {
  return keys === '-'
    ? '    # ssh_keys: [101]  # ids from the client area; used only when the server is created'
    : `    ssh_keys: [${keys}]`;
}

function sizeLines(answers: Answers, mode: string | undefined): string[] {
  if (mode === 'plans') return [`    plan_id: ${answers.plan}`];
  if (mode === 'fixed') return [`    gpu_package: ${scalar(answers.package)}`];
  const { cores, memory, disk } = answers;
  return [`    cores: ${cores}`, `    memory_mb: ${memory}`, `    disk_gb: ${disk}`];
}

function hasAddress({ address }: Answers): boolean {
  return isYes(address);
}

function isYes(answer: string): boolean {
  return /^y/i.test(answer);
}

function listed(choices: readonly string[]): string {
  return choices.length === 0 ? '' : ` (${choices.join(', ')})`;
}

function oneOf(choices: readonly string[]): Check {
  return (answer) =>
    choices.length === 0 || choices.includes(answer) ? undefined : `answer one of: ${choices.join(', ')}`;
}

/** Accepts any answer: the check of the whole file finds its errors. */
function anything(): undefined {
  return undefined;
}

function yesOrNo(answer: string): string | undefined {
  return /^(y|yes|n|no)$/i.test(answer) ? undefined : 'answer yes or no';
}

function wholeNumber(answer: string): string | undefined {
  return /^[1-9]\d{0,14}$/.test(answer) ? undefined : 'a whole number from 1';
}

function idList(answer: string): string | undefined {
  return /^(-|[1-9]\d*( *, *[1-9]\d*)*)$/.test(answer) ? undefined : 'ids with commas between them, or -';
}

function portList(answer: string): string | undefined {
  const ports = answer.split(',');
  return ports.every((port) => /^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535)
    ? undefined
    : 'ports from 1 to 65535 with commas between them, such as 80,443';
}
