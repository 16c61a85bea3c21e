import type { HttpRequest } from '../core/transport.ts';
import { control, isControl } from './control.ts';
import type { Exchange } from './delivery.ts';
import { billed } from './inspection.ts';
import { mutate } from './mutations.ts';
import type { Emulator, EmulatorOptions } from './options.ts';
import { EmulatorInputError, parseReadings } from './readings.ts';
import { serve } from './serve.ts';
import { Service } from './service.ts';
import { projectTokens } from './tokens.ts';
import { inProcessTransport } from './transport.ts';
import type { World } from './world.ts';

export type { Emulator, EmulatorOptions } from './options.ts';

/** Builds an emulator. Throws `EmulatorInputError` for options that cannot be used. */
export function createEmulator(options: EmulatorOptions): Emulator {
  const service = new Service(options);

  function worldNow(): World {
    service.settle();
    return service.world;
  }

  async function controlled(request: HttpRequest, remote: string | undefined): Promise<Exchange> {
    const nowMs = service.settle();
    return { kind: 'answer', response: service.dated(control(emulator, request, remote), nowMs) };
  }

  const emulator: Emulator = {
    handle: (request, { remote, tooLarge = false } = {}) =>
      isControl(request.url) ? controlled(request, remote) : serve(service, request, tooLarge),
    transport: () => inProcessTransport(emulator, options.clock),
    get world() {
      return worldNow();
    },
    get readings() {
      return service.readings;
    },
    get faults() {
      return service.faults;
    },
    requests: service.log.requests,
    billed: () => billed(worldNow()),
    now: () => service.clock.now(),
    tokens: (projectId) => {
      const { seed, projects } = service.world;
      const project = projects.find(({ id }) => projectId === undefined || id === projectId);
      if (project === undefined) throw new EmulatorInputError(`project ${projectId}: there is none`);
      return projectTokens(seed, project.id);
    },
    mutate: (mutation) => {
      const result = mutate(worldNow(), mutation, service.clock.now());
      service.remember(service.settle());
      return result;
    },
    setFaults: (rules) => {
      service.faults = rules;
    },
    setReadings: (changed) => {
      service.readings = { ...service.readings, ...parseReadings(changed) };
    },
    get durations() {
      return service.durations;
    },
    setDurations: (changed) => {
      service.durations = { ...service.durations, ...changed };
    },
    snapshot: () => structuredClone(worldNow()),
    restore: (saved) => service.restore(saved),
  };
  return emulator;
}
