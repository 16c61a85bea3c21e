import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { planSchema } from '../../src/core/plan-schema.ts';
import { oneNetwork } from './run.ts';
import { emulated } from './workspace.ts';

const placed = (spec = oneNetwork, env = {}) =>
  emulated(spec, {}, { PATH: process.env.PATH ?? '', VDC_TOKEN: 'canary', KEPT: 'kept', ...env });

describe('src/cli/commands/apply.ts: apply --check-command', () => {
  test('the check command gets the plan as JSON, and accepts the plan with exit code 0', async () => {
    const place = placed();
    await place.out('apply --yes --check-command', 'cat > plan.json');
    const plan = planSchema.parse(JSON.parse(place.read('plan.json')));
    expect(plan.operations.map(({ key }) => key)).toEqual(['networks.backend']);
    expect(await place.managed()).toEqual(['networks.backend']);
  });

  test.each([
    ['a nonzero exit code', 'echo no such network; exit 1', 'no such network'],
    ['a missing command', 'no-such-program-at-all', 'no-such-program-at-all'],
    ['a signal', 'kill -9 $$', 'SIGKILL'],
    ['a command that leaves a program running', 'sleep 600 & echo left; exit 1', 'left'],
  ])('%s stops apply before any write, with the output and exit code 3', async (_what, command, text) => {
    const place = placed();
    expect(await place.refused(3, 'apply --yes --check-command', command)).toContain(text);
    expect(await place.managed()).toEqual([]);
    expect(await place.out('history')).not.toContain('networks.backend');
  });

  test('also checks a saved plan and destroy', async () => {
    const place = placed();
    await place.out('plan --out plan.json');
    await place.refused(3, 'apply --yes --plan plan.json --check-command false');
    await place.out('apply --yes');
    await place.refused(3, 'destroy --yes --check-command false');
    expect(await place.managed()).toEqual(['networks.backend']);
  });

  test('the check command gets all variables except those of vdcsync', async () => {
    const place = placed();
    await place.out('apply --yes --check-command', 'env > variables');
    const variables = place.read('variables');
    expect(variables).toContain('KEPT=kept');
    expect(variables).not.toContain('canary');
    const trust = { TOKEN_SHOP: 'canary', VDCSYNC_TOKEN_ENV_PREFIX: 'TOKEN_' };
    const owned = placed(oneNetwork.replace('id: 4711', 'id: 4711, token_env: TOKEN_SHOP'), trust);
    await owned.out('apply --yes --check-command', 'env > variables');
    expect(owned.read('variables')).not.toContain('canary');
  });

  test('does not check a plan without operations', async () => {
    const place = placed();
    await place.out('apply --yes');
    await place.out('apply --yes --check-command', 'touch asked; false');
    expect(existsSync(join(place.cwd, 'asked'))).toBe(false);
  });
});
