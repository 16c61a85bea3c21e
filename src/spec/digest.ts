import { createHash } from 'node:crypto';
import type { Desired } from '../core/desired.ts';
import { canonicalJson } from '../core/json.ts';

/**
 * `sha256:…` of everything the spec wants, the values of the environment included, and nothing of how it is written: not the
 * order of fields or entries, not the files it is spread over, not positions and doubts.
 */
export function digestOf({
  projectId,
  scope,
  settings,
  resources,
  environment,
}: Omit<Desired, 'digest'>): string {
  const byKey = [...resources].sort((a, b) => (a.key < b.key ? -1 : 1));
  const wanted = byKey.map(({ position: _, cautions: __, fields: ___, ...resource }) => resource);
  const text = canonicalJson({
    version: 1,
    projectId,
    ...(scope === undefined ? {} : { scope }),
    settings,
    resources: wanted,
    ...(environment === undefined ? {} : { environment: [...environment.texts].sort() }),
  });
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
