import { readdirSync, readFileSync } from 'node:fs';

/** User and system time of a process, in s; 0 for one that is gone. */
export function cpuSeconds(pid: number | undefined): number {
  const { own } = statOf(pid) ?? { own: 0 };
  return own;
}

/** Resident memory of a process, in MB. */
export function rssMb(pid: number | undefined): number {
  try {
    const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kb) / 1024);
  } catch {
    return 0;
  }
}

/** CPU time of the PostgreSQL servers that this process has started, in s. Connections that have ended count too. */
export function postgresCpuSeconds(): number {
  const all = new Map(
    readdirSync('/proc').flatMap((name) => {
      const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
      return stat === undefined ? [] : [[Number(name), stat] as const];
    }),
  );
  const isOurs = (pid: number): boolean => {
    const parent = all.get(pid)?.parent;
    return parent !== undefined && (parent === process.pid || isOurs(parent));
  };
  let sum = 0;
  for (const [pid, { name, own, ended }] of all) if (name === 'postgres' && isOurs(pid)) sum += own + ended;
  return sum;
}

interface Stat {
  readonly name: string;
  readonly parent: number;
  /** CPU time, in s. */
  readonly own: number;
  /** CPU time of children that have ended, in s. */
  readonly ended: number;
}

function statOf(pid: number | undefined): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) / 100;
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
    return { name, parent: Number(fields[1]), own: ticks(11), ended: ticks(13) };
  } catch {
    return undefined;
  }
}
