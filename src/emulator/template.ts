import { invalid } from './problem.ts';
import type { Profile } from './profile.ts';

/**
 * Reads a body by the template of an undocumented operation: `{name}` stands
 * for any value, everything else must be equal. Throws 422 otherwise.
 */
export function bindTemplate(template: unknown, body: unknown, at = ''): Record<string, unknown> {
  const name = typeof template === 'string' ? /^\{(\w+)\}$/.exec(template)?.[1] : undefined;
  if (name !== undefined) return { [name]: body };
  if (!isMap(template)) {
    if (JSON.stringify(template) === JSON.stringify(body)) return {};
    throw invalid({ name: at || 'body', reason: `must be ${JSON.stringify(template)}` });
  }
  if (!isMap(body)) throw invalid({ name: at || 'body', reason: 'must be an object' });
  const faults = [
    ...Object.keys(body)
      .filter((key) => !Object.hasOwn(template, key))
      .map((key) => ({ name: at === '' ? key : `${at}.${key}`, reason: 'is not a known field' })),
    ...Object.keys(template)
      .filter((key) => !Object.hasOwn(body, key))
      .map((key) => ({ name: at === '' ? key : `${at}.${key}`, reason: 'is required' })),
  ];
  if (faults.length > 0) throw invalid(...faults);
  return Object.assign(
    {},
    ...Object.entries(template).map(([key, part]) =>
      bindTemplate(part, body[key], at === '' ? key : `${at}.${key}`),
    ),
  );
}

/** The template under `public_ipv4` that names an address, or null if the profile does not show it. */
export function namedAddressTemplate(profile: Profile): unknown {
  const body = profile.operations.named_address?.body;
  if (body === undefined) return null;
  return isMap(body) && Object.hasOwn(body, 'public_ipv4') ? body.public_ipv4 : body;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
