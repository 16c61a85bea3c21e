import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of tests that take longest, mostly by waiting. One that began last would keep the others' processors idle. */
const long = [
  'fleet/fleet',
  'fleet/faults',
  'kill/kill',
  'daemon/life',
  'daemon/reported-once',
  'daemon/soak',
  'simulation/simulation',
  'simulation/notes',
  'daemon/work',
  'fleet/rollout',
  'cli/docs',
  'simulation/rehearse-report',
  'daemon/commit-status',
  'test/pack',
  'daemon/folder',
  'intents/outcome',
  'daemon/poisoned',
  'simulation/incidents',
  'daemon/manifests',
  'model/key-protocol',
  'cli/apply',
  'fleet/places',
  'cli/doctor',
  'cli/export',
  'cli/rehearse',
  'daemon/git-source',
  'daemon/page-states',
  'state/postgres-connection',
  'daemon/page',
  'cli/blocked-everywhere',
  'examples/lifecycle',
  'state/postgres-fence',
  'claims/recorded-findings',
  'daemon/component',
  'daemon/git',
  'engine/several-tokens',
  'test/docker',
  'examples/adding-a-kind',
  'engine/crash',
  'conformance/postgres',
  'simulation/prose',
  'contract/contract',
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
