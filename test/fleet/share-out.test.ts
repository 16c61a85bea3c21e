import { describe, expect, test } from 'vitest';
import { shareOut } from '../../src/daemon/fleet/share-out.ts';

const projects = Array.from({ length: 1_000 }, (_, index) => 4_711 + index);
const moved = (before: ReadonlyMap<number, string>, after: ReadonlyMap<number, string>) =>
  [...before].filter(([project, replica]) => after.get(project) !== replica).length;

describe('src/daemon/fleet/share-out.ts', () => {
  test('every project has one replica, no share exceeds an equal one, and the order of the lists says nothing', () => {
    const shares = shareOut(projects, ['a', 'b', 'c']);
    const sizes = ['a', 'b', 'c'].map((name) => [...shares.values()].filter((each) => each === name).length);
    expect(shares.size).toBe(1_000);
    expect(Math.max(...sizes)).toBe(334);
    expect(shareOut(projects.toReversed(), ['c', 'a', 'b'])).toEqual(shares);
    expect([...shareOut([1, 2], ['a', 'b']).values()].sort()).toEqual(['a', 'b']);
  });

  test('a replica that comes or goes, and a new project, move few projects of others', () => {
    const [three, four] = [shareOut(projects, ['a', 'b', 'c']), shareOut(projects, ['a', 'b', 'c', 'd'])];
    // A quarter has to.
    expect(moved(three, four)).toBeLessThan(450);
    expect(moved(three, shareOut([...projects, 9_999], ['a', 'b', 'c']))).toBeLessThan(50);
  });

  test('nobody has anything where no replica is alive', () => {
    expect(shareOut(projects, [])).toEqual(new Map());
  });
});
