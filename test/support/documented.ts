import { expect, onTestFinished } from 'vitest';
import type { HttpRequest, Transport } from '../../src/core/transport.ts';
import type { Emulator } from '../../src/emulator/emulator.ts';
import { OpenApiDocument } from '../contract/document.ts';
import { violations } from '../contract/violations.ts';

const baseUrl = 'http://127.0.0.1/v1';
let document: OpenApiDocument | undefined;

/**
 * The emulator's transport, with every answer held to the OpenAPI document. What a fault
 * rule or a profile makes of an answer is not the document's business. The test that it
 * runs in fails with whatever was found; outside of a test (a benchmark) nothing is checked.
 */
export function documented(emulator: Emulator): Transport {
  const inner = emulator.transport();
  if (process.env.VITEST === undefined) return inner;
  document ??= OpenApiDocument.read();
  const held = document;
  const found: string[] = [];
  onTestFinished(() => expect(found).toEqual([]));
  return {
    close: () => inner.close(),
    async send(request, options) {
      const answer = await inner.send(request, options);
      const { omitTaskField, ruleFields } = emulator.readings;
      const plain = emulator.faults.length === 0 && !omitTaskField && ruleFields === 'shown';
      if (plain && !isOfProfile(request)) found.push(...violations(held, baseUrl, request, answer));
      return answer;
    },
  };
}

/** What only a profile opens is nowhere in the document. */
function isOfProfile({ method, url }: HttpRequest): boolean {
  const call = `${method} ${new URL(url).pathname}`;
  return [
    /^GET \/v1\/servers(\/\d+)?$/,
    /^PUT \/v1\/servers\/\d+\/(resources|backup-policy)$/,
    /^DELETE \/v1\/servers\/\d+\/iso$/,
    /^DELETE \/v1\/servers\/\d+\/(backups|network-interfaces)\/.+$/,
  ].some((pattern) => pattern.test(call));
}
