import type { Clock } from '../core/clock.ts';
import type { HttpResponse } from '../core/transport.ts';

/** The API's own time. The client measures the age of the API's timestamps with this clock. */
export interface ApiClock {
  /** Takes the time from an answer's `Date`, if the answer is the API's. */
  see(response: HttpResponse): void;
  /** Milliseconds since the epoch; the local clock until a `Date` was seen. */
  now(): number;
}

/**
 * The last `Date` header, advanced by the clock since.
 *
 * @assumption A35 `Date` is the clock of `created_at`
 */
export function createApiClock(clock: Clock): ApiClock {
  let seen: { readonly date: number; readonly at: number } | undefined;
  return {
    see: ({ headers }) => {
      const date = Date.parse(headers.date ?? '');
      // A proxy's page carries the proxy's time.
      if (Number.isFinite(date) && headers['x-request-id']) seen = { date, at: clock.monotonic() };
    },
    now: () => (seen === undefined ? clock.now() : seen.date + (clock.monotonic() - seen.at)),
  };
}
