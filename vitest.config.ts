import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { playsAll } from './test/support/drawn.ts';
import { LongFirst } from './test/support/long-first.ts';
import { compileCache } from './test/support/program-env.ts';

/**
 * Only `npm run test:all` runs these. They repeat, with many processes or cases, a proof that `npm test` makes once
 * with other tests: a daemon, a browser, the plan of a change, each reading of the API. The replicas of a fleet run only here.
 */
const long = [
  'test/cli/{blocked-everywhere,docs,doctor,export,outputs,prove,rehearse,replace,timeout,unreached}.test.ts',
  'test/conformance/postgres.test.ts',
  'test/daemon/{action,check-command,commit-status,component,examples,exposed,folder,git-source,hostile,large-project,life}.test.ts',
  'test/daemon/{monitoring,page-states,panels,poisoned,reported-once,soak,work}.test.ts',
  'test/engine/{crash,several-tokens}.test.ts',
  'test/examples/{adding-a-kind,lifecycle,pipelines,policy}.test.ts',
  'test/fleet/{failover,faults,fleet,job-queue,places,releases,rollout,statements,tenants,upgrade}.test.ts',
  'test/golden/serving.test.ts',
  'test/layers.test.ts',
  'test/model/**/*.test.ts',
  'test/{pack,pictures/pictures}.test.ts',
  'test/plan/effort.test.ts',
  'test/simulation/{incidents,notes,prose,rehearse-report}.test.ts',
  'test/spec/{hostile,properties}.test.ts',
  'test/state/postgres-{connection,fence}.test.ts',
];

/**
 * Tests of modules alone: they start no program, server or thread. They run in the same workers, since loading the
 * modules for each file takes longer than most of them.
 */
const unit = globSync('test/{api,core,emulator,engine,plan,queue,reconcilers,spec}/**/*.test.ts', {
  cwd: import.meta.dirname,
  exclude: [
    ...long,
    // These start a server, a thread or a browser, or take a second and more.
    'test/emulator/{docs,fuzz,http,persistence,unfit-bodies}.test.ts',
    'test/engine/{hostile-answers,interruption,replacement,token}.test.ts',
    'test/engine/intents/{outcome,prove}.test.ts',
    'test/plan/{properties,summary}.test.ts',
    'test/reconcilers/{backup-copies,drive,server}.test.ts',
  ],
});

/** Builds the command that tests start as a process. */
const globalSetup = ['test/support/built.ts'];

export default defineConfig({
  test: {
    setupFiles: ['test/setup.ts'],
    // For tests that hang: none is as slow on a machine that does much else.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000, interval: 150 } },
    // Most of the time goes by in waiting for processes, sockets and clocks.
    // A percentage would mean at most the number of processors.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongFirst },
    // Node runs the sources as they are: the simulation needs a fifth less processor time than with Vite's modules.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    env: { NODE_COMPILE_CACHE: compileCache },
    projects: [
      { extends: true, test: { name: 'unit', include: unit, isolate: false } },
      {
        extends: true,
        test: {
          name: 'whole',
          globalSetup,
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...unit, ...(playsAll ? [] : long), 'test/fleet/long/**'],
        },
      },
      // `npm run test:fleet` alone: it takes a quarter of an hour.
      ...(process.env.FLEET_FAULTS === undefined
        ? []
        : [
            {
              extends: true as const,
              test: {
                name: 'fleet',
                include: ['test/fleet/{long/*,failover,faults,rollout,tenants,upgrade}.test.ts'],
                globalSetup,
              },
            },
          ]),
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      // The processes that the tests start run it, and count no coverage.
      exclude: ['src/cli/main.ts'],
      thresholds: { lines: 85, branches: 75 },
      reporter: ['text-summary', 'json-summary'],
    },
  },
});
