import { describe, expect, test } from 'vitest';
import type { ProjectView } from '../../src/view/project-view.ts';
import { barsSvg, timelineOf } from '../../src/view/timeline.ts';

type Write = ProjectView['writes'][number];
const at = (minute: number) => new Date(Date.UTC(2026, 0, 5, 9, minute)).toISOString();

function write(key: string, kind: Write['kind'], from: number, to: number | null): Write {
  const closed = { phase: 'closed', outcome: to === null ? null : 'done', detail: null, request_id: null };
  const times = {
    queued_at: null,
    since: at(from),
    last_sent_at: at(from),
    closed_at: to === null ? null : at(to),
  };
  return { key, verb: 'create', kind, ...closed, ...times, public: kind === 'server' } as Write;
}

describe('src/view/timeline.ts', () => {
  const server = write('servers.web', 'server', 60, 62);
  const firewall = write('servers.web.firewall', 'firewall', 62, 64);

  test('a firewall shows how long its new public server was exposed', () => {
    const bars = timelineOf([firewall, server], 0);
    expect(bars.map(({ exposed }) => exposed)).toEqual([{ startMs: 120_000, endMs: 240_000 }, undefined]);
    expect(barsSvg(bars, 'x')).toContain('the server is exposed');
    const later = write('servers.web.firewall', 'firewall', 65, 66);
    expect(timelineOf([later, firewall, server], 0)[0]?.exposed).toBeUndefined();
  });

  test('only the last run is drawn, and a resend shows the time since the first send', () => {
    const again = { ...write('ips.b', 'ip', 60, 70), last_sent_at: at(65) };
    const bars = timelineOf([again, write('ips.a', 'ip', 1, 2)], 0);
    expect(bars).toEqual([
      expect.objectContaining({ id: 'create:ips.b', waits: [{ startMs: 0, endMs: 300_000 }] }),
    ]);
  });

  test('a write shows the wait for its turn and for the request limit', () => {
    const queued = { ...write('ips.b', 'ip', 65, 70), queued_at: at(60) };
    const bars = timelineOf([queued, write('ips.a', 'ip', 61, 62)], 0);
    expect(bars.find(({ id }) => id === 'create:ips.b')).toMatchObject({
      ...{ startMs: 0, endMs: 600_000, waits: [{ startMs: 0, endMs: 300_000 }] },
    });
    const svg = barsSvg(timelineOf([write('ips.a', 'ip', 0, 130)], 0), 'x');
    expect(svg).toContain('create ips.a: 0:00 to 2:10:00, done');
  });

  test('a write that has not ended lasts until now', () => {
    const [bar] = timelineOf([write('ips.a', 'ip', 1, null)], Date.parse(at(3)));
    expect(bar).toMatchObject({ endMs: 120_000, outcome: undefined });
  });
});
