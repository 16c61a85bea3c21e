import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { planSchema } from '../../src/core/plan-schema.ts';
import { folderWith, oneNetwork } from '../cli/run.ts';
import { emulate, live, startDaemon } from './support.ts';

const edited = oneNetwork.replace('networks:', 'networks:\n  extra: { cidr: 10.30.0.0/24 }');

/** A policy that records its plans and its variables, and accepts plans once the file `accept` is there. */
const policy = `#!/bin/sh
cat >> plans; env > variables
test -f accept && exit 0
echo not today >&2; exit 1
`;

describe('src/daemon/project/plan-check.ts', () => {
  test('a refused plan is not applied, is reported once, and is checked again after a change', async () => {
    const api = await emulate();
    const folder = folderWith({ policy });
    chmodSync(join(folder, 'policy'), 0o755);
    const daemon = await startDaemon(api, {
      ...{ folder, spec: oneNetwork, args: ['--check-command', './policy'] },
      env: { KEPT: 'kept', PATH: process.env.PATH ?? '' },
    });
    const plans = () =>
      readFileSync(join(folder, 'plans'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => planSchema.parse(JSON.parse(line)));
    const names = () => live(api).networks.map(({ name }) => name);
    const reports = () => daemon.log().filter(({ msg }) => msg === 'plan refused by the check command');

    const { blocked: found } = await daemon.until(({ condition }) => condition === 'blocked');
    expect(found).toMatchObject([{ key: 'networks.backend', code: 'check_refused' }]);
    await daemon.reconciled(3);
    expect([plans().length, reports().length, names().includes('backend')]).toEqual([1, 1, false]);
    expect(reports()[0]?.reason).toContain('not today');

    daemon.write(edited);
    await expect.poll(() => reports().length).toBe(2);
    expect(
      plans()[1]
        ?.operations.map(({ key }) => key)
        .sort(),
    ).toEqual(['networks.backend', 'networks.extra']);
    const blocked = () => daemon.notified.filter(({ condition }) => condition === 'blocked');
    await expect.poll(blocked).toHaveLength(2);
    expect(blocked()[0]?.detail).toContain('not today');
    expect(blocked()[1]?.detail.split('\n')).toHaveLength(1);

    // The plan is the same, and the policy is not.
    writeFileSync(join(folder, 'accept'), '');
    daemon.child.kill('SIGHUP');
    await daemon.until(({ converged }) => converged);
    expect(names()).toEqual(expect.arrayContaining(['backend', 'extra']));
    const variables = readFileSync(join(folder, 'variables'), 'utf8');
    expect(variables).toContain('KEPT=kept');
    expect(variables).not.toMatch(/^VDC/m);
  });

  test('a hanging command delays neither the end of the daemon nor a newer spec', async () => {
    const api = await emulate();
    const command = 'touch asked; grep -q extra || { sleep 600; true; }';
    const daemon = await startDaemon(api, { spec: oneNetwork, args: ['--check-command', command] });
    const isAsked = async () => existsSync(join(daemon.folder, 'asked'));
    await expect.poll(isAsked).toBeTruthy();
    daemon.write(edited);
    await daemon.until(({ converged }) => converged);
    daemon.write(oneNetwork.replace('10.20.', '10.40.').replace('backend', 'other'));
    await daemon.until(({ operations }) => operations.some(({ key }) => key === 'networks.other'));
    expect(await daemon.end()).toBe(0);
  });

  test('a daemon in mode observe runs no check command', async () => {
    const api = await emulate();
    const args = ['--mode', 'observe', '--check-command', 'touch asked'];
    const daemon = await startDaemon(api, { spec: oneNetwork, args });
    await daemon.until(({ condition }) => condition === 'drifting');
    expect(existsSync(join(daemon.folder, 'asked'))).toBe(false);
  });
});
