import { edit, type Remedy, run } from './remedy.ts';

/** What ends the telling of a gone server's backups. */
export function waysWithBackups(server: string): readonly Remedy[] {
  return [run('ignore', [server], { when: 'once they are deleted in the client area' })];
}

/** What an operator may say of an idle address that is not this file's. */
export function waysWithIdle(id: string, address: string): readonly Remedy[] {
  return [
    edit('ips', { set: { spare: { id: Number(id) } }, when: 'to have it managed' }),
    run('ignore', [address], { when: 'if this file does not manage it' }),
  ];
}

/** What ends that an object is ignored. */
export function waysWithIgnored(): readonly Remedy[] {
  return [run('ignore', ['--undo', 'ID'], { when: 'with the id of a server, or an address' })];
}
