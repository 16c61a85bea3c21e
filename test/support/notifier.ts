import type { HttpRequest } from '../../src/core/transport.ts';
import { TransportError } from '../../src/core/transport.ts';
import { Notifier, type NotifierOptions, type Receiver } from '../../src/daemon/notifications/notifier.ts';
import { quiet } from './project.ts';
import { virtualClock } from './virtual-clock.ts';

/** A notifier in virtual time whose receiver gives these answers, and 200 after them. */
export function notifierWith(
  answers: readonly (number | 'gone')[] = [],
  form: Receiver['form'] = 'json',
  options: Partial<NotifierOptions> = {},
) {
  const clock = virtualClock();
  const sent: HttpRequest[] = [];
  const notifier = new Notifier({
    receivers: [{ form, url: () => 'https://hooks.example.com/secret' }],
    transport: {
      send: async (request) => {
        const answer = answers[sent.length] ?? 200;
        sent.push(request);
        if (answer === 'gone') throw new TransportError('gone', 'none', 'ECONNREFUSED');
        return { status: answer, headers: {}, body: '' };
      },
      close: async () => {},
    },
    ...{ clock, log: quiet, onResult: () => {}, nameOf: () => undefined },
    ...options,
  });
  const bodies = () => sent.map(({ body }) => JSON.parse(body ?? '') as Record<string, unknown>);
  return { clock, notifier, bodies };
}
