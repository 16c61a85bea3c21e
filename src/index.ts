/** The library: what the command line is made of, for programs that put it together themselves. */
export { createClient, parseBaseUrl } from './api/client.ts';
export type { Clock } from './core/clock.ts';
export type { Desired } from './core/desired.ts';
export * from './core/errors.ts';
export type { Plan } from './core/plan.ts';
export type { ApplyReport, ProgressEvent } from './core/progress.ts';
export type { StateStore } from './core/state.ts';
export type { Transport } from './core/transport.ts';
export { createEmulator, type Emulator, type EmulatorOptions } from './emulator/emulator.ts';
export { type RunningEmulator, type ServeOptions, startEmulator } from './emulator/http-server.ts';
export type { EngineDeps } from './engine/deps.ts';
export { createEngine, type Engine } from './engine/engine.ts';
export { systemClock } from './platform/system-clock.ts';
export { systemRandom } from './platform/system-random.ts';
export { undiciTransport } from './platform/undici-transport.ts';
export { kinds } from './reconcilers/registry.ts';
export { loadSpec } from './spec/load.ts';
export { openState } from './state/open.ts';
