import type { MeterReading, Project } from './world.ts';

/** Ends the readings of objects that are gone or have another size, and begins those of new ones. */
export function meter(project: Project, atMs: number): void {
  const { servers, ips } = project;
  project.meter ??= [];
  const billed = [
    ...servers.map(({ id, typeId, cores, memoryMb, diskGb, planId, gpuPackage }) => {
      return { kind: 'server' as const, id, size: [typeId, cores, memoryMb, diskGb, planId, gpuPackage] };
    }),
    ...ips.map(({ id }) => ({ kind: 'ip' as const, id, size: [] })),
  ];
  const missing = new Map(billed.map((each) => [nameOf(each), each]));
  for (const reading of project.meter)
    if (reading.toMs === null && !missing.delete(nameOf(reading))) reading.toMs = atMs;
  for (const each of missing.values()) project.meter.push({ ...each, fromMs: atMs, toMs: null });
}

function nameOf({ kind, id, size }: Pick<MeterReading, 'kind' | 'id' | 'size'>): string {
  return [kind, id, ...size].join(' ');
}
