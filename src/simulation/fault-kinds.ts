import type { FaultAction } from '../emulator/faults.ts';
import type { SpecModel } from './story.ts';

/** Every way in which an exchange of a write can go wrong, by name. */
export const writeFaults: Readonly<Record<string, FaultAction>> = {
  'reset before': { do: 'reset' },
  'reset after': { do: 'reset', effect: 'done' },
  'reset after, unstored': { do: 'reset', effect: 'done', stored: false },
  refused: { do: 'refuse' },
  truncated: { do: 'truncate' },
  malformed: { do: 'malformed' },
  'proxy page before': { do: 'html', status: 502 },
  'proxy page after': { do: 'html', status: 504, effect: 'done' },
  'redirect before': { do: 'redirect', status: 307 },
  'redirect after': { do: 'redirect', status: 302, effect: 'done', location: '/v1/elsewhere' },
  '500 before': { do: 'answer', status: 500 },
  '500 after': { do: 'answer', status: 500, effect: 'done' },
  '503 before': { do: 'answer', status: 503 },
  '503 after': { do: 'answer', status: 503, effect: 'done' },
  '502 before': { do: 'answer', status: 502, code: 'bad_gateway' },
  '504 after': { do: 'answer', status: 504, code: 'gateway_timeout', effect: 'done' },
  '409 with wait': { do: 'answer', status: 409, code: 'server_busy', retryAfter: 3 },
  '409 bare': { do: 'answer', status: 409, code: 'something_new' },
  '400': { do: 'answer', status: 400, code: 'bad' },
  '422': { do: 'answer', status: 422 },
  '405': { do: 'answer', status: 405, code: 'method_not_allowed' },
  '415': { do: 'answer', status: 415, code: 'unsupported_media_type' },
  '402': { do: 'answer', status: 402, code: 'payment_required' },
  '403': { do: 'answer', status: 403, code: 'insufficient_privileges' },
  '404': { do: 'answer', status: 404, code: 'not_found' },
  '401': { do: 'answer', status: 401, code: 'unauthorized' },
  '429': { do: 'answer', status: 429, retryAfter: 20 },
  '429 stored': { do: 'stored_429', retryAfter: 20 },
  slow: { do: 'slow', ms: 5_000 },
  'slower than the time-out': { do: 'slow', ms: 45_000 },
  late: { do: 'late', ms: 20_000 },
  'later than the time-out': { do: 'late', ms: 55_000 },
  'no task field': { do: 'omit_task' },
  decorated: {
    do: 'decorate',
    fields: { surprise: { nested: true } },
    status: 'dreaming',
    taskStatus: 'musing',
  },
  'task fails': { do: 'task', outcome: 'fail', leaves: 'nothing' },
  'task fails, all there': { do: 'task', outcome: 'fail', leaves: 'everything' },
  'task fails, address left': { do: 'task', outcome: 'fail', leaves: 'partial' },
  'task stuck': { do: 'task', outcome: 'stuck' },
  'task forgotten': { do: 'task', outcome: 'forgotten' },
  'no capacity': { do: 'no_gpu_capacity' },
  suspended: { do: 'standing', standing: 'suspended' },
  unpaid: { do: 'standing', standing: 'unpaid' },
};

/** Ways that only stories of slow work and late requests take up. */
export const slowFaults: Readonly<Record<string, FaultAction>> = {
  'task slow': { do: 'task', ms: 9 * 60_000 },
  'task fails, shown later': { do: 'task', outcome: 'fail', leaves: 'later', laterMs: 5 * 60_000 },
  'late, on its way': { do: 'late', ms: 40_000, holdsKey: false },
  'very late, on its way': { do: 'late', ms: 10 * 60_000, holdsKey: false },
  'very late, in flight': { do: 'late', ms: 4 * 60_000 },
};

/** The same for reads. */
export const readFaults: Readonly<Record<string, FaultAction>> = {
  reset: { do: 'reset' },
  refused: { do: 'refuse' },
  truncated: { do: 'truncate' },
  malformed: { do: 'malformed' },
  'proxy page': { do: 'html', status: 502 },
  redirect: { do: 'redirect' },
  '500': { do: 'answer', status: 500 },
  '503': { do: 'answer', status: 503, retryAfter: 5 },
  '404': { do: 'answer', status: 404, code: 'not_found' },
  '401': { do: 'answer', status: 401, code: 'unauthorized' },
  '429': { do: 'answer', status: 429, retryAfter: 15 },
  slow: { do: 'slow', ms: 35_000 },
  stale: { do: 'stale', ms: 55_000 },
  'list cut off': { do: 'truncate_list', keep: 1 },
  'list empty': { do: 'truncate_list', keep: 0 },
  decorated: { do: 'decorate', fields: { surprise: 1 }, status: 'dreaming' },
};

const empty: SpecModel = {
  settings: { prune: true, max_deletions: 10, exclusive: true },
  networks: {},
  ips: {},
  isos: {},
  servers: {},
};
const server = { server_type: 'sliders-1', cores: 2, memory_mb: 4096, disk_gb: 40, image: 'ubuntu-24.04' };
const firewall = {
  enabled: true,
  policy_in: 'drop',
  rules: [{ direction: 'in', action: 'accept', enabled: true, protocol: 'tcp', destination_port: '22' }],
};

/** The smallest files in which each operation is needed once; the second version takes all away again. */
export const subjects: Readonly<Record<string, readonly SpecModel[]>> = {
  ip: [{ ...empty, ips: { web: {} } }, empty],
  many: [
    {
      ...empty,
      settings: { ...empty.settings, max_deletions: 100 },
      ips: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`ip-${at}`, {}])),
    },
  ],
  network: [{ ...empty, networks: { backend: { cidr: '10.20.0.0/24' } } }, empty],
  iso: [{ ...empty, isos: { rescue: { url: 'https://mirror.example.com/a.iso' } } }, empty],
  server: [{ ...empty, servers: { web: { ...server, public_ipv4: { new: true } } } }, empty],
  'bare server': [{ ...empty, servers: { web: server } }, empty],
  parts: [
    {
      ...empty,
      networks: { backend: { cidr: '10.20.0.0/24' } },
      servers: {
        web: {
          ...server,
          public_ipv4: { new: true },
          network_interfaces: ['backend'],
          firewall,
          backup: { max_age: '24h' },
        },
      },
    },
    empty,
  ],
  gpu: [
    {
      ...empty,
      servers: {
        gpu: { server_type: 'gpu-fixed', gpu_package: ['l40s-2', 'l40s-1'], image: 'ubuntu-24.04' },
      },
    },
    empty,
  ],
};

const web = { ...server, public_ipv4: { new: true } };
const withServer = (more: Readonly<Record<string, unknown>>, beside: Partial<SpecModel> = {}): SpecModel => ({
  ...empty,
  ...beside,
  servers: { web: { ...web, ...more } },
});
const isos = { rescue: { url: 'https://mirror.example.com/a.iso' } };
const networks = { a: { cidr: '10.20.0.0/24' }, b: { cidr: '10.21.0.0/24' } };
const policy = (hour: number) => ({ enabled: true, days: ['mon'], hour, minute: 0, keep: 4 });
const rotating = withServer({ backup: { max_age: '24h', keep: 1 } });

/** The same for the fields that only a profile enables. */
export const profiledSubjects: Readonly<Record<string, readonly SpecModel[]>> = {
  drive: [withServer({ iso: 'rescue' }, { isos }), withServer({ iso: null }, { isos }), empty],
  backups: [rotating, rotating, rotating, empty],
  image: [withServer({}, { server_images: { golden: { server: 'web' } } }), empty],
  cards: [
    withServer({ network_interfaces: ['a', 'b'] }, { networks }),
    withServer({ network_interfaces: ['a'] }, { networks }),
    empty,
  ],
  policy: [withServer({ backup_policy: policy(3) }), withServer({ backup_policy: policy(5) }), empty],
  sizes: [withServer({}), withServer({ cores: 4 }), empty],
};
