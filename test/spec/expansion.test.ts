import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';

const spec = (servers: number, ports: number) =>
  `version: 1\nproject: { id: 4711 }\ndefaults:\n  servers: { server_type: 1, image: a, cores: 1, memory_mb: 1, disk_gb: 1, firewall: { enabled: true, rules: [${'{ protocol: tcp }, '.repeat(ports)}] } }\nservers:\n${Array.from({ length: servers }, (_, at) => `  s${at}: {}\n`).join('')}`;
const load = (text: string, overlay?: string) =>
  loadSpec(
    [
      { file: 'a.yaml', text },
      ...(overlay === undefined ? [] : [{ file: 'o.yaml', text: overlay, overlay: true }]),
    ],
    {},
  );

describe('src/spec/load.ts', () => {
  test('reads a spec just below the limit', () => {
    expect(load(spec(900, 100)).resources).toHaveLength(1800);
  });

  test('counts the values of an overlay as well', () => {
    const rules = `[${'{ protocol: udp }, '.repeat(300)}]`;
    expect(() => load(spec(500, 1), `defaults: { servers: { firewall: { rules: ${rules} } } }`)).toThrow(
      /the spec has 3\d+ values/,
    );
  });

  test('a project has at most 10,000 resources, including parts of servers', () => {
    expect(() => load(spec(5_001, 1))).toThrow(/the spec declares 10002 resources, and at most 10000/);
  });

  test('servers with the same defaults share one firewall value', () => {
    const [first, second] = load(spec(2, 3)).resources.filter(({ kind }) => kind === 'firewall');
    expect(first?.value).toBe(second?.value);
  });
});
