import { describe, expect, test } from 'vitest';
import { didYouMean, didYouMeanKey } from '../../src/core/suggest.ts';
import { server } from '../../src/reconcilers/server.ts';

describe('src/core/suggest.ts: a key that was probably meant', () => {
  const keys = ['servers.db-1', 'servers.db-1.firewall', 'servers.web-1', 'networks.backend', 'ips.web-1'];
  test.each([
    ['servers.db1', '; did you mean `servers.db-1`?'],
    ['servers.nope', ''],
    ['server.db-1', '; did you mean `servers.db-1`?'],
    ['server.db-l', '; did you mean `servers.db-1`?'],
    ['servers.db-1.firewal', '; did you mean `servers.db-1.firewall`?'],
    ['network.x', ''],
    ['networks.db-1', ''],
    ['db-1', '; did you mean `servers.db-1`?'],
    ['db-l', '; did you mean `servers.db-1`?'],
    ['db-1.firewall', '; did you mean `servers.db-1.firewall`?'],
    ['web-1', '; did you mean `servers.web-1` or `ips.web-1`?'],
    ['web-l', '; did you mean `servers.web-1` or `ips.web-1`?'],
    ['back', ''],
    ['mail', ''],
    ['servers', ''],
    ['', ''],
  ])('%s', (key, hint) => {
    expect(didYouMeanKey(key, keys)).toBe(hint);
  });
});

describe('src/core/suggest.ts: a field that was probably meant', () => {
  const { shape } = server.entry.schema as unknown as { readonly shape: object };
  test.each([
    ['memory', 'memory_mb'],
    ['memory_gb', 'memory_mb'],
    ['disk', 'disk_gb'],
    ['plan', 'plan_id'],
    ['publicip', 'public_ipv4'],
    ['public_ip', 'public_ipv4'],
    ['PublicIPv4', 'public_ipv4'],
    ['sshKeys', 'ssh_keys'],
    ['ssh', undefined],
    ['core', 'cores'],
    ['imgae', 'image'],
    ['gpu', 'gpus'],
    ['cpu', 'cores'],
    ['cpus', 'cores'],
    ['vcpus', 'cores'],
    ['vCPU', 'cores'],
    ['ram', 'memory_mb'],
    ['storage', 'disk_gb'],
    ['disk_size', 'disk_gb'],
    ['ip', 'public_ipv4'],
    ['ip_address', 'public_ipv4'],
    ['size', 'server_type'],
    ['flavor', 'server_type'],
    ['type', 'server_type'],
    ['ssh_key', 'ssh_keys'],
    ['location', undefined],
    ['x', undefined],
    ['d', undefined],
    ['', undefined],
  ])('%s', (field, meant) => {
    expect(didYouMean(field, Object.keys(shape))).toBe(
      meant === undefined ? '' : `; did you mean \`${meant}\`?`,
    );
  });

  test('a single letter suggests nothing', () => {
    expect(didYouMean('a', ['b', 'ab'])).toBe('');
  });
});
