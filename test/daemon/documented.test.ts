import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { shop } from '../cli/run.ts';
import { emulate, startDaemon } from './support.ts';

function validator() {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  const schema = new URL('../../schemas/daemon-status.schema.json', import.meta.url);
  return ajv.compile(JSON.parse(readFileSync(schema, 'utf8')));
}

describe('src/daemon/http/status.ts', () => {
  test('/status fits its schema at every moment', async () => {
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
  });
});
