import { describe, expect, test } from 'vitest';
import { loadSpec } from '../../src/spec/load.ts';

const spec = (firewall: string) => `version: 1
project: { id: 4711 }
servers:
  web:
    server_type: sliders-1
    image: ubuntu-24.04
    cores: 1
    memory_mb: 1024
    disk_gb: 10
    public_ipv4: { new: true }
    firewall: ${firewall}
`;

function read(firewall: string, environment = {}) {
  return loadSpec([{ file: 'f.yaml', text: spec(firewall) }], environment);
}

function cautions(firewall: string, environment = {}): string[] {
  return read(firewall, environment).resources.flatMap((each) =>
    (each.cautions ?? []).map(({ position, message }) => `${position.line}:${position.column}: ${message}`),
  );
}

describe('src/spec: firewall values that are nearly usual ones', () => {
  test.each([
    ['{ policy_in: dorp }', ['11:28: `dorp` is an unusual `policy_in`; did you mean `drop`?']],
    ['{ policy_in: Drop }', ['11:28: `Drop` is an unusual `policy_in`; did you mean `drop`?']],
    [
      '{ rules: [{ direction: inn, action: accpt, protocol: tpc }] }',
      [
        '11:38: `inn` is an unusual `direction`; did you mean `in`?',
        '11:51: `accpt` is an unusual `action`; did you mean `accept`?',
        '11:68: `tpc` is an unusual `protocol`; did you mean `tcp`?',
      ],
    ],
    ['{ policy_in: deny }', ['11:28: `deny` is an unusual `policy_in`; did you mean `drop`?']],
    ['{ policy_in: reject }', []],
    ['{ rules: [{ action: Allow }] }', ['11:35: `Allow` is an unusual `action`; did you mean `accept`?']],
    ['{ rules: [{}] }', ['11:25: the rule is empty']],
    [
      '{ rules: [{ destination_port: "8000:8080" }] }',
      [
        '11:45: "8000:8080" is a range of ports, and the API documents only single ports and lists of them. The API may refuse the firewall after its server is public',
      ],
    ],
  ])('%s is told with its place', (firewall, told) => {
    expect(cautions(firewall)).toEqual(told);
  });

  test.each([
    '{ policy_in: drop, rules: [{ direction: in, action: accept, protocol: tcp, destination_port: "22, 443" }] }',
    '{ policy_in: reject, rules: [{ direction: out, action: log, protocol: any, destination_port: "1000,2000" }] }',
    '{ rules: [{ protocol: udp, source: 10.0.0.0/8, whatever: dorp }] }',
  ])('%s: nothing is said of what the document leaves open', (firewall) => {
    expect(cautions(firewall)).toEqual([]);
  });

  test('doubts show nothing of the environment', () => {
    const rules = (source: string) =>
      `{ rules: [{ protocol: tpc, source: "${source}" }, { source: "${source}" }] }`;
    const { resources } = read(rules(`\${env:OFFICE}`), { OFFICE: '198.51.100.7' });
    expect(resources.flatMap(({ cautions = [] }) => cautions)).not.toEqual([]);
    expect(JSON.stringify(resources)).not.toContain('198.51');
  });
});
