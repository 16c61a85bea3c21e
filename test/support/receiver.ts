import { text } from 'node:stream/consumers';
import { serving } from './serving.ts';

/** Receives notifications over HTTP until the test ends. */
export async function receiver<Body>(): Promise<{ readonly url: string; readonly bodies: readonly Body[] }> {
  const bodies: Body[] = [];
  const url = await serving(async (incoming, outgoing) => {
    bodies.push(JSON.parse(await text(incoming)) as Body);
    outgoing.end();
  });
  return { url: `${url}/`, bodies };
}
