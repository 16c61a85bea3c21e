import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { RecordedSpan } from '../support/trace-recorder.ts';
import { ended, folderWith, shop, start } from './run.ts';

const recorder = pathToFileURL(join(import.meta.dirname, '../support/trace-recorder.ts')).href;
const traceId = '0af7651916cd43dd8448eb211c80319c';
const caller = { traceId, spanId: 'b7ad6b7169203331' };

/** Runs a command with the recorder as its SDK; gives what the SDK was handed. */
async function spansOf(args: readonly string[], env: Record<string, string>, cwd: string) {
  const file = join(cwd, 'spans');
  const child = start(args, {
    cwd,
    env: { NODE_OPTIONS: `--import ${recorder}`, OTEL_TEST_FILE: file, ...env },
  });
  const { code, stderr } = await ended(child);
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  return { code, stderr, spans: lines.map((line) => JSON.parse(line) as RecordedSpan) };
}

describe('src/platform/open-telemetry.ts', () => {
  test('an apply is one trace below the calling job: reconcile, plan, intent, request', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
    const { code, stderr, spans } = await spansOf(
      ['apply', '--emulator', '--yes'],
      { TRACEPARENT: traceparent },
      cwd,
    );
    expect([code, stderr]).toEqual([0, expect.anything()]);
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const above = (span: RecordedSpan) => spans.find(({ spanId }) => spanId === span.parentId);
    const [reconcile, ...others] = spans.filter(({ name }) => name === 'reconcile');
    expect(others).toEqual([]);
    expect(reconcile).toMatchObject({ parentId: caller.spanId, attributes: { 'vdcsync.project': 4711 } });
    const plans = spans.filter(({ name }) => name === 'plan');
    expect(plans.map((plan) => above(plan)?.name)).toEqual(plans.map(() => 'reconcile'));
    expect(plans.length).toBeGreaterThan(1);
    const intents = spans.filter(({ name }) => name.startsWith('intent '));
    const keys = intents.map(({ attributes }) => attributes['vdcsync.key']);
    expect(keys).toEqual(expect.arrayContaining(['networks.backend', 'ips.web', 'servers.web-1']));
    expect(new Set(keys).size).toBe(keys.length);
    for (const intent of intents) {
      expect(above(intent)?.name).toBe('reconcile');
      expect(intent.attributes['vdcsync.outcome']).toBe('done');
    }
    const [creation, ...more] = spans.filter(({ name }) => name === 'POST /servers');
    expect(more).toEqual([]);
    expect(creation?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.response.status_code': 202,
      'vdcsync.budget': 'writes',
    });
    expect(creation && above(creation)?.name).toBe('intent create server');
    // Names have no ids in them, and each span hangs in the tree.
    expect(spans.filter(({ name }) => /\d/.test(name))).toEqual([]);
    expect(spans.filter((span) => above(span) === undefined && span !== reconcile)).toEqual([]);
  });

  test('a plan has its own span, and an invalid trace parent is ignored', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const { spans } = await spansOf(['plan', '--emulator'], { TRACEPARENT: '00-nonsense' }, cwd);
    const plan = spans.find(({ name }) => name === 'plan');
    expect(plan?.parentId).toBe(null);
    expect(spans.filter(({ name }) => name === 'GET /project').map(({ parentId }) => parentId)).toContain(
      plan?.spanId,
    );
  });

  test.each([
    { OTEL_SDK_DISABLED: 'true' },
    { OTEL_TRACES_EXPORTER: 'none' },
  ])('%o disables tracing', async (env) => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const { code, spans } = await spansOf(['plan', '--emulator'], env as Record<string, string>, cwd);
    expect([code, spans]).toEqual([0, []]);
  });

  test('tracing variables have no effect without an SDK', async () => {
    const cwd = folderWith({ 'vdcsync.yaml': shop });
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    const { code } = await ended(start(['plan', '--emulator'], { cwd, env }));
    expect(code).toBe(0);
  });
});
