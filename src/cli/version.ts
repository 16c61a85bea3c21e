import { readFileSync } from 'node:fs';
import { member } from '../core/json.ts';

/** From the package's own description, which is two folders up in `src` as in `dist`. */
export const version: string = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return String(member(JSON.parse(text), 'version'));
}
