import { edit, outside, type Remedy, run } from './remedy.ts';

/** Ends the warning about the backups of a deleted server. */
export function waysWithBackups(server: string): readonly Remedy[] {
  return [
    outside('in the client area, delete the backups that you do not need', {
      when: 'to end this report',
      next: [run('ignore', [server])],
    }),
  ];
}

/** The choices for an idle address that is unmanaged. */
export function waysWithIdle(id: string, address: string): readonly Remedy[] {
  return [
    edit('ips', {
      set: { [`spare-${id}`]: { id: Number(id) } },
      when: 'to let vdcsync manage the address, under a name of your choice',
    }),
    run('ignore', [address], { when: 'if it is not of this spec: it stays billed' }),
    outside('release it in the client area, if no user needs it'),
  ];
}

/** Ends that a resource is ignored. */
export function waysWithIgnored(): readonly Remedy[] {
  return [run('ignore', ['--undo', 'ID'], { when: 'with the id of a server, or an address' })];
}
