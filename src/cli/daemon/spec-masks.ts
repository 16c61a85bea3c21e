import type { Desired } from '../../core/desired.ts';
import { Mask } from '../../core/environment-mask.ts';

/** Masks of one spec: a line of the log may still be about the values before the last change. */
const keptPerSpec = 2;

/** Masks the values of the environment in the log of a daemon, for every spec that the daemon has read. */
export class SpecMasks {
  readonly #bySpec = new Map<string, readonly { readonly digest: string; readonly mask: Mask }[]>();

  /** Specs that have not changed stay the same values. */
  readonly #learned = new WeakSet<Desired>();

  /** @param name of the spec, such as its file */
  learn(name: string, desired: Desired): void {
    if (this.#learned.has(desired)) return;
    this.#learned.add(desired);
    const mask = new Mask(desired);
    const known = this.#bySpec.get(name) ?? [];
    if ((mask.isEmpty && known.length === 0) || known[0]?.digest === desired.digest) return;
    this.#bySpec.set(name, [{ digest: desired.digest, mask }, ...known].slice(0, keptPerSpec));
  }

  apply(text: string, isSentence: boolean): string {
    let masked = text;
    for (const { mask } of [...this.#bySpec.values()].flat())
      masked = isSentence ? mask.text(masked) : mask.longOnly(masked);
    return masked;
  }
}
