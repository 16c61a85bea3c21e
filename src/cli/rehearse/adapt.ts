import { factsOf } from '../../core/kind-facts.ts';
import type { SpecModel } from '../../simulation/story.ts';
import type { Environment } from '../../spec/environment.ts';
import { plainFiles, type Source } from '../../spec/load.ts';
import { type Section, sections } from '../../spec/schemas.ts';

type Values = Record<string, unknown>;

/** The spec in a form that the emulator can play. `notes` lists the values that were substituted. */
export type Adapted = ReturnType<typeof adapt>;

/** The server types of the emulator's catalogue, by the way to size a server. */
const stock = {
  sliders: { server_type: 'sliders-1', image: 'ubuntu-24.04' },
  plans: { server_type: 'plans-1', image: 'ubuntu-24.04', plan_id: 51 },
  fixed: { server_type: 'gpu-fixed', image: 'ubuntu-24.04' },
};
const packages = ['l40s-1', 'l40s-2', 'h100-1'];
const plans = [51, 52, 53];
const keys = [101, 102];

/**
 * Takes a validated spec and removes everything that ties it to one live project: entries with an id become
 * creations, and types, images, packages and SSH keys become those of the emulator.
 */
export function adapt(sources: readonly Source[], environment: Environment) {
  const notes = new Set<string>();
  // A rehearsal needs no value of the environment: this one is a valid URL, and valid inside of one.
  const values = Object.keys(environment).map((name) => [name, `https://env.invalid/${name}`]);
  const files = plainFiles(sources, Object.fromEntries(values)) as Values[];
  const merged = (name: string): Values => Object.assign({}, ...files.map((file) => file[name] ?? {}));
  const settings = { ...merged('settings'), suspend: null, drift: 'correct', windows: [] };
  // The emulator of a rehearsal has no undocumented operation.
  const isPlayed = ({ kind }: Section) => !factsOf(kind.name).unlisted;
  for (const { collection } of sections.filter((each) => !isPlayed(each)))
    for (const name of Object.keys(merged(collection)))
      notes.add(`${collection}.${name} is left out: its operation is not documented`);
  const entries = Object.fromEntries(
    sections
      .filter(isPlayed)
      .map((section) => [
        section.collection,
        mapped(merged(section.collection), adaptersOf(notes)[section.collection] ?? completed(section)),
      ]),
  );
  const spec: SpecModel = { settings, ...(entries as unknown as Omit<SpecModel, 'settings'>) };
  return { spec, notes: [...notes] };
}

type Adapter = (entry: Values, name: string, at: number) => Values | undefined;

function adaptersOf(notes: Set<string>): Readonly<Record<string, Adapter>> {
  return {
    networks: (entry, name, at) => adaptNetwork(entry, name, at, notes),
    ips: (entry) => (entry.server_type_id === undefined ? {} : { server_type_id: 3 }),
    servers: (entry, name) => adaptServer(entry, name, notes),
  };
}

/** An entry with `id:` may lack the fields of a creation: they are taken from the example of the kind. */
function completed({ kind, example }: Section): Adapter {
  const [usual = {}] = Object.values(example) as Values[];
  const needed = (kind.entry.neededToCreate ?? []).map((field) => [field, usual[field]] as const);
  return (entry) => ({ ...Object.fromEntries(needed), ...untied(entry) });
}

function mapped(entries: Values, change: Adapter) {
  return Object.fromEntries(
    Object.entries(entries).flatMap(([name, entry], at) => {
      const adapted = change((entry ?? {}) as Values, name, at);
      return adapted === undefined ? [] : [[name, adapted] as const];
    }),
  );
}

function untied({ id: _id, managed: _managed, moved: _moved, expires: _end, ...entry }: Values): Values {
  return entry;
}

function adaptNetwork(entry: Values, name: string, at: number, notes: Set<string>): Values {
  if (entry.managed === false && name === 'default') return { managed: false };
  if (entry.managed === false)
    notes.add(`networks.${name}, which is not managed, is created for the rehearsal`);
  return { cidr: `10.250.${at}.0/24`, ...untied(entry) };
}

function adaptServer(entry: Values, name: string, notes: Set<string>): Values | undefined {
  if (entry.managed === false) {
    notes.add(`servers.${name}, which is not managed, is left out`);
    return undefined;
  }
  const { server_type, image, ssh_keys, ...rest } = untied(entry);
  const mode = rest.gpu_package !== undefined ? 'fixed' : rest.plan_id !== undefined ? 'plans' : 'sliders';
  const played = stock[mode];
  if (server_type !== undefined && server_type !== played.server_type)
    notes.add(`server type ${server_type}: the rehearsal uses ${played.server_type} instead`);
  if (image !== undefined && image !== played.image)
    notes.add(`image ${image}: the rehearsal uses ${played.image} instead`);
  return {
    ...rest,
    ...played,
    ...sizeOf(mode, rest, notes),
    ...(ssh_keys === undefined ? {} : { ssh_keys: (ssh_keys as unknown[]).slice(0, 1).map(() => keys[0]) }),
  };
}

function sizeOf(mode: keyof typeof stock, entry: Values, notes: Set<string>): Values {
  if (mode === 'sliders') {
    const { cores = 1, memory_mb = 1024, disk_gb = 20 } = entry;
    return { cores, memory_mb, disk_gb };
  }
  if (mode === 'plans')
    return { plan_id: plans.includes(entry.plan_id as number) ? entry.plan_id : plans[0] };
  const wanted = [entry.gpu_package].flat() as string[];
  const known = wanted.filter((each) => packages.includes(each));
  if (known.length === wanted.length) return { gpu_package: entry.gpu_package };
  notes.add(
    `package ${wanted.filter((each) => !packages.includes(each)).join(', ')}: the rehearsal uses ${packages[0]} instead`,
  );
  return { gpu_package: known.length > 0 ? known : packages[0] };
}
