import type { Clock } from '../../core/clock.ts';
import type { Position, TokenPlace } from '../../core/desired.ts';
import { ConfigError, type Diagnostic } from '../../core/errors.ts';
import { SerialQueue } from '../../core/work.ts';
import { allowedEnvironment, type Environment, type SpecTrust } from '../../spec/environment.ts';
import type { Source } from '../../spec/load.ts';
import type { Offer } from '../../view/facts.ts';
import { fileProblem, markOf, type Snapshot, type SpecText } from './source.ts';
import { mostReadingMs, SpecThread } from './spec-thread.ts';
import type { SpecAnswer } from './spec-worker.ts';

/** One spec after reading: the desired state, or the reasons why the spec cannot be used. */
export type Taken =
  | { readonly name: string; readonly offer: Offer }
  | {
      readonly name: string;
      readonly problem: readonly Diagnostic[];
      /** The project that the spec names, if that part can be parsed. */
      readonly projectId?: number | undefined;
      /** The problem may end without a change of the spec. */
      readonly isTransient?: true;
    };

export interface IntakeOptions {
  readonly environment: Environment;
  readonly trust: SpecTrust;
  /** @throws ConfigError where there is no token that can be used */
  readonly checkToken: (place: TokenPlace | undefined) => void;
  /** Specs of earlier snapshots that are not read again, at most. Without it, those of the last snapshot. */
  readonly keeps?: number;
  /** Real time. */
  readonly clock: Clock;
  readonly deadlines?: Deadlines;
  /** The minimum of the operator: each plan waits for approval, also those of a spec that asks for less. */
  readonly requireApproval?: 'plan';
}

/** How long reading may take, in real ms: each spec, and all specs of one snapshot that have changed. */
const usualDeadlines = { eachMs: mostReadingMs, allMs: 60_000 };
export type Deadlines = Readonly<typeof usualDeadlines>;

/**
 * Reads every spec of a snapshot. A broken or slow spec does not affect the others: smaller specs are read first, and
 * unchanged specs are not read again.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #environment: Environment;
  readonly #thread: SpecThread;
  #known: ReadonlyMap<string, SpecAnswer> = new Map();
  readonly #queue = new SerialQueue();

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#environment = allowedEnvironment(options.environment, options.trust);
    this.#thread = new SpecThread(options.clock);
  }

  take(snapshot: Snapshot): Promise<readonly Taken[]> {
    return this.#queue.take(() => this.#take(snapshot));
  }

  async #take({ specs, commit }: Snapshot): Promise<readonly Taken[]> {
    const answers = await this.#answers(specs);
    return specs.map((spec): Taken => {
      if ('problem' in spec) return spec;
      const { name, sources } = spec;
      const files = sources.map(({ file }) => file);
      const [first = name] = files;
      const answer = answers.get(spec);
      if (answer === undefined) {
        const message = 'the file was not read, because the other files took too long. vdcsync tries again';
        return { name, problem: fileProblem(first, message), isTransient: true };
      }
      if ('problem' in answer) return { name, ...answer };
      if ('failure' in answer)
        return { name, problem: fileProblem(first, `the file cannot be used: ${answer.failure}`) };
      const { desired } = answer;
      const { projectId, token } = desired;
      const problem = this.#tokenProblem(token, token?.position ?? { file: first, line: 1, column: 1 });
      if (problem !== undefined) return { name, problem: [problem], projectId, isTransient: true };
      return { name, offer: { desired, commit, files } };
    });
  }

  async #answers(specs: readonly SpecText[]): Promise<ReadonlyMap<SpecText, SpecAnswer>> {
    const { trust, clock, deadlines = usualDeadlines } = this.#options;
    const texts = specs.flatMap((spec) => ('sources' in spec ? [spec] : []));
    const bySize = texts.toSorted((a, b) => size(a.sources) - size(b.sources));
    const endsAt = clock.monotonic() + deadlines.allMs;
    const known = new Map(this.#options.keeps === undefined ? [] : this.#known);
    const answers = new Map<SpecText, SpecAnswer>();
    for (const spec of bySize) {
      const { sources } = spec;
      const mark = markOf(spec);
      const before = this.#known.get(mark) ?? known.get(mark);
      if (before === undefined && clock.monotonic() >= endsAt) continue;
      const request = { sources, environment: this.#environment, trust };
      const answer = before ?? this.#withMinimum(await this.#thread.read(request, deadlines.eachMs));
      known.delete(mark);
      known.set(mark, answer);
      answers.set(spec, answer);
    }
    for (const mark of known.keys()) {
      if (known.size <= (this.#options.keeps ?? known.size)) break;
      known.delete(mark);
    }
    this.#known = known;
    this.#thread.rest();
    return answers;
  }

  #withMinimum(answer: SpecAnswer): SpecAnswer {
    const { requireApproval: approval } = this.#options;
    if (approval === undefined || !('desired' in answer)) return answer;
    const { desired } = answer;
    return { desired: { ...desired, settings: { ...desired.settings, approval } } };
  }

  #tokenProblem(token: TokenPlace | undefined, position: Position): Diagnostic | undefined {
    try {
      this.#options.checkToken(token);
      return undefined;
    } catch (error) {
      if (error instanceof ConfigError) return { position, message: error.message };
      return { position, message: `the token cannot be read: ${String(error)}` };
    }
  }
}

function size(sources: readonly Source[]): number {
  return sources.reduce((sum, { text }) => sum + text.length, 0);
}
