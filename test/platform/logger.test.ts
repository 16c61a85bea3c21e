import { describe, expect, test } from 'vitest';
import { createLogger, type LoggerOptions } from '../../src/platform/logger.ts';

function logged(
  options: Partial<LoggerOptions>,
  log: (logger: ReturnType<typeof createLogger>) => void,
): string[] {
  const lines: string[] = [];
  log(createLogger({ level: 'info', format: 'text', ...options, write: (line) => lines.push(line) }));
  return lines;
}

describe('src/platform/logger.ts', () => {
  test('writes allowed fields and drops all other fields', () => {
    const [line] = logged({ format: 'json' }, (logger) =>
      logger.info(
        { key: 'ips.web', status: 201, tokenNumber: 2, tokens: 3, surprise: 'canary', token: 'canary' },
        'answered',
      ),
    );
    expect(JSON.parse(line ?? '')).toEqual({
      level: 'info',
      time: expect.any(String),
      key: 'ips.web',
      status: 201,
      tokenNumber: 2,
      tokens: 3,
      msg: 'answered',
    });
  });

  test('writes the fields of operator commands and reconciliations', () => {
    const fields = { command: 'approve', spec: 'sha256:1', operations: 3 };
    const [line] = logged({ format: 'json' }, (logger) => logger.info(fields, 'reconciliation ended'));
    expect(JSON.parse(line ?? '')).toMatchObject(fields);
  });

  test('masks secrets inside allowed fields', () => {
    const [line] = logged({ format: 'json' }, (logger) =>
      logger.info(
        { detail: { token: 'canary', headers: { authorization: 'canary' }, deep: { secret: 'canary' } } },
        'x',
      ),
    );
    expect(line).not.toContain('canary');
    expect(line).toContain('[secret]');
  });

  test("removes control and direction characters from the server's text", () => {
    for (const format of ['json', 'text'] as const) {
      const [line] = logged({ format }, (logger) =>
        logger.warn({ reason: 'a\u001b[2Jb\r\nc\u202ed', error: new Error('e\u0007f') }, 'said \u001b[31mno'),
      );
      expect(line?.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]|\\u001b|\\u0007|\\r/u);
    }
  });

  test('writes the name, message and code of an error, without its stack or other fields', () => {
    const error = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', request: 'canary' });
    const [line] = logged({ format: 'json' }, (logger) => logger.error({ error }, 'failed'));
    expect(JSON.parse(line ?? '').error).toEqual({ name: 'Error', message: 'refused', code: 'ECONNREFUSED' });
  });

  test('the text format is one readable line', () => {
    const [line] = logged({ format: 'text' }, (logger) =>
      logger.info({ key: 'ips.web', reason: 'in use' }, 'waiting'),
    );
    expect(line).toMatch(/^\S+Z INFO {2}waiting key=ips\.web reason="in use"\n$/);
  });

  test('writes nothing below its level', () => {
    expect(logged({ level: 'warn' }, (logger) => logger.info('no'))).toEqual([]);
    expect(logged({ level: 'silent' }, (logger) => logger.fatal('no'))).toEqual([]);
  });
});
