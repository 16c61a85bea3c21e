import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/core/plan.ts';
import { shop } from './run.ts';
import { emulated, type Workspace } from './workspace.ts';

async function plannedKeys(place: Workspace, words = 'plan'): Promise<readonly string[]> {
  const { operations }: Plan = await place.json(words);
  return operations.map(({ key }) => key).sort();
}

describe('src/cli: a part of the plan', () => {
  test.each([
    ['--target servers.web-1.firewall', ['ips.web', 'servers.web-1', 'servers.web-1.firewall']],
    ['--exclude networks.backend', ['ips.web', 'servers.web-1', 'servers.web-1.firewall']],
    ['--target networks.backend --target ips.web', ['ips.web', 'networks.backend']],
    ['--exclude servers.web-1 --exclude ips.web', ['networks.backend']],
  ])('--target also selects dependencies, and --exclude also excludes dependents: %s', async (flags, keys) => {
    expect(await plannedKeys(emulated(shop), `plan ${flags}`)).toEqual(keys);
  });

  test('a warning counts the changes that are left out', async () => {
    const { warnings, summary } = await emulated(shop).json('plan --target ips.web');
    expect(warnings).toMatchObject([{ code: 'left_out', message: expect.stringContaining('4 changes') }]);
    expect(summary.create).toBe(1);
  });

  test('apply carries out the selection alone, and an unknown key gets a suggestion', async () => {
    const place = emulated(shop);
    await place.out('apply --yes --target networks.backend');
    expect(await plannedKeys(place)).not.toContain('networks.backend');
    const again = await place.out('plan --target networks.backend');
    expect(again).toContain('Nothing to do in the selected part of project 4711.');
    const wrong = await place.refused(64, 'apply --yes --target networks.backnd');
    expect(wrong).toContain('did you mean networks.backend?');
  });

  test('apply of a saved plan refuses another selection', async () => {
    const place = emulated(shop);
    await place.out('plan --target ips.web --out part.json');
    await place.out('plan --out whole.json');
    expect(await place.refused(64, 'apply --yes --plan part.json --target networks.backend')).toContain(
      'part.json was made with --target ips.web, and this command has --target networks.backend. Remove these flags',
    );
    expect(await place.refused(64, 'apply --yes --plan whole.json --exclude ips.web')).toContain(
      'whole.json was made for the complete file, and this command has --exclude ips.web. Remove these flags',
    );
    await place.out('apply --yes --plan part.json');
    expect(await plannedKeys(place)).not.toContain('ips.web');
  });

  test('apply of a saved plan accepts the same selection', async () => {
    const place = emulated(shop);
    await place.out('plan --target ips.web --target networks.backend --out plan.json');
    await place.out('apply --yes --plan plan.json --target networks.backend --target ips.web');
  });
});

describe('src/cli/render/plan-svg.ts', () => {
  test('draws the graph of changes', async () => {
    const place = emulated(shop);
    await place.out('plan --format svg --out plan.svg');
    expect(place.read('plan.svg').match(/<g><title>/g)).toHaveLength(5);
    await place.out('apply --yes');
    expect(await place.out('plan --format svg')).toContain('nothing to do');
  });
});
