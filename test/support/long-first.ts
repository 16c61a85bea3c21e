import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of tests that take longest, mostly by waiting. One that began last would keep the others' processors idle. */
const long = [
  'simulation/simulation',
  'fleet/faults',
  'daemon/git-source',
  'fleet/fleet',
  'daemon/page-states',
  'cli/edits',
  'daemon/component',
  'test/pack',
  'intents/outcome',
  'examples/lifecycle',
  'fleet/statements',
  'fleet/places',
  'conformance/postgres',
  'fleet/rollout',
  'daemon/commit-status',
  'state/postgres-fence',
  'engine/several-tokens',
  'daemon/reported-once',
  'daemon/life',
  'daemon/folder',
  'simulation/undo',
  'simulation/postgres-stories',
  'model/key-protocol',
  'daemon/work',
  'simulation/prose',
  'daemon/page',
  'simulation/incidents',
  'cli/docs',
  'examples/adding-a-kind',
  'daemon/action',
  'golden/serving',
  'plan/properties',
  'cli/blocked-everywhere',
  'simulation/rehearse-report',
  'cli/rehearse',
  'contract/contract',
  'daemon/poisoned',
  'daemon/soak',
  'fleet/killed-replica',
  'kill/kill',
  'fleet/failover',
  'fleet/releases',
  'daemon/git',
  'cli/doctor',
  'engine/crash',
];

/**
 * Runs the files that take longest first, and those of one project one after another: a worker keeps its compiled code
 * from file to file until a file of another project comes.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const at = long.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      if (at === -1) return 2 * long.length;
      return project.name === 'whole' ? at : long.length + at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
