import { describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { renderBody } from '../../src/daemon/http/page.ts';
import { statusOf } from '../../src/daemon/http/status.ts';
import type { daemonStatusSchema } from '../../tools/daemon-status-schema.ts';
import { largeProject, largeProjects } from '../support/large-project.ts';

const mostBytes = 1024 * 1024;

type StatusPart = Pick<z.infer<typeof daemonStatusSchema>, 'projects' | 'next'>;

describe('src/daemon/http/pager.ts', () => {
  test.each(largeProjects)('every page of a large project in case %s is small', async (name) => {
    const { input } = await largeProject(2_000, name);
    for (const page of [1, 2, 5, 99]) {
      const text = String(await renderBody({ ...input, page }));
      expect(text.length).toBeLessThan(mostBytes);
    }
  });

  test('the pages of /status list every resource and every blocked operation once', async () => {
    const { daemon, facts } = await largeProject(2_000, 'leaving');
    const parts = await allPages(daemon);
    const keys = parts.flatMap(({ projects }) => projects.flatMap(({ resources }) => resources));
    expect(keys.map(({ key }) => key).sort()).toEqual(facts.known?.bindings.map(({ key }) => key).sort());
    const { daemon: other, facts: blocked } = await largeProject(2_000, 'blocked');
    const all = (await allPages(other)).flatMap(({ projects }) => projects.flatMap((each) => each.blocked));
    expect(all.map(({ key }) => key)).toEqual(blocked.plan?.blocked.map(({ key }) => key));
  });

  test('each page links to the next page, except for the last page', async () => {
    const { input } = await largeProject(2_000, 'blocked');
    const first = String(await renderBody(input));
    expect(first).toContain('/?project=4711&amp;page=2');
    const pages = Number(/Page 1 of (\d+)/.exec(first)?.[1]);
    const last = String(await renderBody({ ...input, page: pages }));
    expect(last).not.toContain(`page=${pages + 1}`);
    expect(last).toContain(`page=${pages - 1}`);
  });

  test('/status of several projects has the first entries of each project, and links to the others', async () => {
    const { facts, daemon } = await largeProject(2_000, 'leaving');
    const projects = Array.from({ length: 150 }, (_, at) => ({
      id: at,
      facts: async () => ({ ...facts, id: at }),
    }));
    const many = { ...daemon, projects: () => projects } as unknown as typeof daemon;
    const first = (await statusOf(many, '0.0.0', 0)) as StatusPart;
    expect(JSON.stringify(first).length).toBeLessThan(mostBytes);
    expect(first.projects).toHaveLength(50);
    expect(first.next).toBe('/status?page=2');
    expect(first.projects[3]?.next).toBe('/status?project=3');
    const second = (await statusOf(many, '0.0.0', 0, { page: 2 })) as StatusPart;
    expect(second.projects).toHaveLength(50);
    expect(second.next).toBe('/status?page=3');
    const one = (await statusOf(many, '0.0.0', 0, { project: '3' })) as StatusPart;
    expect(one.projects[0]?.resources).toHaveLength(100);
  });
});

/** Follows `next` to the end. */
async function allPages(daemon: Parameters<typeof statusOf>[0]): Promise<readonly StatusPart[]> {
  const parts: StatusPart[] = [];
  for (let next: string | null = '/status'; next !== null; ) {
    const query = new URL(next, 'http://localhost').searchParams;
    const page = Number(query.get('page') ?? 1);
    const project = query.get('project') ?? undefined;
    const part = (await statusOf(daemon, '0.0.0', 0, { project, page })) as StatusPart;
    parts.push(part);
    next = part.projects[0]?.next ?? null;
  }
  return parts;
}
