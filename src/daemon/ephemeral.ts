import { readFileSync, realpathSync } from 'node:fs';
import { posix } from 'node:path';

/** The same for a folder of this machine. `undefined` also where there is no mount table. */
export function whyFolderEphemeral(folder: string): string | undefined {
  try {
    return whyEphemeral(readFileSync('/proc/self/mountinfo', 'utf8'), realpathSync(folder));
  } catch {
    return undefined;
  }
}

/**
 * The reason why a folder does not survive its container, as far as the mount table shows the reason. Otherwise
 * `undefined`. Without the state the resources still exist, but vdcsync no longer knows which of them it manages.
 *
 * @param mountinfo the text of `/proc/self/mountinfo`
 * @param folder absolute, without symbolic links
 */
export function whyEphemeral(mountinfo: string, folder: string): string | undefined {
  const mount = mountsOf(mountinfo)
    .filter(({ point }) => isWithin(folder, point))
    .sort((a, b) => a.point.length - b.point.length)
    .at(-1);
  if (mount === undefined) return undefined;
  if (mount.type === 'tmpfs' || mount.type === 'ramfs') {
    return `${mount.point} is kept in memory (${mount.type}) and is gone after a restart`;
  }
  if (mount.root.includes('/kubernetes.io~empty-dir/')) {
    return `${mount.point} is an emptyDir, which is deleted with its pod`;
  }
  const layered = mount.type === 'overlay' || mount.type === 'aufs' || mount.type === 'fuse.fuse-overlayfs';
  if (layered && mount.point === '/') {
    return 'it is in the file system of the container, which is deleted with the container';
  }
  return undefined;
}

/** `36 35 98:0 /root /mount/point options - type source options` */
function mountsOf(mountinfo: string) {
  return mountinfo.split('\n').flatMap((line) => {
    const fields = line.split(' ');
    const dash = fields.indexOf('-');
    const [root, point, type] = [fields[3], fields[4], fields[dash + 1]];
    if (dash < 0 || root === undefined || point === undefined || type === undefined) return [];
    return [{ root: plain(root), point: plain(point), type }];
  });
}

function isWithin(folder: string, point: string): boolean {
  const path = posix.relative(point, folder);
  return path === '' || !(path === '..' || path.startsWith('../'));
}

/** The mount table writes spaces and similar characters as octal numbers. */
function plain(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
