import { Gauge, Histogram } from 'prom-client';
import { gauges, Metrics, prefix } from '../src/daemon/http/metrics.ts';

/** One metric as a reference has it. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Every metric of the daemon's own, by name; those of the process come from the library. */
export function describeMetrics(): MetricDescription[] {
  const counted = new Metrics('', { ofProcess: false }).registry.getMetricsAsArray().flatMap((metric) => {
    const type = metric instanceof Histogram ? 'histogram' : 'counter';
    const { name, help, labelNames } = metric as unknown as Named;
    return metric instanceof Gauge ? [] : [{ name, type, help, labels: labelNames }];
  });
  const taken = Object.entries(gauges).map(([name, [help, ...labels]]) => {
    return { name: `${prefix}${name}`, type: 'gauge', help, labels };
  });
  return [...counted, ...taken].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The fields that the library's types leave out. */
interface Named {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}
