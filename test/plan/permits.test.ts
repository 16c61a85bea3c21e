import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Blocked } from '../../src/core/plan.ts';
import { type RemedyStep, stepsOf } from '../../src/core/remedy.ts';
import { applied, load as loaded, type Rig } from '../support/rig.ts';

type Fields = Record<string, unknown>;
type Model = Record<string, Record<string, Fields | unknown>>;

const web = { server_type: 'sliders-1', image: 'ubuntu-24.04', cores: 1, memory_mb: 1024, disk_gb: 20 };
const names = ['a', 'b', 'c'];
const three = (more: Fields): Model => ({
  servers: Object.fromEntries(names.map((name) => [name, { ...web, ...more }])),
});

const text = (model: Model) =>
  Object.entries(model)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join('');

/** Carries out the steps of remedies, as an operator does. `before`: the spec as it was. */
async function follow(
  played: Rig,
  model: Model,
  before: Model,
  steps: readonly RemedyStep[],
): Promise<Model> {
  let file = model;
  for (const step of steps) {
    if (step.type === 'edit') file = edited(file, before, step);
    else if (step.type === 'run' && step.command === 'adopt') {
      const [key = '', id = ''] = step.args;
      await played.clock.run(played.engine.adopt(loaded(text(file)), key as ResourceKey, id));
    } else if (step.type === 'run') {
      const targets = step.args.filter((each) => each !== '--target') as ResourceKey[];
      const selection = targets.length === 0 ? {} : { selection: { targets, excludes: [] } };
      await played.apply(text(file), selection);
    }
  }
  return file;
}

function edited(
  model: Model,
  before: Model,
  { path, set = {}, remove = [], entry }: RemedyStep & { type: 'edit' },
): Model {
  const [section = '', name] = path.split('.');
  const block = { ...model[section] };
  const start =
    name === undefined ? block : (block[name] ?? (entry === 'restore' ? before[section]?.[name] : {}));
  const fields: Fields = { ...(start as Fields), ...set };
  for (const each of remove) delete fields[each];
  if (name === undefined) return { ...model, [section]: fields };
  if (entry === 'remove') delete block[name];
  else block[name] = fields;
  return { ...model, [section]: block };
}

const permits = (blocked: readonly Blocked[]) => {
  const last = blocked.flatMap(({ remedies }) => remedies.at(-1) ?? []);
  const steps = stepsOf(last).filter((step) => step.type !== 'run' || step.args.length > 0);
  const unique = new Map(steps.map((step) => [JSON.stringify({ ...step, when: 0, next: 0 }), step]));
  return [...unique.values()];
};

const edits: readonly (readonly [string, Fields, (model: Model) => Model])[] = [
  ['a replacement that is not allowed', {}, (model) => model],
  ['of protected servers', { protect: true }, (model) => model],
  [
    'while changes are suspended',
    { protect: true },
    (model) => ({ ...model, settings: { suspend: { reason: 'freeze' } } }),
  ],
];

describe('src/plan/judge.ts: one entry names all edits', () => {
  test.each(edits)('replacement of three servers: %s', async (_, more, also) => {
    const before = three(more);
    const played = await applied(text(before));
    const after = also(three({ ...more, cores: 2 }));
    const { blocked } = await played.plan(text(after));
    expect(blocked).toHaveLength(3);
    for (const each of blocked) {
      expect(each.reason).toContain('would be deleted with all data on its disks');
      expect(each.remedies[0]).toMatchObject({ type: 'edit', set: { cores: 1 } });
    }

    const file = await follow(played, after, before, permits(blocked));

    expect((await played.apply(text(file))).outcome).toBe('converged');
    expect(played.project.servers.map(({ cores }) => cores)).toEqual([2, 2, 2]);
  });
});

describe('src/plan/judge.ts: the harmless remedy comes first', () => {
  test.each([
    ['without `prune`', {}],
    ['of protected entries', { protect: true }],
  ])('deletion of three servers: %s', async (_, more) => {
    const before = three(more);
    const played = await applied(text(before));
    const { blocked } = await played.plan('');
    expect(blocked.map(({ remedies }) => remedies[0])).toMatchObject(names.map(() => ({ entry: 'restore' })));

    const file = await follow(played, {}, before, permits(blocked));

    expect((await played.apply(text(file))).outcome).toBe('converged');
    expect(played.project.servers).toEqual([]);
  });
});
