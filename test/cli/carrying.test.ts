import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { type Call, carrying, carryingIo } from '../../src/cli/render/carrying.ts';
import type { Io } from '../../src/cli/terminal.ts';
import { folderWith, inProcess, oneNetwork } from './run.ts';

describe('commands that a text names', () => {
  const flags = { emulator: true, file: ['my shop.yaml'], prices: 'p.yaml' };

  test('carry the flags of the call, but for those they name themselves', () => {
    const told = carrying(flags, {});
    expect(told('vdcsync adopt ips.web 5001 (if it is this)')).toBe(
      "vdcsync adopt --emulator -f 'my shop.yaml' --prices p.yaml ips.web 5001 (if it is this)",
    );
    expect(told('next: vdcsync plan -f new.yaml')).toBe(
      'next: vdcsync plan -f new.yaml --emulator --prices p.yaml',
    );
    expect(carrying({}, {})('vdcsync apply')).toBe('vdcsync apply');
  });

  test.each([
    ['postgres://me:canary@db/x', 'postgres://me:canary@db/x?state=4711', '"$VDCSYNC_STATE?state=4711"'],
    ['postgres://me:canary@db/x?a=b', 'postgres://me:canary@db/x?a=b&state=7', '"$VDCSYNC_STATE&state=7"'],
    ['postgres://db/x?state=eu', 'postgres://db/x?state=eu&state=eu-7', '"$VDCSYNC_STATE&state=eu-7"'],
    ['postgres://db/x?state=eu', 'postgres://db/x', '"$VDCSYNC_STATE&state=default"'],
    ['postgres://me:canary@db/x', 'postgres://me:canary@db/x', '"$VDCSYNC_STATE"'],
    ['postgres://me:canary@db/y', 'postgres://me:canary@db/x?a=b&state=7', "'postgres://db/x?state=7'"],
    [undefined, 'postgres://me:canary@db/x', 'postgres://db/x'],
    [undefined, 'postgres://me:canary@/x?host=/run', "'postgres://…'"],
  ])('name a state in a database without what is secret (VDCSYNC_STATE=%s, --state %s)', (known, state, word) => {
    const carried = carrying({ state }, { VDCSYNC_STATE: known });
    expect(carried('vdcsync apply')).toBe(`vdcsync apply --state ${word}`);
    expect(carried(carried('vdcsync apply'))).toBe(`vdcsync apply --state ${word}`);
  });

  test('do so wherever they are told, and in no result that is for a program', () => {
    const say = (call: Call) => {
      const [stdout, stderr] = [new PassThrough(), new PassThrough()];
      const io = carryingIo({ stdout, stderr } as unknown as Io, () => call);
      io.stdout.write('vdcsync apply');
      io.stderr.write('vdcsync apply\n');
      io.stderr.write('2026-01-01T00:00:00.000Z WARN vdcsync apply\n');
      io.stderr.write('{"resolve":"vdcsync apply"}');
      return [stdout, stderr].map((each) => String(each.read()));
    };
    const logs =
      'vdcsync apply --emulator\n2026-01-01T00:00:00.000Z WARN vdcsync apply\n{"resolve":"vdcsync apply"}';
    expect(say({ command: 'plan', flags: { emulator: true } })).toEqual(['vdcsync apply --emulator', logs]);
    expect(say({ command: 'plan', flags: { emulator: true, format: 'json' } })).toEqual([
      'vdcsync apply',
      logs,
    ]);
    expect(say({ command: 'export', flags: { emulator: true } })).toEqual(['vdcsync apply', logs]);
  });

  test('also in errors', async () => {
    const cwd = folderWith({ 'shop.yaml': oneNetwork });
    await inProcess(['apply', '--yes', '--emulator', '-f', 'shop.yaml'], { cwd });
    const { stderr } = await inProcess(['forget', 'networks.x', '--emulator', '-f', 'shop.yaml'], { cwd });
    expect(stderr).toContain('vdcsync status --emulator -f shop.yaml lists its keys');
  });
});
