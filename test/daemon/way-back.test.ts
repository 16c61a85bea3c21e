import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { type emulate, live, startConverged, startDaemon } from './support.ts';

const head = 'version: 1\nproject: {id: 4711}\nsettings: {on_failure: back, prune: true, exclusive: true}\n';
const good = `${head}networks:\n  backend: {cidr: 10.20.0.0/24}\n`;
const size = 'server_type: sliders-1, image: ubuntu-24.04, cores: 1, memory_mb: 1024, disk_gb: 20';
/** The API creates the address, and refuses the server. */
const refused = `${good}ips:\n  web: {}\nservers:\n  web: {${size}}\n`;
const noServers = faultRule(
  { method: 'POST', path: '/servers' },
  { do: 'answer', status: 422, code: 'invalid' },
);

const sends = ({ emulator }: Awaited<ReturnType<typeof emulate>>, path: string) =>
  emulator.requests.filter(({ method, url }) => method === 'POST' && url.endsWith(path)).length;

describe('src/daemon/project/way-back.ts', () => {
  test('the last converged spec replaces a refused spec, with one report', async () => {
    const { api, daemon } = await startConverged(good, { faults: [noServers] });
    daemon.write(refused);
    const { spec } = await daemon.until(({ spec: { broken } }) => broken.length > 0);
    expect(JSON.stringify(spec.broken)).toContain('The last spec that converged is in force');
    await daemon.until(({ converged }) => converged);
    expect(live(api)).toMatchObject({ ips: [], servers: [] });
    expect(live(api).networks.map(({ name }) => name)).toContain('backend');
    const said = () => daemon.log().filter(({ msg }) => msg === 'returned to the last spec that converged');
    expect(said()).toHaveLength(1);
    // The same file does not bring the refused spec back, and neither does a restart.
    await daemon.end();
    const again = await startDaemon(api, { folder: daemon.folder });
    const { spec: resumed } = await again.until(({ converged }) => converged);
    expect(resumed.broken).toHaveLength(1);
    expect(sends(api, '/ips')).toBe(1);
    again.write(refused.replace('web: {server', 'db: {server').replace('ips:\n  web: {}\n', ''));
    await again.until(({ spec: { broken }, converged }) => broken.length === 1 && converged);
    again.write(`${good}isos: {}\n`);
    await again.until(({ spec: { broken }, converged }) => broken.length === 0 && converged);
  }, 180_000);

  test('resources that the refused spec adopted stay, and are released', async () => {
    const { api, daemon } = await startConverged(good, { faults: [noServers] });
    const { id } = api.emulator.mutate({ do: 'add_ip' }) as { id: number };
    api.emulator.mutate({ do: 'add_network', name: 'old', cidr: '10.9.0.0/24' });
    const adopted = `  old: {cidr: 10.9.0.0/24}\nips:\n  mine: {id: ${id}}\n  web: {}\n`;
    daemon.write(`${good}${adopted}servers:\n  web: {${size}}\n`);
    await daemon.until(({ spec: { broken } }) => broken.length > 0);
    const view = await daemon.until(({ converged }) => converged);
    expect(live(api).ips.map((each) => each.id)).toEqual([id]);
    expect(live(api).networks.map(({ name }) => name)).toContain('old');
    expect(view.idle).toMatchObject([{ id: String(id) }]);
  }, 180_000);

  test('a crash during the return to the last spec does not apply the refused spec again', async () => {
    const slow = faultRule({ method: 'DELETE', path: '/ips/*' }, { do: 'slow', ms: 120_000 });
    const { api, daemon } = await startConverged(good, { faults: [noServers, slow] });
    daemon.write(refused);
    await expect
      .poll(() => api.emulator.requests.some(({ method }) => method === 'DELETE'), { timeout: 60_000 })
      .toBe(true);
    await daemon.end('SIGKILL');
    const bought = sends(api, '/ips');
    const again = await startDaemon(api, { folder: daemon.folder });
    const { spec } = await again.until(({ converged }) => converged);
    expect(spec.broken).toHaveLength(1);
    expect([sends(api, '/ips'), live(api).ips]).toEqual([bought, []]);
  }, 180_000);

  test('a spec that has deleted an address stays in force', async () => {
    const { api, daemon } = await startConverged(`${good}ips:\n  old: {}\n`, { faults: [noServers] });
    daemon.write(`${good}servers:\n  web: {${size}}\n`);
    await daemon.until(({ condition }) => condition === 'blocked');
    await expect.poll(() => live(api).ips.length, { timeout: 60_000 }).toBe(0);
    await expect
      .poll(() => daemon.log().map(({ msg }) => msg), { timeout: 60_000 })
      .toContain('no way back: a change cannot be undone wholly');
    const { spec } = await daemon.until(({ condition }) => condition === 'blocked');
    expect(spec.broken).toEqual([]);
    // The next spec has no loss of its own, and the last spec that converged is older than the loss.
    daemon.write(`${good}ips:\n  other: {}\nservers:\n  web: {${size}}\n`);
    await expect.poll(() => live(api).ips.length, { timeout: 60_000 }).toBe(1);
    await expect
      .poll(() => daemon.log().map(({ msg }) => msg), { timeout: 60_000 })
      .toContain('no way back: the project was changed after the last spec that converged');
    await daemon.until(({ condition }) => condition === 'blocked');
    expect(daemon.log().map(({ msg }) => msg)).not.toContain('returned to the last spec that converged');
    expect(live(api).ips).toHaveLength(1);
  }, 180_000);
});
