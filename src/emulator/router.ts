import type { Context, Route, RoutedCall } from './call.ts';
import { Refusal } from './problem.ts';

/** An operation that shows a part of the world. */
export function shows(
  name: string,
  path: string,
  view: (context: Context) => unknown,
  query: readonly string[] = [],
): Route {
  return { name, method: 'GET', path, query, handle: (context) => ({ status: 200, data: view(context) }) };
}

/** Finds the operation. Throws 404, or 405 with `Allow` where only the method is wrong. `@source API §4` */
export function findRoute(routes: readonly Route[], method: string, path: string): RoutedCall {
  const here = routes.flatMap((route) => {
    const params = matchPath(route.path, path);
    return params === null ? [] : [{ route, params }];
  });
  const found = here.find(({ route }) => route.method === method);
  if (found !== undefined) return found;
  if (here.length === 0) throw new Refusal(404, 'not_found', 'The path does not exist.');
  const allow = [...new Set(here.map(({ route }) => route.method))].sort().join(', ');
  throw new Refusal(405, 'method_not_allowed', `Allowed: ${allow}.`, { headers: { allow } });
}

/** The parameters of a path that fits the template, or null. */
export function matchPath(template: string, path: string): Record<string, string> | null {
  // Each request is compared with all templates, and this check excludes most of them.
  const literal = template.indexOf('{');
  if (literal === -1) return template === path ? {} : null;
  if (!path.startsWith(template.slice(0, literal))) return null;
  const wanted = partsOf(template);
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, { text, name }] of wanted.entries()) {
    const value = given[index] ?? '';
    if (name === undefined) {
      if (text !== value) return null;
    } else {
      const decoded = decode(value);
      if (decoded === null || decoded === '') return null;
      params[name] = decoded;
    }
  }
  return params;
}

interface Part {
  readonly text: string;
  /** The name of the parameter, if the segment is a parameter. */
  readonly name: string | undefined;
}

const partsByTemplate = new Map<string, readonly Part[]>();

function partsOf(template: string): readonly Part[] {
  const found =
    partsByTemplate.get(template) ??
    template.split('/').map((text) => ({ text, name: /^\{(\w+)\}$/.exec(text)?.[1] }));
  partsByTemplate.set(template, found);
  return found;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
