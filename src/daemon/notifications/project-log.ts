import type { DaemonLogger } from '../ports.ts';

/** A log that adds the project to every line, because several projects share one process. */
export function logOf(project: number, log: DaemonLogger): DaemonLogger {
  const at =
    (level: keyof DaemonLogger): DaemonLogger['info'] =>
    (fields, message) =>
      log[level]({ project, ...fields }, message);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Logs warnings at level debug while their cause has already been reported. */
export function detailsWhile(isReported: () => boolean, log: DaemonLogger): DaemonLogger {
  return { ...log, warn: (fields, message) => log[isReported() ? 'debug' : 'warn'](fields, message) };
}
