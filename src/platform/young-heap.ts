import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the part of the heap for new objects as small as it is now, in this thread and in those that start later.
 * Otherwise a burst of work, such as reading a large spec, lets it grow up to 48 MiB, and a process that then waits for
 * hours hardly gives any of that back. Collections become more frequent, and each is shorter.
 */
export function keepYoungHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
