import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { shop } from '../cli/run.ts';
import { emulate, startDaemon } from './support.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

function validator() {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  return ajv.compile(JSON.parse(read('schemas/daemon-status.schema.json')));
}

describe('src/daemon/http: what a daemon serves is what its references say', () => {
  test('/status fits its schema at every moment, and /metrics gives nothing undescribed', async () => {
    const fits = validator();
    const daemon = await startDaemon(await emulate(), { spec: shop });
    const look = async () => {
      const status = await daemon.status();
      expect([fits(status), fits.errors]).toEqual([true, null]);
      return status;
    };
    await daemon.until((project, status) => {
      expect([fits(status), fits.errors]).toEqual([true, null]);
      return project.condition === 'converged';
    });
    const converged = await look();
    expect(fits({ ...converged, projects: [{}] })).toBe(false);
    expect(fits({ ...converged, at: 'now' })).toBe(false);
    daemon.write('version: 1\nproject: { id: 4711 }\n');
    await daemon.until((project) => project.condition === 'blocked');
    await look();
    daemon.write('version: 2\n');
    await daemon.until((project) => project.spec.broken.length > 0);
    await look();

    const page = read('docs/reference/metrics.md');
    const text = await daemon.metrics();
    const described = [...text.matchAll(/^# TYPE (vdcsync_\w+) (\w+)$/gm)].filter(
      ([, name = '']) => !/^vdcsync_(process|nodejs)_/.test(name),
    );
    expect(described.length).toBeGreaterThan(20);
    for (const [, name, type] of described) expect(page).toContain(`- \`${name}\` (${type}`);
    for (const [, name = '', labels = ''] of text.matchAll(/^(vdcsync_\w+)\{([^}]*)\}/gm)) {
      const row = page.split('\n').find((line) => line.startsWith(`- \`${name}\` (`));
      if (row === undefined) continue;
      for (const [, label] of labels.matchAll(/(\w+)="/g)) expect(row).toContain(`\`${label}\``);
    }
  });
});
