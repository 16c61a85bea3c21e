import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of tests that take longest, mostly by waiting. One that began last would keep the others' processors idle. */
const long = [
  'fleet/fleet',
  'simulation/simulation',
  'daemon/soak',
  'fleet/faults',
  'daemon/life',
  'cli/docs',
  'kill/kill',
  'daemon/work',
  'daemon/told',
  'daemon/poisoned',
  'simulation/rehearse-report',
  'daemon/folder',
  'simulation/incidents',
  'examples/lifecycle',
  'contract/contract',
  'conformance/postgres',
  'model/key-protocol',
  'cli/blocked-everywhere',
  'daemon/page',
  'daemon/manifests',
];

/** Runs the files that take longest first. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = long.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at === -1 ? long.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
