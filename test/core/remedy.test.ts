import { describe, expect, test } from 'vitest';
import type { ResourceKey } from '../../src/core/keys.ts';
import type { Subject } from '../../src/core/kind.ts';
import { command, edit, outside, remedyText, resolveText, stepsOf } from '../../src/core/remedy.ts';
import { restoring } from '../../src/core/restoring.ts';

const key = 'servers.web' as ResourceKey;

describe('src/core/remedy.ts', () => {
  test('a command is quoted, and has the flags of the call before its arguments', () => {
    const adopt = command('adopt', [key, 'a b'], { when: 'if it is this' });
    expect(remedyText(adopt)).toBe("vdcsync adopt servers.web 'a b' (if it is this)");
    expect(remedyText(adopt, " -f 'my shop.yaml'")).toBe(
      "vdcsync adopt -f 'my shop.yaml' servers.web 'a b' (if it is this)",
    );
  });

  test('an edit is one sentence, with the values as YAML', () => {
    const text = (how: Parameters<typeof edit>[1]) => remedyText(edit(key, how));
    expect(text({ set: { replace: 'allowed' }, remove: ['id'] })).toBe(
      'write `replace: allowed` and remove `id` in servers.web',
    );
    expect(text({ choose: { image: ['a', 'b'], cores: [] } })).toBe(
      'set `image` to one of a, b and `cores` in servers.web',
    );
    expect(text({ choose: { ssh_keys: [] }, at: ['shop.yaml:4:5'] })).toBe(
      'correct `ssh_keys` at shop.yaml:4:5',
    );
    expect(text({ entry: 'restore', set: { protect: false } })).toBe(
      'put servers.web back into the spec with `protect: false`',
    );
    expect(remedyText(edit('settings', { set: { prune: true } }))).toBe(
      'write `prune: true` under `settings`',
    );
  });

  test('an edit is restored in the words of its entry', () => {
    const was = (from: unknown) => restoring([{ path: 'public_ipv4', from, to: 'ips.other' }], key);
    expect(was('ips.server-2001').set).toEqual({ public_ipv4: { ip: 'server-2001' } });
    expect(was('new').set).toEqual({ public_ipv4: { new: true } });
    expect(was(null)).toEqual(edit(key, { remove: ['public_ipv4'] }));
    const changes = [
      { path: 'cores', from: 2, to: 4 },
      { path: 'plan_id', from: null, to: 52 },
    ];
    expect(restoring(changes, key)).toEqual(edit(key, { set: { cores: 2 }, remove: ['plan_id'] }));
  });

  test('an address that has left the spec is restored with the field that names it', () => {
    const ip = 'ips.a' as ResourceKey;
    const next = (subject: Partial<Subject>) =>
      restoring(
        [{ path: 'public_ipv4', from: ip, to: 'ips.b' }],
        key,
        new Map([[ip, { key: ip, ...subject } as Subject]]),
      ).next;
    expect(next({})).toEqual([edit(ip, { entry: 'restore' })]);
    const renamed = { key: 'ips.z', desired: {}, binding: { formerKeys: [ip] } } as never;
    expect(
      restoring(
        [{ path: 'public_ipv4', from: ip, to: 'new' }],
        key,
        new Map([['ips.z' as ResourceKey, renamed]]),
      ),
    ).toEqual(edit(key, { set: { public_ipv4: { ip: 'z' } } }));
    expect(next({ desired: {} as NonNullable<Subject['desired']> })).toBeUndefined();
  });

  test('another server that names the restored address by now chooses another one', () => {
    const [ip, app] = ['ips.a', 'servers.app'] as ResourceKey[] as [ResourceKey, ResourceKey];
    const asks = (at: ResourceKey) =>
      ({ key: at, desired: { value: { public_ipv4: { ip: 'a' } } } }) as never;
    const subjects = new Map([
      [ip, { key: ip, desired: { value: {} } } as never],
      [key, asks(key)],
      [app, asks(app)],
    ]);
    const { next } = restoring([{ path: 'public_ipv4', from: ip, to: 'new' }], key, subjects);
    expect(next).toEqual([edit(app, { choose: { public_ipv4: [] } })]);
    subjects.delete(app);
    expect(restoring([{ path: 'public_ipv4', from: ip, to: 'new' }], key, subjects).next).toBeUndefined();
  });

  test('the next steps are part of one remedy, and a bar separates other remedies', () => {
    const pay = outside('pay the open invoice', { next: [command('apply')] });
    expect(resolveText([pay, command('plan')])).toBe(
      'pay the open invoice; then vdcsync apply | vdcsync plan',
    );
    expect(stepsOf([pay]).map(({ type }) => type)).toEqual(['outside', 'run']);
  });
});
