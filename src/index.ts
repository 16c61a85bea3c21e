/** The library: a spec as a program, the types of a plan and a report, and the emulator. */
export type { Plan } from './core/plan.ts';
export type { ApplyReport, ProgressEvent } from './core/progress.ts';
export { createEmulator, type Emulator, type EmulatorOptions } from './emulator/emulator.ts';
export { type RunningEmulator, type ServeOptions, startEmulator } from './emulator/http-server.ts';
export { defineProject, type ProjectInput, type ServerInput } from './spec/project-input.ts';
