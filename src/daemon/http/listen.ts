/** Where the daemon listens. */
export interface Listen {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** `127.0.0.1:9464`, `[::1]:9464`, `:9464` (every address), `9464` (loopback); `undefined` where it is none of them. */
export function parseListen(text: string): Listen | undefined {
  const parts = /^(?:(?:\[([0-9a-fA-F:]+)\]|([^\s:[\]/]*)):)?(\d{1,5})$/.exec(text);
  if (parts === null) return undefined;
  const [, six, name, digits] = parts;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (six !== undefined) return { host: six, port };
  if (name === '') return { host: '::', port };
  return { host: name ?? '127.0.0.1', port };
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: Listen): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
