import { Command, type Option } from 'commander';
import { visibleCommands, withApi } from '../src/cli/flags.ts';
import { endings, environment, files } from '../src/cli/help.ts';
import { createProgram } from '../src/cli/program.ts';
import type { Io } from '../src/cli/terminal.ts';
import type { Explained } from '../src/core/codes/explained.ts';
import { warnings } from '../src/core/codes/warnings.ts';
import { apiCodes, questionClass, questions } from '../src/core/codes.ts';
import { containers } from '../src/core/keys.ts';
import { capitalised } from '../src/core/text.ts';
import { commonFields, sections } from '../src/spec/schemas.ts';
import { describeMetrics } from './metrics.ts';
import { projectJsonSchema } from './project-schema.ts';

const generated = '<!-- Made by `npm run generate` from the code: changes here are lost. -->';

/** Every command with its flags, as `--help` has them. Flags that most commands share are shown once. */
export function cliPage(): string {
  const program = createProgram({} as Io, () => undefined);
  const commands = visibleCommands(program);
  return page('The command line', [
    '`vdcsync COMMAND --help` and `man vdcsync-COMMAND` show the same flags, with examples. Each command has the common flags, unless its section says otherwise. A flag of several commands is explained at the first one.',
    `## Common flags\n\n${flagList(withApi(new Command()).options)}\n- \`--format <format>\`: text (default) or json, for each command with a result`,
    ...commandSections(commands),
    `## Environment\n\n${list(environment.filter((each) => !isOfFlag(each)))}\n\nThe same as a flag, which has priority: ${flagVariables}.`,
    `## Exit codes\n\n${list(endings.map(([code, meaning]) => [String(code), meaning]))}`,
    `## Files\n\n${list(files)}`,
  ]);
}

/** The variables that are only another form of a flag. */
const isOfFlag = ([, meaning]: (typeof environment)[number]) =>
  /^the same as --[\w-]+( of `run`)?$/.test(meaning);
const flagVariables = environment
  .filter(isOfFlag)
  .map(([name]) => `\`${name}\``)
  .join(', ');

/** A flag that an earlier command has too is explained there. */
function commandSections(commands: readonly Command[]): string[] {
  const explained = new Set<string>();
  return commands.map((command) => {
    const options = command.options.filter((each) => !each.hidden);
    const section = commandSection(command, options, explained);
    for (const each of options) explained.add(rowOf(each));
    return section;
  });
}

function commandSection(
  command: Command,
  options: readonly Option[],
  explained: ReadonlySet<string>,
): string {
  const usage = [
    command.name(),
    ...command.registeredArguments.map((each) => `<${each.name()}${each.variadic ? '...' : ''}>`),
  ].join(' ');
  return [`## ${usage}`, `${capitalised(command.description())}.`, ...flagSection(options, explained)].join(
    '\n\n',
  );
}

/** The flags of a command. A command that has most of the common flags shows a link in their place. */
function flagSection(options: readonly Option[], explained: ReadonlySet<string>): string[] {
  const common = withApi(new Command()).options;
  const has = (all: readonly Option[], one: Option) => all.some((each) => rowOf(each) === rowOf(one));
  const hasCommon = common.filter((each) => has(options, each)).length >= common.length / 2;
  const named = new Set(options.map(({ flags }) => flags));
  const missing = common.filter(({ flags }) => !named.has(flags)).map(({ long }) => `\`${long}\``);
  const own = hasCommon ? options.filter((each) => !has(common, each)) : options;
  const isKnown = (each: Option) => explained.has(rowOf(each)) || isUsualFormat(each);
  const known = own
    .filter((each) => isKnown(each) && !isUsualFormat(each))
    .map(({ long, short, flags }) => `\`${long ?? short ?? flags}\``);
  const others = own.filter((each) => !isKnown(each));
  const lacks = hasCommon ? missing : ['the common flags'];
  const facts = [
    ...(lacks.length === 0 ? [] : [`without ${lacks.join(', ')}`]),
    ...(known.length === 0 ? [] : [`with ${known.join(', ')}`]),
  ].join(', ');
  return [
    ...(facts === '' ? [] : [`${capitalised(facts)}.`]),
    ...(others.length === 0 ? [] : [flagList(others)]),
  ];
}

function rowOf({ flags, description, argChoices = [] }: Option): string {
  return [flags, description, ...argChoices].join(' ');
}

/** The flag of most commands with a result. */
function isUsualFormat({ long, argChoices }: Option): boolean {
  return long === '--format' && argChoices?.join() === 'text,json';
}

function flagList(options: readonly Option[]): string {
  return list(
    options.map(({ flags, description, argChoices }) => [flags, meaningOf(description, argChoices)]),
  );
}

function meaningOf(description: string, values: readonly string[] | undefined): string {
  return values === undefined ? description : `${description}. Values: ${values.join(', ')}`;
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
  readonly required?: readonly string[] | undefined;
}

/** Every field of the file, as its schema has it. */
export function specPage(): string {
  const { properties = {}, required = [] } = projectJsonSchema() as Schema;
  const parts = Object.entries(properties).flatMap(([name, schema]) => {
    const entry = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    const withDefault =
      name === containers ? (properties.defaults?.properties?.servers?.properties ?? {}) : {};
    const own = name === 'defaults' ? {} : (entry?.properties ?? schema.properties ?? {});
    const all = entry === undefined ? own : without(commonFields, { ...own, ...withDefault });
    const fields = rows({ properties: all, required: schema.required }, '');
    const title = entry === undefined ? name : `${name}.NAME`;
    return [
      [
        `## ${title}`,
        `${schema.description ?? ''}${required.includes(name) ? ' Required.' : ''}`,
        ...entryRules(name),
        ...(fields.length === 0 ? [] : [fieldList(fields)]),
      ].join('\n\n'),
    ];
  });
  return page('Fields of the spec', [spelling, ...parts, commonSection(properties)]);
}

/** The form of the names of entries, and the fields that only a creation needs. */
function entryRules(name: string): string[] {
  const section = sections.find(({ collection }) => collection === name);
  if (section === undefined) return [];
  const { names, oneOf = [], kind } = section;
  const quoted = (fields: readonly string[]) => fields.map((each) => `\`${each}\``).join(', ');
  const needed = kind.entry.neededToCreate ?? [];
  const sizes = oneOf.length === 0 ? '' : `, and the fields of its type (${quoted(oneOf)})`;
  const rule = `Required, unless the entry has \`id\` or \`managed: false\`: ${quoted(needed)}${sizes}.`;
  return [`NAME: ${names.text}.`, ...(needed.length === 0 ? [] : [rule])];
}

function without(names: readonly string[], fields: Readonly<Record<string, Schema>>) {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** The fields that the entries of every map have. The ids of kinds have different forms. */
function commonSection(properties: Readonly<Record<string, Schema>>): string {
  const entries = Object.values(properties).flatMap(({ additionalProperties: entry }) =>
    typeof entry === 'object' ? [entry.properties ?? {}] : [],
  );
  const ids = entries.flatMap(({ id }) => id ?? []);
  const fields = Object.fromEntries(commonFields.map((name) => [name, entries[0]?.[name] ?? {}]));
  return [
    '## Fields of every entry',
    'Each entry under `networks`, `ips`, `isos`, `servers` and `server_images` may also have these fields:',
    fieldList(
      rows({ properties: { ...fields, id: { description: fields.id?.description ?? '', anyOf: ids } } }, ''),
    ),
  ].join('\n\n');
}

const spelling = `The spec is YAML 1.2 (core schema): one document of at most 1 MiB and 32 levels, with at most 1,000 entries in a list. Several files (repeat \`-f\`) form one spec. *Required* in a map means: if the map exists.

These are errors: aliases (\`*base\`), merge keys (\`<<\`), directives (\`%YAML\`), tags outside the core schema, the same name twice in a map. To avoid repetition, use [\`defaults\`, an overlay or a program](../how-to/environments.md).

## Values from the environment

\`\${env:NAME}\` takes the value of the environment variable \`NAME\`, if the command has \`--allow-env NAME\`. Write \`$\${env:\` for the literal characters. It is possible only in the \`url\` of an ISO, and in the \`description\` and the undocumented fields of a firewall rule.

Plans, logs, pages and the state show \`\${env:NAME}\` instead of the value, even if an answer of the API repeats it. Names, ids and statuses of the API stay unchanged. \`vdcsync export\` hides values only with \`-f FILE\`.

The state and a saved plan contain a digest of the values, so a reader can test guesses. Use variables only for values that are hard to guess.`;

/** Settings that are a word, or a map with fields of its own. */
const maps = ['approval', 'suspend'];

function rows({ properties = {}, required = [] }: Schema, prefix: string): string[][] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const path = `${prefix}${name}`;
    const fallback = schema.default === undefined ? '' : ` Default: \`${JSON.stringify(schema.default)}\`.`;
    const needed = required.includes(name) ? ' Required.' : '';
    const isMap = (each: Schema) =>
      each.properties !== undefined && each.type === 'object' && maps.includes(name);
    const inner = schema.properties === undefined ? schema.anyOf?.find(isMap) : schema;
    return [
      [path, kindOfValue(schema), `${schema.description ?? ''}${fallback}${needed}`],
      ...rows(inner ?? {}, `${path}.`),
      ...rows(schema.items ?? {}, `${path}[].`),
    ];
  });
}

function fieldList(fields: readonly (readonly string[])[]): string {
  return fields.map(([path, value, meaning]) => `- \`${path}\` (${value}): ${meaning}`).join('\n');
}

function kindOfValue({ type, enum: words, const: only, anyOf, items }: Schema): string {
  if (words !== undefined) return words.map((each) => `\`${String(each)}\``).join(' or ');
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (anyOf !== undefined)
    return [...new Set(anyOf.flatMap((each) => kindOfValue(each).split(' or ')))].join(' or ');
  if (type === 'array') return `list of ${items === undefined ? 'values' : kindOfValue(items)}`;
  const names: Readonly<Record<string, string>> = {
    object: 'map',
    integer: 'integer',
    boolean: 'boolean',
    string: 'text',
  };
  return [type ?? 'value']
    .flat()
    .map((each) => names[each] ?? each)
    .join(' or ');
}

/** The page about the metrics under `/metrics` of the daemon. */
export function metricsPage(): string {
  const metrics = describeMetrics().map(({ name, type, help, labels }) => {
    const facts = [type, ...labels.map((label) => `\`${label}\``)];
    return `- \`${name}\` (${facts.join(', ')}): ${help}`;
  });
  return page('Metrics', [
    'The daemon (`vdcsync run`) serves these metrics at `/metrics`, and those of its process (`vdcsync_process_…`, `vdcsync_nodejs_…`). [Alerts](../runbook.md)',
    'In parentheses: the type and the labels. **With a folder of projects**, no metric has the label `project`, and each value is a sum over the projects; ages and budgets show the worst project. `--metrics-per-project` gives each project its own series.',
    metrics.join('\n'),
  ]);
}

/** Every code of a blocked operation, a failure or a warning. */
export function codesPage(): string {
  const of = (own: Readonly<Record<string, Explained>>) =>
    sorted(own).map(([code, { meaning }]) => {
      const asks = questionClass(code);
      const kind = asks === undefined ? '' : ` (*${asks}*)`;
      return `- \`${code}\`${kind}: ${meaning}`;
    });
  return page('Codes', [
    'The values of `code` in `plan`, `apply` and `status`. `vdcsync explain CODE` shows the cause, the next step and an example.',
    '## Codes that block an operation',
    'The word in parentheses is [the reason why vdcsync asks you](../safety.md#when-vdcsync-asks-you).',
    of(questions).join('\n'),
    '## Codes of warnings',
    of(warnings).join('\n'),
    '## Codes of the API',
    'Codes of the API appear unchanged.',
    of(apiCodes).join('\n'),
    'The conditions of a project: [conditions](../daemon/run.md#conditions).',
  ]);
}

/** The entries by name, because a reader searches for a name. */
function sorted<Value>(entries: Readonly<Record<string, Value>>): [string, Value][] {
  return Object.entries(entries).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

function page(title: string, sections: readonly string[]): string {
  return `# ${title}\n\n${generated}\n\n${sections.join('\n\n')}\n`;
}

function list(lines: readonly (readonly [name: string, meaning: string])[]): string {
  return lines.map(([name, meaning]) => `- \`${name}\`: ${meaning}`).join('\n');
}
