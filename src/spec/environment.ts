/** The environment as an argument, so that reading a spec has no hidden input. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** `text` with its `${env:NAME}` replaced and the names it used, or the error of one of them. */
export type Expansion =
  | { readonly text: string; readonly used: readonly string[] }
  | { readonly problem: string };

/** The start of a variable, including misspelt ones. With another dollar before it, the text is literal. */
export const marker = /\$?\$\{\s*env\s*[:.]/i;
const variable = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Variables that configure vdcsync and its PostgreSQL client: tokens, secrets, passwords, paths. */
const own = /^(VDC|VDCSYNC)_|^PG[A-Z]+$/;

/** Variables of the pipeline that runs vdcsync. Some of them hold its tokens. */
const pipelines = /^(CI|GITHUB|ACTIONS)_/;

/** Whether vdcsync reads the variable for itself. */
export function isOwnVariable(name: string): boolean {
  return own.test(name);
}

/** Whether no spec may use the variable, even if the operator allows it. */
export function isReservedVariable(name: string): boolean {
  return isOwnVariable(name) || pipelines.test(name);
}

/** The values that a spec may read from its machine. Plain data, so that a worker thread can receive it. */
export interface SpecTrust {
  /** Names of the variables that `${env:NAME}` may use; `any`: all that are not reserved. */
  readonly variables: 'any' | readonly string[];
  /** `any`: every file and every variable. */
  readonly tokens: 'any' | TokenPlaces;
}

/** Where tokens may be that a spec names, as the operator has said. */
export interface TokenPlaces {
  /** Absolute. `token_file` has to be below it; absent: no `token_file`. */
  readonly folder?: string;
  /** Of the variables that `token_env` may name; absent: no `token_env`. */
  readonly prefix?: string;
  /** The base folder of a relative `token_file`. */
  readonly base: string;
}

/** Of a program that uses the library: it has chosen the environment that it passes. */
export const operatorsSpec: SpecTrust = { variables: 'any', tokens: 'any' };

const howToWrite =
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the syntax being explained
  'write `${env:NAME}` with the name of an environment variable, or `$${env:` for the characters themselves';

/** Why a spec may not use the variable; `undefined` where it may. */
function refusal(name: string, { variables, tokens }: SpecTrust): string | undefined {
  if (isOwnVariable(name)) return `\`${name}\` configures vdcsync itself: use a variable of another name`;
  if (pipelines.test(name)) return `\`${name}\` belongs to the pipeline: use a variable of another name`;
  if (variables === 'any') return undefined;
  if (tokens !== 'any' && tokens.prefix !== undefined && name.startsWith(tokens.prefix))
    return `\`${name}\` holds a token, as its name begins with ${tokens.prefix}: use a variable of another name`;
  if (variables.includes(name)) return undefined;
  return `this spec may not use the environment variable \`${name}\`: allow it with --allow-env ${name}`;
}

/** The variables that a spec may use, and no others. */
export function allowedEnvironment(environment: Environment, trust: SpecTrust): Environment {
  const names = trust.variables === 'any' ? Object.keys(environment) : trust.variables;
  return Object.fromEntries(
    names.flatMap((name) => (refusal(name, trust) === undefined ? [[name, environment[name]]] : [])),
  );
}

const unset = 'is not set';

/** Whether an error is about a variable that this machine lacks, and not about the spec itself. */
export function isUnsetVariable(message: string): boolean {
  return message.startsWith('the environment variable `') && message.endsWith(unset);
}

/** Takes `${env:NAME}` from the environment; `$${env:` is an escape. */
export function expand(raw: string, environment: Environment, trust: SpecTrust = operatorsSpec): Expansion {
  const used: string[] = [];
  let text = '';
  let rest = raw;
  for (let found = marker.exec(rest); found !== null; found = marker.exec(rest)) {
    text += rest.slice(0, found.index);
    rest = rest.slice(found.index + found[0].length);
    if (found[0].startsWith('$$')) {
      text += found[0].slice(1);
      continue;
    }
    if (found[0] !== '${env:') return { problem: howToWrite };
    const end = rest.indexOf('}');
    const name = end < 0 ? '' : rest.slice(0, end);
    if (!variable.test(name)) {
      return { problem: howToWrite };
    }
    const problem = refusal(name, trust);
    if (problem !== undefined) return { problem };
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    if (value === undefined) return { problem: `the environment variable \`${name}\` ${unset}` };
    // Pipelines give a missing secret as an empty text.
    if (value === '') return { problem: `the environment variable \`${name}\` is empty` };
    used.push(name);
    text += value;
    rest = rest.slice(end + 1);
  }
  return { text: text + rest, used };
}
