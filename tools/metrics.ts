import { counters, gauges, histograms, prefix } from '../src/daemon/http/metrics.ts';

/** One metric as a reference has it. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Every metric of the daemon's own, by name; those of the process come from the library. */
export function describeMetrics(): MetricDescription[] {
  const all = Object.entries({ counter: counters, histogram: histograms, gauge: gauges }).flatMap(
    ([type, described]) =>
      Object.entries(described).map(([name, [help, ...labels]]) => {
        return { name: `${prefix}${name}`, type, help, labels };
      }),
  );
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}
