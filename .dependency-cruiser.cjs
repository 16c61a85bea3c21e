// Who may import whom: data flows one way (docs/contributing/architecture.md). Everyone may import core.
// test/layers.test.ts plants a violation of each rule and expects it to be reported.
const rooms = {
  core: [],
  plan: ['core'],
  queue: ['core'],
  state: ['core'],
  api: ['core'],
  reconcilers: ['core'],
  platform: ['core'],
  // A spec is checked with the kinds' own schemas.
  spec: ['core', 'reconcilers'],
  engine: ['core', 'plan', 'queue'],
  // A second reading of the API's text: it shares no code or schema with the client.
  emulator: ['core', 'platform/system'],
  simulation: ['core', 'engine', 'spec', 'reconcilers/registry', 'api', 'emulator', 'state', 'plan'],
  view: ['core', 'plan', 'engine'],
  daemon: ['core', 'engine', 'spec', 'view', 'plan/undo'],
};

// Inside the engine, each folder may import the folders before it. The files beside the folders are the ports and the
// types that all of them share, and engine.ts, which joins them.
const floors = ['claims', 'intents', 'run', 'operator'];

const kinds =
  '^src/reconcilers/(network|ip|iso|drive|server|server-image|network-interface|firewall|backup|backup-policy)\\.ts$';

module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'Nor by types: what two files need of each other stands in a third.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies',
      comment: 'What src imports is installed with the package.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    ...Object.entries(rooms).map(([room, allowed]) => ({
      name: `${room}-imports`,
      comment: `${room} may import ${allowed.join(', ') || 'nothing but itself'}`,
      severity: 'error',
      from: { path: `^src/${room}/` },
      to: { path: '^src/', pathNot: [room, ...allowed].map((each) => `^src/${each}(/|\\.|$)`) },
    })),
    {
      name: 'engine-shared-imports',
      comment: 'The files that all folders of the engine share import none of these folders.',
      severity: 'error',
      from: { path: '^src/engine/[^/]+\\.ts$', pathNot: '^src/engine/engine\\.ts$' },
      to: { path: '^src/engine/([^/]+/|engine\\.ts$)' },
    },
    ...floors.map((floor, at) => ({
      name: `engine-${floor}-imports`,
      comment: `engine/${floor} may import ${floors.slice(0, at).join(', ') || 'no other folder of the engine'}`,
      severity: 'error',
      from: { path: `^src/engine/${floor}/` },
      to: {
        path: `^src/engine/(${[...floors.slice(at + 1).map((each) => `${each}/`), 'engine\\.ts$'].join('|')})`,
      },
    })),
    {
      name: 'no-sibling-kinds',
      comment: 'A kind knows no other kind: they meet in the registry.',
      severity: 'error',
      from: { path: kinds },
      to: { path: kinds },
    },
    {
      name: 'nobody-imports-the-cli',
      severity: 'error',
      from: { pathNot: '^src/cli/' },
      to: { path: '^src/cli/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      conditionNames: ['import', 'node', 'default', 'types'],
      exportsFields: ['exports'],
    },
  },
};
