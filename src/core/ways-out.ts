import { edit, type Remedy, run } from './remedy.ts';

/** Ends the warning about the backups of a deleted server. */
export function waysWithBackups(server: string): readonly Remedy[] {
  return [run('ignore', [server], { when: 'once the backups are deleted in the client area' })];
}

/** The choices for an idle address that is unmanaged. */
export function waysWithIdle(id: string, address: string): readonly Remedy[] {
  return [
    edit('ips', { set: { [`spare-${id}`]: { id: Number(id) } }, when: 'to manage the address' }),
    run('ignore', [address], { when: 'if the address does not belong to this file' }),
  ];
}

/** Ends that a resource is ignored. */
export function waysWithIgnored(): readonly Remedy[] {
  return [run('ignore', ['--undo', 'ID'], { when: 'with the id of a server, or an address' })];
}
