import { createServer } from 'node:https';
import { expect, test } from 'vitest';
import { selfSigned } from '../support/certificate.ts';
import { portOf } from '../support/serving.ts';
import { folderWith, inProcess } from './run.ts';

test('a rejected TLS certificate ends a command at once, and the error names a remedy', async () => {
  const server = createServer(selfSigned);
  let tried = 0;
  server.on('connection', () => {
    tried += 1;
  });
  const port = await portOf(server);

  const { code, stderr } = await inProcess(['plan'], {
    cwd: folderWith({ 'vdcsync.yaml': 'version: 1\nproject: {id: 4711}\n' }),
    env: { VDC_BASE_URL: `https://127.0.0.1:${port}/v1`, VDC_TOKEN: 'a-token-of-nobody' },
  });

  expect(code).toBe(1);
  expect(stderr).toContain('its certificate is self-signed');
  expect(stderr).toContain('NODE_EXTRA_CA_CERTS');
  expect(tried).toBe(1);
});
