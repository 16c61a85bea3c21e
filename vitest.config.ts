import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { LongFirst } from './test/support/long-first.ts';
import { compileCache } from './test/support/program-env.ts';

/**
 * Tests that try hundreds of cases of code that others cover, and those that start built programs or run for long. CI
 * counts no coverage while they run: that would take a third of their time more.
 */
const thorough = [
  'test/daemon/{action,check-command,component,folder,life,page,poisoned,reported-once,soak,work}.test.ts',
  'test/emulator/fuzz.test.ts',
  'test/engine/{concurrent-changes,crash,interruption,several-tokens}.test.ts',
  'test/engine/claims/recorded-findings.test.ts',
  'test/engine/intents/{ask-key,outcome}.test.ts',
  'test/examples/**/*.test.ts',
  'test/fleet/{faults,fleet,places,rollout,statements}.test.ts',
  'test/kill/**/*.test.ts',
  'test/model/**/*.test.ts',
  'test/{pack,docker,layers}.test.ts',
  'test/{plan,spec}/properties.test.ts',
  'test/simulation/{incidents,prose,rehearse-report}.test.ts',
];

/**
 * Tests of modules alone: they start no program, server or thread. They run in the same workers, since loading the
 * modules for each file takes longer than most of them.
 */
const unit = globSync('test/{api,core,emulator,engine,plan,queue,reconcilers,spec}/**/*.test.ts', {
  cwd: import.meta.dirname,
  exclude: [
    ...thorough,
    'test/emulator/{docs,http,persistence}.test.ts',
    'test/plan/summary.test.ts',
    'test/spec/hostile.test.ts',
  ],
});

/** Builds the command that tests start as a process. */
const globalSetup = ['test/support/built.ts'];

export default defineConfig({
  test: {
    setupFiles: ['test/setup.ts'],
    // For tests that hang: none is as slow on a machine that does much else.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // Most of the time goes by in waiting for processes, sockets and clocks.
    // A percentage would mean at most the number of processors.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongFirst },
    env: { NODE_COMPILE_CACHE: compileCache },
    projects: [
      { extends: true, test: { name: 'unit', include: unit, isolate: false } },
      { extends: true, test: { name: 'thorough', include: thorough, globalSetup, isolate: false } },
      {
        extends: true,
        test: {
          name: 'whole',
          globalSetup,
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...unit, ...thorough, 'test/fleet/long/**'],
        },
      },
      // `npm run test:fleet` alone: it takes a quarter of an hour.
      ...(process.env.FLEET_FAULTS === undefined
        ? []
        : [
            {
              extends: true as const,
              test: { name: 'fleet', include: ['test/fleet/long/*.test.ts'], globalSetup },
            },
          ]),
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reporter: ['text-summary', 'json-summary'],
    },
  },
});
