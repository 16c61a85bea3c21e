import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultRule } from '../../src/emulator/faults.ts';
import { KNOWN_OPERATIONS } from '../../src/emulator/profile.ts';
import type { Readings } from '../../src/emulator/readings.ts';
import { OpenApiDocument } from '../contract/document.ts';
import { share } from '../support/drawn.ts';
import { anyReadings, caller, imageOf, stage } from './support.ts';

interface Creation {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>> | undefined;
  /** Each field of the body in the API's document, and its type there. */
  readonly fields: Readonly<Record<string, string>>;
}

const document = OpenApiDocument.read();

/** The fields of a request, as schemas/openapi.yaml has them. */
function fieldsOf(request: string): Creation['fields'] {
  const properties = document.at(`/components/schemas/${request}/properties`) as Record<
    string,
    { type?: string }
  >;
  return Object.fromEntries(Object.entries(properties).map(([name, { type = 'object' }]) => [name, type]));
}

const image = await imageOf(stage().call, 3);
const gpuImage = await imageOf(stage().call, 8);
const sizes = { cores: 2, memory_mb: 4096, disk_gb: 40 };
const creations: readonly Creation[] = [
  { path: '/ips', body: { server_type_id: 3 }, fields: fieldsOf('IpRequest') },
  { path: '/networks', body: { name: 'a', cidr: '10.9.0.0/24' }, fields: fieldsOf('NetworkRequest') },
  { path: '/isos', body: { url: 'https://images.example/a.iso', name: 'a' }, fields: fieldsOf('IsoRequest') },
  {
    path: '/servers',
    body: { name: 's', server_type_id: 3, image, ...sizes, public_ipv4: { new: true }, ssh_keys: [101] },
    fields: fieldsOf('ServerRequest'),
  },
  {
    path: '/servers',
    body: {
      name: 'g',
      server_type_id: 8,
      image: gpuImage,
      gpu_package: 'l40s-1',
      public_ipv4: { reuse: true },
    },
    fields: fieldsOf('ServerRequest'),
  },
  {
    path: '/servers/2001/network-interfaces',
    body: { network_id: 32 },
    fields: fieldsOf('NetworkInterfaceRequest'),
  },
  { path: '/servers/2001/backups', body: undefined, fields: {} },
  {
    path: '/server-images',
    body: { server_id: 2001, name: 'golden' },
    fields: { server_id: 'integer', name: 'string' },
  },
];

const ofType: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  string: fc.string(),
  integer: fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
  boolean: fc.boolean(),
  object: fc.dictionary(fc.string(), fc.jsonValue()),
  array: fc.array(fc.jsonValue(), { maxLength: 3 }),
  null: fc.constant(null),
};

/** The body with one unknown field, and one documented field of a wrong type where it has any. */
function unfitBodies({ body, fields }: Creation): fc.Arbitrary<unknown> {
  const unknown = fc
    .string({ minLength: 1 })
    .filter((name) => !Object.hasOwn(fields, name))
    .chain((name) => fc.jsonValue().map((value) => [name, value] as const));
  const wrong =
    Object.keys(fields).length === 0
      ? fc.constant([] as const)
      : fc.constantFrom(...Object.keys(fields)).chain((name) => {
          const others = Object.entries(ofType).filter(([type]) => type !== fields[name]);
          return fc.oneof(...others.map(([, values]) => values)).map((value) => [[name, value] as const]);
        });
  return fc
    .tuple(unknown, wrong)
    .map(([extra, fields]) => Object.fromEntries([...Object.entries(body ?? {}), ...fields, extra]));
}

/** A server and a network that creations can be made in. */
function stageFor(given: Readings, faults: Parameters<typeof stage>[0] = {}) {
  const limits = { windowMs: 60_000, reads: 10_000, writes: 10_000 };
  const made = stage({ readings: given, profile: { limits, operations: KNOWN_OPERATIONS }, ...faults });
  made.emulator.mutate({ do: 'add_server', name: 'there' });
  made.emulator.mutate({ do: 'add_network', name: 'there', cidr: '10.8.0.0/24' });
  const send = caller(made.emulator);
  const post = ({ path }: Creation, body: unknown, key = 'key-00001') =>
    send('POST', path, body, { key, headers: { 'content-type': 'application/json' } });
  const things = () => {
    const { servers, ips, networks, isos, backups, images, tasks } =
      made.emulator.snapshot().projects[0] ?? {};
    return { servers, ips, networks, isos, backups, images, tasks };
  };
  return { ...made, post, things };
}

const anyCreation = fc.constantFrom(...creations);

describe('src/emulator/validate.ts', () => {
  test('with any reading, a body with an unknown field and a wrong type has no effect', async () => {
    const cases = anyCreation.chain((creation) => fc.tuple(fc.constant(creation), unfitBodies(creation)));
    await fc.assert(
      fc.asyncProperty(cases, anyReadings, async ([creation, body], given) => {
        const { post, things, clock, emulator } = stageFor(given);
        const before = things();

        for (let time = 0; time < 3; time += 1) {
          expect((await post(creation, body)).status).toBe(422);
          await clock.advance(10 * 60_000);
        }

        expect(things()).toEqual(before);
        expect(emulator.world.executions).toEqual([]);
      }),
      { numRuns: share(500), seed: 1 },
    );
  });

  test('with any reading, a body that matches the document has its effect', async () => {
    await fc.assert(
      fc.asyncProperty(anyCreation, anyReadings, async (creation, given) => {
        if (creation.path === '/server-images' && given.omittedIpv4 === 'new') return;
        const { post, emulator } = stageFor(given);

        expect((await post(creation, creation.body)).status).toBeLessThan(300);
        expect(emulator.world.executions.length).toBe(1);
      }),
      { numRuns: share(300), seed: 2 },
    );
  });
});

describe('src/emulator/idempotency.ts', () => {
  /** A step towards settling a creation: what is sent, whether it gets lost on its way, and what passes then. */
  const steps = fc.array(
    fc.record({
      body: fc.constantFrom('original' as const, 'unfit' as const),
      late: fc.constantFrom(null, { holdsKey: true }, { holdsKey: false }),
      afterMs: fc.constantFrom(0, 1_000, 40_000, 10 * 60_000),
    }),
    { minLength: 2, maxLength: 8 },
  );

  test('a key makes at most one purchase, and none after a replay has shown that the key is fenced', async () => {
    let bought = 0;
    let fenced = 0;
    await fc.assert(
      fc.asyncProperty(anyCreation, anyReadings, steps, async (creation, given, sent) => {
        const faults = sent.flatMap(({ late }, at) =>
          late === null
            ? []
            : [faultRule({ method: 'POST', nth: at + 1 }, { do: 'late', ms: 30_000, ...late })],
        );
        const { post, clock, emulator } = stageFor({ ...given, inFlightKey: waitless(given) }, { faults });
        let isFenced = false;
        for (const { body, afterMs } of sent) {
          const before = emulator.world.executions.length;
          const unfit = { ...creation.body, surprise: 1, ...wrongField(creation) };
          const answer = await post(creation, body === 'unfit' ? unfit : creation.body).catch(() => null);
          const isReplay = answer?.headers['idempotency-replayed'] === 'true';
          if (body === 'unfit' && isReplay && answer?.status === 422) {
            isFenced = true;
            expect(before).toBe(0);
          }
          await clock.advance(afterMs);
        }
        await clock.advance(60 * 60_000);
        const { length } = emulator.world.executions;
        expect(length).toBeLessThanOrEqual(isFenced ? 0 : 1);
        bought += length;
        fenced += isFenced ? 1 : 0;
      }),
      { numRuns: share(500), seed: 3 },
    );
    // Canaries: stories in which nothing is bought, or nothing is fenced, prove nothing.
    expect(bought).toBeGreaterThan(share(150));
    expect(fenced).toBeGreaterThan(share(50));
  });
});

/** Each request is awaited before time goes on, so none may wait for another. */
function waitless({ inFlightKey }: Readings): Readings['inFlightKey'] {
  return inFlightKey === 'wait' ? 'conflict' : inFlightKey;
}

function wrongField({ fields }: Creation): Record<string, unknown> {
  const [[name, type] = []] = Object.entries(fields);
  return name === undefined ? {} : { [name]: type === 'string' ? 7 : 'seven' };
}
