import { describe, expect, test } from 'vitest';
import { warnedBy } from '../../support/resolve.ts';
import { applied, type Rig, rig, sliders } from '../../support/rig.ts';

const head = 'settings: {prune: true, max_deletions: 10}\n';
const web = (address: string) => `servers:\n  web: {${sliders}, public_ipv4: ${address}}\n`;
const one = `${head}ips:\n  one: {}\n`;

/** A project with an address that its server left behind. */
async function withKept(): Promise<Rig> {
  const played = await applied(`${head}${web('{new: true}').replace('}}', '}, keep_ip: true}')}`, head);
  return played;
}

async function told(played: Rig, spec: string): Promise<readonly string[]> {
  const { warnings } = await played.plan(spec);
  return warnings.filter(({ code }) => code === 'address_free').map(warnedBy);
}

describe('src/plan/warnings.ts: an address that no server of the spec asks for', () => {
  const forNobody = async (spec: string) =>
    (await rig().plan(spec)).warnings.filter(({ code }) => code === 'unused_address').map(({ key }) => key);

  test('is a warning before the purchase, and none once the address exists', async () => {
    expect(await forNobody(`${one}  two: {}\n${web('{ip: two}')}`)).toEqual(['ips.one']);
    const played = await applied(one);
    expect((await played.plan(one)).warnings).toEqual([]);
  });

  test.each([
    ['a server asks for any free address', one + web('{reuse: true}')],
    ['another file manages it', `${head}ips:\n  one: {managed: false, id: 5001}\n`],
    ['the address comes with its server', head + web('{new: true}')],
  ])('is no warning if %s', async (_name, spec) => {
    expect(await forNobody(spec)).toEqual([]);
  });
});

describe('src/plan/warnings.ts: an address that is free while another is bought', () => {
  test('is reported with the command that takes the address for the entry', async () => {
    const played = await withKept();

    expect(await told(played, one)).toEqual([expect.stringContaining('vdcsync adopt ips.one 5001')]);
    await played.adopt(one, 'ips.one', '5001');

    const { operations, warnings } = await played.plan(one);
    expect([operations, warnings]).toEqual([[], []]);
  });

  test('is reported by the name of its entry, if it has one', async () => {
    const played = await applied(one);

    expect(await told(played, one + web('{new: true}'))).toEqual([
      expect.stringContaining('write `public_ipv4: {ip: one}` in servers.web'),
    ]);
    expect(await told(played, one + web('{ip: one}'))).toEqual([]);
    expect(await told(played, `${one}  two: {}\n`)).toEqual([]);

    const two = `${one}  two: {}\n`;
    await played.apply(two);
    expect(await told(played, two + web('{new: true}')), 'none of several can be named').toEqual([
      expect.stringContaining('write `public_ipv4: {reuse: true}` in servers.web'),
    ]);
    const asked = web('{new: true}').replace(
      'servers:\n',
      `servers:\n  b: {${sliders}, public_ipv4: {ip: two}}\n`,
    );
    expect(await told(played, two + asked), 'another server waits for one of them').toEqual([]);
  });
});
