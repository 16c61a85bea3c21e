import { readFileSync } from 'node:fs';
import type { Command, Option } from 'commander';
import { parse } from 'yaml';
import { codeExamples } from '../../core/code-examples.ts';
import { codes } from '../../core/codes.ts';
import { containers } from '../../core/keys.ts';
import { describeMetrics } from '../../daemon/http/metrics.ts';
import { projectJsonSchema } from '../../spec/json-schema.ts';
import { endings, environment, exampleText, files, visibleCommands } from '../help.ts';
import { createProgram } from '../program.ts';
import type { Io } from '../terminal.ts';

const generated = '<!-- Made by `npm run generate` from the code: changes here are lost. -->';

/** Every command with its flags, as `--help` has them. */
export function cliPage(): string {
  const program = createProgram({} as Io, () => undefined);
  const commands = visibleCommands(program);
  return page('The command line', [
    'Without a command, `vdcsync` prints its help. Each command has `--help`; `man vdcsync` has everything.',
    ...commands.map(commandSection),
    `## Environment\n\n${table(
      ['variable', 'meaning'],
      environment.map(([name, meaning]) => [`\`${name}\``, meaning]),
    )}`,
    `## Exit codes\n\n${table(
      ['code', 'meaning'],
      endings.map(([code, meaning]) => [String(code), meaning]),
    )}`,
    `## Files\n\n${table(
      ['file', 'meaning'],
      files.map(([path, meaning]) => [`\`${path}\``, meaning]),
    )}`,
  ]);
}

function commandSection(command: Command): string {
  const options = command.options.filter((each) => !each.hidden);
  const usage = [command.name(), ...command.registeredArguments.map((each) => `<${each.name()}>`)].join(' ');
  const examples = exampleText(command.name())
    .replace(/^\nExamples:\n/, '')
    .replace(/^ {2}/gm, '');
  return [
    `## ${usage}`,
    `${command.description()}.`,
    ...(options.length === 0 ? [] : [table(['flag', 'meaning'], options.map(optionRow))]),
    ...(examples === '' ? [] : [`\`\`\`sh\n${examples}\n\`\`\``]),
  ].join('\n\n');
}

function optionRow({ flags, description, argChoices }: Option): string[] {
  return [
    `\`${flags}\``,
    argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`,
  ];
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

/** Every field of the file, as its schema has it. */
export function specPage(): string {
  const { properties = {} } = projectJsonSchema() as Schema;
  const sections = Object.entries(properties).flatMap(([name, schema]) => {
    const entry = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    const withDefault =
      name === containers ? (properties.defaults?.properties?.servers?.properties ?? {}) : {};
    const own = name === 'defaults' ? {} : (entry?.properties ?? schema.properties ?? {});
    const fields = rows({ ...own, ...withDefault }, '');
    const title = entry === undefined ? name : `${name}.NAME`;
    return [
      [
        `## ${title}`,
        schema.description ?? '',
        ...(fields.length === 0 ? [] : [table(['field', 'value', 'meaning'], fields)]),
      ].join('\n\n'),
    ];
  });
  return page('The file', [spelling, ...sections]);
}

const spelling = `YAML 1.2, core schema: one document of at most 1 MiB and 32 levels. A name appears only once in a map. Several files (repeat \`-f\`) form one spec.

Each entry is complete, so vdcsync does not accept aliases (\`*base\`, and anchors), merge keys (\`<<\`), directives, and tags that are not in the core schema. To
avoid repetition, use \`defaults\` for servers and an overlay (\`--overlay\`) for each environment. A program can also generate plain YAML or JSON:
\`-f -\` reads standard input.

## Values from the environment

\`\${env:NAME}\` in a text is replaced by the environment variable \`NAME\`. Write \`$\${env:\` for the literal characters. Names, ids and references
cannot use the environment, because every output shows them.

Values from variables are masked: plans, logs, pages and the state show \`\${env:NAME}\`. To recognise a value, the state stores a salted digest. The
digest protects a password, but not a value that is easy to guess, such as a port. The digest of a plan covers the values too, and has no salt,
because the command that reads \`plan.json\` may have no state. So a user who has the file and a plan can test a guess. In a sentence, a value of one or
two characters is masked only if the sentence quotes it. \`vdcsync export\` needs \`-f\` to know the variables.`;

function rows(fields: Readonly<Record<string, Schema>>, prefix: string): string[][] {
  return Object.entries(fields).flatMap(([name, schema]) => {
    const path = `${prefix}${name}`;
    const fallback = schema.default === undefined ? '' : ` Default: \`${JSON.stringify(schema.default)}\`.`;
    const inner =
      schema.properties ??
      schema.anyOf?.find(
        (each) => each.properties !== undefined && each.type === 'object' && name === 'suspend',
      )?.properties ??
      {};
    const items = schema.items?.properties ?? {};
    return [
      [`\`${path}\``, kindOfValue(schema), `${schema.description ?? ''}${fallback}`],
      ...rows(inner, `${path}.`),
      ...rows(items, `${path}[].`),
    ];
  });
}

function kindOfValue({ type, enum: words, const: only, anyOf, items }: Schema): string {
  if (words !== undefined) return words.map((each) => `\`${String(each)}\``).join(' or ');
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (anyOf !== undefined) return [...new Set(anyOf.map(kindOfValue))].join(' or ');
  if (type === 'array') return `list of ${items === undefined ? 'values' : kindOfValue(items)}`;
  const names: Readonly<Record<string, string>> = {
    object: 'map',
    integer: 'whole number',
    boolean: 'true or false',
    string: 'text',
  };
  return [type ?? 'value']
    .flat()
    .map((each) => names[each] ?? each)
    .join(' or ');
}

/** The page about the metrics under `/metrics` of the daemon. */
export function metricsPage(): string {
  const list = describeMetrics().map(({ name, type, help, labels }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(' '),
    help,
  ]);
  return page('Metrics', [
    'The metrics of `GET /metrics` of `vdcsync run`. The metrics of the process itself (`vdcsync_process_…`, `vdcsync_nodejs_…`) are not listed. Counters start at zero with the process.',
    '`project` is the id of the project. With a folder of projects no metric has this label, unless `--metrics-per-project` is given: one series then covers all projects of the process. The value is a sum; for ages, budgets and `vdcsync_last_reconciliation_timestamp_seconds` it is the worst value.',
    table(['metric', 'type', 'labels', 'meaning'], list),
    alerts(),
  ]);
}

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly description: string };
}

/** The rules that a user gives to Prometheus, as a table. */
function alerts(): string {
  const file = new URL('../../../examples/prometheus/vdcsync.rules.yaml', import.meta.url);
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: AlertRule[] }[] };
  const lines = groups
    .flatMap(({ rules }) => rules)
    .map(({ alert, expr, for: duration = '0m', labels, annotations }) => [
      `\`${alert}\``,
      labels.severity,
      `\`${expr}\``,
      duration,
      annotations.description,
    ]);
  return [
    '## Alerts',
    'Add [the rules](../../examples/prometheus/vdcsync.rules.yaml) to `rule_files` of Prometheus. They need a job whose name begins with `vdcsync`. Import [the dashboard](../../examples/grafana/vdcsync.json) into Grafana. The [runbook](../runbook.md) has a section for each alert.',
    table(['alert', 'severity', 'expression', 'for', 'meaning and next step'], lines),
  ].join('\n\n');
}

/** Every code of a blocked operation, a failure or a warning. */
export function codesPage(): string {
  const list = sorted(codes).map(([code, [meaning, todo]]) => [`\`${code}\``, meaning, todo]);
  return page('Codes', [
    'The values of `code` in `plan`, `apply` and `status`. Codes of the API (`insufficient_scope`, `server_busy`, …) appear unchanged. vdcsync handles an unknown code by its HTTP status.',
    table(['code', 'meaning', 'next step'], list),
    '## Examples',
    '`vdcsync explain CODE` prints the same texts. The lines below a situation are alternatives: a command, or lines of the file.',
    ...sorted(codeExamples).map(
      ([code, [situation, ...ways]]) =>
        `### \`${code}\`\n\n${situation}${ways.length === 0 ? '' : `\n\n\`\`\`sh\n${ways.join('\n')}\n\`\`\``}`,
    ),
  ]);
}

/** The entries by name, because a reader searches for a name. */
function sorted<Value>(entries: Readonly<Record<string, Value>>): [string, Value][] {
  return Object.entries(entries).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

function page(title: string, sections: readonly string[]): string {
  return `# ${title}\n\n${generated}\n\n${sections.join('\n\n')}\n`;
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]) =>
    `| ${cells.map((each) => each.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [row(head), row(head.map(() => '---')), ...lines.map(row)].join('\n');
}
