import { describe, expect, test } from 'vitest';
import { errorsIn, read, spec } from '../spec/read.ts';

const file = (firewall: string) => spec(`servers: {web: {id: 3, firewall: ${firewall}}}`);
const at =
  file('{rules: [{')
    .split('\n')
    .findIndex((line) => line.startsWith('servers')) + 1;

describe('src/reconcilers/firewall/checks.ts', () => {
  test.each([
    ['destination_prot: "22"', 'destination_prot', 'destination_port'],
    ['destination_ports: "22"', 'destination_ports', 'destination_port'],
    ['destinationPort: "22"', 'destinationPort', 'destination_port'],
    ['dport: "22"', 'dport', 'destination_port'],
    ['proto: tcp', 'proto', 'protocol'],
    ['Action: accept', 'Action', 'action'],
    ['enabeld: true', 'enabeld', 'enabled'],
    ['comment: ssh', 'comment', 'description'],
    ['directoin: in', 'directoin', 'direction'],
  ])('a misspelled field is an error at its position: {%s}', (field, name, meant) => {
    const before = 'servers: {web: {id: 3, firewall: {rules: [{direction: in, ';
    expect(errorsIn(file(`{rules: [{direction: in, ${field}}]}`))).toEqual([
      `a.yaml:${at}:${before.length + 1}: unknown field \`${name}\`; did you mean \`${meant}\`?`,
    ]);
  });

  test.each([
    ['destination_port: "22",80', /field `80` has no value; several ports are one text/],
    ['protocol: tcp,udp', /field `udp` has no value; .* quotes/],
    ['destination_port: 22', /must be text, not 22: put it in quotes/],
    ['destination_port: [22, 80]', /must be text, not a list/],
    ['enabled: "yes"', /must be `true` or `false`/],
    ['protocol: 6', /must be text, not 6/],
  ])('a value of the wrong type is an error: {%s}', (field, message) => {
    const errors = errorsIn(file(`{rules: [{direction: in, ${field}}]}`));
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(message);
  });

  test.each(['99999', '0', '22-', 'ssh', '22,,80', '80-22', '', '22;80'])('port "%s" is an error', (port) => {
    expect(errorsIn(file(`{rules: [{destination_port: "${port}"}]}`))).toHaveLength(1);
  });

  test('a port from the environment is not shown', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the spec's own syntax
    const errors = errorsIn(file('{rules: [{destination_port: "${env:P}"}]}'), { P: 'secret-port' });
    expect(errors).toHaveLength(1);
    expect(errors.join()).not.toContain('secret-port');
  });

  test('unknown fields that resemble no documented field are accepted unchanged', () => {
    const rule = {
      ...{ direction: 'in', source: '10.0.0.0/8', source_port: '1024', destination: '10.0.0.9' },
      ...{ destination_ip: '10.0.0.9', position: 3, log: true, icmp_type: 8, interface: 'net0' },
      destination_port: '22, 443,8000-8100',
    };
    const { resources } = read(file(`{rules: [${JSON.stringify(rule)}]}`));
    expect(resources.find(({ kind }) => kind === 'firewall')?.value).toEqual({ rules: [rule] });
  });
});
