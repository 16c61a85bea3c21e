import type { DaemonLogger } from '../ports.ts';

/** A log whose every line says which project it is of: several share one process. */
export function logOf(project: number, log: DaemonLogger): DaemonLogger {
  const at =
    (level: keyof DaemonLogger): DaemonLogger['info'] =>
    (fields, message) =>
      log[level]({ project, ...fields }, message);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** With warnings as details for as long as what they are about has been told. */
export function detailsWhile(isTold: () => boolean, log: DaemonLogger): DaemonLogger {
  return { ...log, warn: (fields, message) => log[isTold() ? 'debug' : 'warn'](fields, message) };
}
