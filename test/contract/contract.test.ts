import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { allRoutes } from '../../src/emulator/pipeline.ts';
import { DEFAULT_PROFILE } from '../../src/emulator/profile.ts';
import { document, seen } from './contract.ts';

// One test file for all sections, so that the last tests can see what the whole suite has exercised.
import './sections/common-rules.ts';
import './sections/bodies.ts';
import './sections/access.ts';
import './sections/limits.ts';
import './sections/idempotency.ts';
import './sections/ips.ts';
import './sections/isos.ts';
import './sections/networks.ts';
import './sections/servers.ts';
import './sections/gpu.ts';
import './sections/network-interfaces.ts';
import './sections/firewall.ts';
import './sections/backups.ts';
import './sections/catalogue.ts';
import './sections/readings.ts';

const OPERATIONS = document.operations.map(({ id }) => id);

/** The table of codes in §7, with the statuses that it shows. */
const CODES: Record<string, number | undefined> = {
  invalid_request: 422,
  insufficient_scope: 403,
  insufficient_privileges: 403,
  server_not_found: 404,
  server_type_not_found: 404,
  ip_in_use: 409,
  server_busy: 409,
  no_gpu_capacity: 409,
  firewall_no_public_iface: 409,
  image_not_supported: 422,
  resources_managed_by_package: 422,
  gpu_package_required: undefined,
  gpu_package_not_found: undefined,
  gpus_not_supported: undefined,
  disk_type_not_supported: undefined,
  server_type_not_supported: undefined,
};

describe('schemas/openapi.yaml', () => {
  test('describes exactly the operations of §4 that the emulator serves', () => {
    const served = allRoutes(DEFAULT_PROFILE).map(
      ({ method, path }) => `${method} ${path.replace(/[{]\w+[}]/, '{id}')}`,
    );
    expect(OPERATIONS.toSorted()).toEqual(served.toSorted());
  });

  test('has the codes of §7 with their statuses', () => {
    expect(Object.fromEntries(document.knownCodes.map(({ code, status }) => [code, status]))).toEqual(CODES);
  });

  test('has an example of each request that matches the schema', () => {
    const complaints = document.operations.flatMap((operation) => {
      const content = `${operation.pointer}/requestBody/content/application~1json`;
      if (document.find(content) === undefined || document.find(`${operation.pointer}/x-not-shown`))
        return [];
      const examples = Object.entries(
        document.at(`${content}/examples`) as Record<string, { value: unknown }>,
      );
      return examples.flatMap(([name, { value }]) =>
        document.complaints(`${content}/schema`, value).map((what) => `${operation.id} ${name}: ${what}`),
      );
    });
    expect(complaints).toEqual([]);
  });

  test('names an assumption of docs/contributing/assumptions.md wherever vdcsync takes a reading', () => {
    const assumptions = readFileSync(
      new URL('../../docs/contributing/assumptions.md', import.meta.url),
      'utf8',
    );
    const text = readFileSync(new URL('../../schemas/openapi.yaml', import.meta.url), 'utf8');
    const named = new Set(text.match(/\bA\d{1,2}\b/g));
    expect(named.size).toBeGreaterThan(20);
    expect([...named].filter((number) => !assumptions.includes(`- **${number}** `))).toEqual([]);
  });

  test('describes every undocumented part that carries x-not-shown', () => {
    const silent: string[] = [];
    const visit = (node: unknown, at: string): void => {
      if (typeof node !== 'object' || node === null) return;
      const { 'x-not-shown': notShown, description } = node as Record<string, unknown>;
      if (notShown === true && !/not shown/i.test(String(description))) silent.push(at);
      for (const [key, inner] of Object.entries(node)) visit(inner, `${at}/${key}`);
    };
    visit(document.at('/paths'), '/paths');
    visit(document.at('/components'), '/components');
    expect(silent).toEqual([]);
  });

  test('declares 400, 401, 500 on every operation and 415 on every write (§7)', () => {
    const missing = document.operations.flatMap((operation) =>
      [400, 401, 500, ...(operation.method === 'GET' ? [] : [415])]
        .filter((status) => document.find(`${operation.pointer}/responses/${status}`) === undefined)
        .map((status) => `${operation.id} ${status}`),
    );
    expect(missing).toEqual([]);
  });
});

// These are last, and need the whole file to have run: with a filter such as -t they are left out too.
describe('src/emulator: coverage of the contract tests', () => {
  test.each(OPERATIONS)('a success of %s', (operation) => {
    expect(seen.statuses(operation).filter((status) => status < 300)).not.toEqual([]);
  });

  test.each(Object.keys(CODES))('the code %s', (code) => {
    expect(seen.hasCode(code)).toBe(true);
  });

  test('every status class of §7', () => {
    const statuses = new Set(OPERATIONS.flatMap((operation) => seen.statuses(operation)));
    expect(
      [401, 402, 403, 404, 409, 415, 422, 429, 500, 503].filter((status) => !statuses.has(status)),
    ).toEqual([]);
    expect(seen.statuses('PATCH /project')).toEqual([405]);
  });
});
