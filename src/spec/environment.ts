/** The environment as an argument, so that reading a spec has no hidden input. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** `text` with its `${env:NAME}` replaced, or what is wrong with one of them. */
export type Expansion =
  | { readonly text: string; readonly used: readonly string[] }
  | { readonly problem: string };

/** What begins a variable, or was meant to; with another dollar before it, it stands for itself. */
const marker = /\$?\$\{\s*env\s*[:.]/i;
const variable = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Tokens and webhook secrets would end in plans, in the state and at the API. */
const secret = /^(VDC|VDCSYNC)_.*(TOKEN|SECRET)|^VDC_TOKEN/;

const howToWrite =
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the syntax being explained
  'write `${env:NAME}` with the name of an environment variable, or `$${env:` for the characters themselves';

/** Takes `${env:NAME}` from the environment; `$${env:` is an escape. */
export function expand(raw: string, environment: Environment): Expansion {
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
    if (secret.test(name))
      return { problem: `\`${name}\` is a secret of vdcsync's own, which no resource is given` };
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    if (value === undefined) return { problem: `the environment variable \`${name}\` is not set` };
    used.push(name);
    text += value;
    rest = rest.slice(end + 1);
  }
  return { text: text + rest, used };
}
