import { describe, expect, test } from 'vitest';
import { type CommonFlags, callFlags } from '../../src/cli/flags.ts';
import { command, commandLine } from '../../src/core/remedy.ts';

describe('src/cli/flags.ts', () => {
  const told = (flags: CommonFlags, env = {}) =>
    commandLine(command('adopt', ['ips.web']), callFlags(flags, env));

  test('a suggested command has the flags of the call', () => {
    expect(told({ emulator: true, file: ['my shop.yaml'], overlay: ['prod.yaml'], prices: 'p.yaml' })).toBe(
      "vdcsync adopt --emulator -f 'my shop.yaml' --overlay prod.yaml --prices p.yaml ips.web",
    );
    expect(told({})).toBe('vdcsync adopt ips.web');
    // `adopt` takes a bare name for a mistake if there is no state of that name yet.
    expect(told({ state: 'shop' })).toBe('vdcsync adopt --state ./shop ips.web');
    expect(told({ state: 'shop.db' })).toBe('vdcsync adopt --state shop.db ips.web');
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
  ])('a suggested command shows no secret of a database state (VDCSYNC_STATE=%s, --state %s)', (known, state, word) => {
    expect(callFlags({ state }, { VDCSYNC_STATE: known })).toBe(` --state ${word}`);
  });
});
