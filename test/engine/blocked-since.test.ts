import { describe, expect, test } from 'vitest';
import { applied } from '../support/rig.ts';

const head = (settings: string) => `settings: {exclusive: true, ${settings}}\n`;
const two = 'networks:\n  one: {cidr: 10.1.0.0/24}\n  two: {cidr: 10.2.0.0/24}\n';
const one = 'networks:\n  one: {cidr: 10.1.0.0/24}\n';
const minute = 60_000;

describe('src/engine/run/findings.ts', () => {
  test('a plan shows since when an operation is blocked, from the first run that found it', async () => {
    const played = await applied(head('prune: false') + two);
    const sinceOf = ({ blocked }: { blocked: readonly { code: string; since?: string }[] }) =>
      blocked.map(({ code, since }) => [code, since]);
    const planned = async (settings: string) => sinceOf(await played.plan(head(settings) + one));

    // A plan records nothing.
    expect(await planned('prune: false')).toEqual([['prune_disabled', undefined]]);
    const first = new Date(played.clock.now() + 10 * minute).toISOString();
    await played.clock.advance(10 * minute);
    expect(sinceOf(await played.apply(head('prune: false') + one))[0]?.[1]?.slice(0, 15)).toBe(
      first.slice(0, 15),
    );
    const [[, since]] = (await planned('prune: false')) as [[string, string]];
    await played.clock.advance(10 * minute);
    await played.apply(head('prune: false') + one);
    expect(await planned('prune: false')).toEqual([['prune_disabled', since]]);

    // Another reason has its own time.
    const other = 'prune: true, max_deletions: 0';
    expect(await planned(other)).toEqual([['max_deletions', undefined]]);
    await played.apply(head(other) + one);
    const [[, later]] = (await planned(other)) as [[string, string]];
    expect(Date.parse(later)).toBeGreaterThan(Date.parse(since) + 9 * minute);

    // A block that has ended begins again with a new time.
    await played.apply(head('prune: false') + two);
    await played.clock.advance(minute);
    await played.apply(head(other) + one);
    expect(Date.parse((await planned(other))[0]?.[1] ?? '')).toBeGreaterThan(Date.parse(later));
  });
});
