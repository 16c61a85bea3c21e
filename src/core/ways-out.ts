import { shellWord } from './shell.ts';

/** What ends the telling of a gone server's backups. */
export function waysWithBackups(server: string): readonly string[] {
  return [`vdcsync ignore ${shellWord(server)} (once they are deleted in the client area)`];
}

/** What an operator may say of an idle address that is not this file's. */
export function waysWithIdle(id: string, address: string): readonly string[] {
  return [
    `write \`spare: {id: ${id}}\` under \`ips\` (to have it managed)`,
    `vdcsync ignore ${shellWord(address)} (if it is somebody else's)`,
  ];
}

/** What ends that something is left alone as somebody else's. */
export function waysWithLeftAlone(): readonly string[] {
  return ["vdcsync ignore --undo ID (for a server's id, or an address, that is not)"];
}
