import { fileURLToPath } from 'node:url';
import { settlesAnOutcome } from '../../src/core/codes.ts';
import { type FaultAction, faultRule } from '../../src/emulator/faults.ts';
import type { Disturbance, Entries, SpecModel } from '../../src/simulation/story.ts';
import { createCoverage } from './coverage.ts';
import { writes } from './operations.ts';
import { play } from './play.ts';
import { profiledSubjects, subjects } from './subjects.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
type Write = keyof typeof writes;

interface Operation {
  readonly label: string;
  readonly write: Write;
  /** The spec and its edits. */
  readonly specs: readonly SpecModel[];
  /** The send of that write, from 1, that the incident strikes: the first one. */
  readonly nth?: number;
  readonly pausesMs?: readonly number[];
}

function file(subject: string): readonly SpecModel[] {
  return { ...subjects, ...profiledSubjects }[subject] ?? [];
}

/** The same file with another value in the entry of its server, once the first one is carried out. */
function edited([spec, ...rest]: readonly SpecModel[], change: Entries[string]): readonly SpecModel[] {
  if (spec === undefined) return [];
  return [spec, { ...spec, servers: { web: { ...spec.servers.web, ...change } } }, ...rest];
}

/** Each write, also those that only a profile opens; a server that no read shows, an edit in place and a replacement beside them. */
export const operations: readonly Operation[] = [
  { label: 'create network', write: 'create_network', specs: file('network') },
  { label: 'delete network', write: 'delete_network', specs: file('network') },
  { label: 'allocate ip', write: 'allocate_ip', specs: file('ip') },
  { label: 'release ip', write: 'release_ip', specs: file('ip') },
  { label: 'add iso', write: 'add_iso', specs: file('iso') },
  { label: 'delete iso', write: 'delete_iso', specs: file('iso') },
  { label: 'create server', write: 'create_server', specs: file('server') },
  { label: 'create server without address', write: 'create_server', specs: file('bare server') },
  {
    label: 'replace server',
    write: 'create_server',
    specs: edited(file('server'), { image: 'debian-13', replace: 'allowed' }),
    nth: 2,
  },
  { label: 'delete server', write: 'delete_server', specs: file('server') },
  { label: 'add network interface', write: 'add_network_interface', specs: file('parts') },
  { label: 'put firewall', write: 'put_firewall', specs: file('parts') },
  {
    label: 'edit firewall',
    write: 'put_firewall',
    specs: edited(file('parts'), { firewall: { enabled: true, policy_in: 'drop', rules: [] } }),
    nth: 2,
  },
  { label: 'take backup', write: 'take_backup', specs: file('parts') },
  { label: 'insert iso', write: 'insert_iso', specs: file('drive') },
  { label: 'eject iso', write: 'eject_iso', specs: file('drive') },
  {
    label: 'delete backup',
    write: 'delete_backup',
    specs: file('backups'),
    pausesMs: [25 * hour, minute, 25 * hour],
  },
  { label: 'take server image', write: 'take_server_image', specs: file('image') },
  { label: 'remove network interface', write: 'remove_network_interface', specs: file('cards') },
  { label: 'put backup policy', write: 'update_backup_policy', specs: file('policy') },
  { label: 'resize server', write: 'resize_server', specs: file('sizes') },
];

interface IncidentKind {
  readonly label: string;
  /** Only writes that start a task have it. */
  readonly task?: true;
  /** On the first send of the write. */
  readonly fault?: FaultAction;
  /** The boundary, of a write and its path, at which it happens for the first time. */
  readonly at?: (write: Write, path: string) => string;
  readonly what?: Disturbance;
}

const beforeSend = (_write: Write, path: string) => `${path}:before`;
const afterSend = (_write: Write, path: string) => `${path}:after`;
const refused: FaultAction = { do: 'refuse' };

export const incidents: readonly IncidentKind[] = [
  ...Object.entries({
    'before the record': (write: Write) => `beginIntent ${write}:before`,
    'after the record': (write: Write) => `beginIntent ${write}:after`,
    'before the send': beforeSend,
    'after the effect': afterSend,
    'before the result is recorded': (write: Write) => `closeIntent ${write}:before`,
    'after the result is recorded': (write: Write) => `closeIntent ${write}:after`,
  }).map(([label, at]) => ({ label: `kill -9 ${label}`, at, what: { do: 'crash' } as const })),
  { label: 'SIGTERM', at: afterSend, what: { do: 'stop' } },
  { label: 'reset before the effect', fault: { do: 'reset' } },
  { label: 'reset after the effect', fault: { do: 'reset', effect: 'done' } },
  {
    label: 'API dead after the effect, 10 min',
    fault: { do: 'reset', effect: 'done' },
    at: afterSend,
    what: { do: 'outage', ms: 10 * minute, action: refused },
  },
  { label: '500 before the effect', fault: { do: 'answer', status: 500 } },
  { label: '500 after the effect', fault: { do: 'answer', status: 500, effect: 'done' } },
  {
    label: '503 for 10 min',
    at: beforeSend,
    what: { do: 'outage', ms: 10 * minute, action: { do: 'answer', status: 503 } },
  },
  { label: 'outage of 1 h', at: beforeSend, what: { do: 'outage', ms: hour, action: refused } },
  {
    label: '429 for 5 min',
    at: beforeSend,
    what: { do: 'outage', ms: 5 * minute, action: { do: 'answer', status: 429, retryAfter: 20 } },
  },
  { label: 'task fails', task: true, fault: { do: 'task', outcome: 'fail', leaves: 'nothing' } },
  { label: 'task takes 25 min', task: true, fault: { do: 'task', ms: 25 * minute } },
  {
    label: 'machine suspended for 3 h before the send',
    at: beforeSend,
    what: { do: 'suspend', ms: 3 * hour },
  },
  {
    label: 'machine suspended for 3 h after the effect',
    at: afterSend,
    what: { do: 'suspend', ms: 3 * hour },
  },
  { label: 'CI job killed, rerun from an empty state', at: afterSend, what: { do: 'lose_state' } },
  { label: 'token expires', at: beforeSend, what: { do: 'token', to: 'revoked', runs: 2 } },
];

/** How one incident on one operation ended. */
export interface Cell {
  readonly incident: string;
  readonly operation: string;
  /** Only a profile opens the write. */
  readonly profiled: boolean;
  readonly end: 'itself' | 'rerun' | 'operator' | 'none';
  /** Codes by which an operator was asked to settle an outcome. */
  readonly asked: readonly string[];
  /** A broken rule, a known limit that was met, or an incident that did not happen. */
  readonly failure: string | undefined;
}

const undisturbed = { seed: 1, state: 'memory', readings: {}, pausesMs: [minute, 10 * minute] } as const;

export async function playCell(incident: IncidentKind, operation: Operation): Promise<Cell> {
  const write: {
    readonly task?: true;
    readonly path: string;
    readonly name: string;
    readonly profile?: true;
  } = writes[operation.write];
  const names = { incident: incident.label, operation: operation.label, profiled: write.profile === true };
  if (incident.task && !write.task) return { ...names, end: 'none', asked: [], failure: undefined };
  const { path, name, profile } = write;
  const { specs, nth = 1, pausesMs = undisturbed.pausesMs } = operation;
  const coverage = createCoverage();
  const boundary = incident.at?.(operation.write, path) ?? beforeSend(operation.write, path);
  const { violation, questions, trace, boundaries } = await play(
    {
      ...undisturbed,
      ...(profile && { profile }),
      specs,
      pausesMs,
      faults: incident.fault === undefined ? [] : [faultRule({ path: name, nth }, incident.fault)],
      incidents: incident.what === undefined ? [] : [{ at: { boundary, nth }, what: incident.what }],
    },
    coverage,
  );
  const asked = [...new Set(questions.map(({ code }) => code))].filter(settlesAnOutcome);
  const ended = trace.flatMap((line) => / run ends: (.*)/.exec(line)?.[1] ?? []);
  const limit = [...coverage.hits.keys()].find((hit) => hit.startsWith('count given up'));
  const missed = (boundaries.get(boundary) ?? 0) >= nth ? undefined : `${boundary} was not crossed`;
  return {
    ...names,
    end: asked.length > 0 ? 'operator' : ended.every((end) => end === 'converged') ? 'itself' : 'rerun',
    asked,
    failure: violation === undefined ? (limit ?? missed) : `${violation.rule} ${violation.message}`,
  };
}

/** @param exclusive the spec says that nobody else creates in the project */
type Pair = readonly [incident: IncidentKind, operation: Operation];

interface CellOptions {
  readonly exclusive?: boolean;
  /** The cells that are played: all of them by default. */
  readonly of?: (cells: readonly Pair[]) => readonly Pair[];
}

export async function playCells({
  exclusive = false,
  of = (all) => all,
}: CellOptions = {}): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  const setting = ({ specs, ...operation }: Operation): Operation => ({
    ...operation,
    specs: specs.map((spec) => ({ ...spec, settings: { ...spec.settings, exclusive } })),
  });
  const pairs = incidents.flatMap((incident) =>
    operations.map((operation) => [incident, setting(operation)] as const),
  );
  for (const [incident, operation] of of(pairs)) cells.push(await playCell(incident, operation));
  return cells.filter(({ end }) => end !== 'none');
}

const signs = { itself: '·', rerun: 'r', operator: '?', none: '' };

/** The table of the documentation: incidents down, operations across. */
export function matrixText(cells: readonly Cell[]): string {
  const endOf = (incident: string, operation: string) =>
    cells.find((cell) => cell.incident === incident && cell.operation === operation)?.end ?? 'none';
  const rows = incidents.map(({ label }) => [
    label,
    ...operations.map((operation) => signs[endOf(label, operation.label)]),
  ]);
  const head = ['', ...operations.map(({ label }) => label)];
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}

async function main(): Promise<void> {
  let [count, asked] = [0, 0];
  for (const exclusive of [false, true]) {
    const cells = await playCells({ exclusive });
    console.log(`${exclusive ? '\n' : ''}exclusive: ${exclusive}\n${matrixText(cells)}`);
    console.log('· by itself, r by running again, ? asks an operator');
    for (const { incident, operation, end, asked: codes, failure } of cells) {
      if (end === 'operator') console.log(`${incident} on ${operation}: ${codes.join(', ')}`);
      if (failure === undefined) continue;
      console.log(`${incident} on ${operation} FAILED: ${failure}`);
      process.exitCode = 1;
    }
    for (const profiled of [false, true]) {
      const some = cells.filter((cell) => cell.profiled === profiled);
      const ends = (['itself', 'rerun', 'operator'] as const).map(
        (end) => `${end} ${some.filter((cell) => cell.end === end).length}`,
      );
      console.log(
        `${profiled ? 'writes of a profile' : 'documented writes'}: ${some.length} cells, ${ends.join(', ')}`,
      );
    }
    const documented = cells.filter(({ profiled }) => !profiled);
    count += documented.length;
    asked += documented.filter(({ end }) => end === 'operator').length;
  }
  console.log(`\ndocumented writes: ${asked} of ${count} cells ask an operator`);
  if (asked > 0.02 * count) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
