import { describe, expect, test } from 'vitest';
import { parseBounded } from '../../src/api/answer.ts';
import { answer, rig } from './support.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

describe('src/api/answer.ts', () => {
  test('brackets in strings and brackets side by side add no level of nesting', () => {
    const text = JSON.stringify({ a: '['.repeat(500), 'b"\\': ['{{{{', ...Array(500).fill([{}])] });
    expect(parseBounded(text)).toEqual(JSON.parse(text));
    expect(parseBounded('{"a": ')).toBeUndefined();
  });

  test.each([65, 1_000, 1_000_000])('refuses %i levels of nesting', (levels) => {
    expect(parseBounded(nested(levels))).toBeUndefined();
    expect(parseBounded(`{"data": ${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`)).toBeUndefined();
  });

  test('with a deeply nested answer, a read fails, and a write counts as carried out', async () => {
    const body = `{"data": ${nested(200_000)}, "task": null}`;
    const { client, clock } = rig((request) => answer(request.method === 'GET' ? 200 : 201, body));
    await expect(clock.run(client.reads('operation').ips())).rejects.toThrow('the body is nested too deeply');
    const sent = client.writes.send({ name: 'allocate_ip', path: {}, body: {} }, 'key-of-some-length');
    expect(await clock.run(sent)).toMatchObject({
      ...{ type: 'answer', status: 201, malformed: 'the body is nested too deeply' },
    });
  });

  test('a refusal nested too deeply does not count as a refusal by the API', async () => {
    const { client, clock } = rig(() =>
      answer(422, `{"code": "x", "detail": ${nested(100)}}`, { 'content-type': 'application/problem+json' }),
    );
    const sent = client.writes.send({ name: 'allocate_ip', path: {}, body: {} }, 'key-of-some-length');
    expect(await clock.run(sent)).toMatchObject({ type: 'ambiguous', status: 422 });
  });

  test('shortens a header of thousands of characters and the list of a refusal before passing them on', async () => {
    const invalid_params = Array(5_000).fill({ name: 'x', reason: 'y' });
    const { client, clock } = rig(() =>
      answer(
        422,
        { code: 'invalid_request', invalid_params },
        { 'content-type': 'application/problem+json', 'x-request-id': 'r'.repeat(9_000) },
      ),
    );
    const sent = client.writes.send({ name: 'allocate_ip', path: {}, body: {} }, 'key-of-some-length');
    const result = (await clock.run(sent)) as { requestId: string; invalidParams: readonly unknown[] };
    expect(result.requestId).toBe(`${'r'.repeat(200)}…`);
    expect(result.invalidParams).toHaveLength(50);
  });
});
