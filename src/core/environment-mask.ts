import { hash } from 'node:crypto';
import type { Desired, MaskedText } from './desired.ts';
import { digestOf } from './json.ts';
import { asPattern, maskerOf } from './masking.ts';
import type { Operation, Plan, Warning } from './plan.ts';
import type { Remedy } from './remedy.ts';

/** A value of this length or more is masked inside other words too; a shorter value only as a whole word. */
const longLength = 8;
/** In sentences, a shorter value is not masked: it would match in every second number. */
const shortestWord = 3;

/** Shows `${env:NAME}` in the place of a value that came from the environment. */
export class Mask {
  readonly #exact: ReadonlyMap<string, string>;
  readonly #long: readonly MaskedText[];
  /** In JSON, in a URL, in Base64. */
  readonly #otherForms: (text: string) => string;
  readonly #words: readonly (readonly [RegExp, string])[];
  /** Values too short for a sentence, where quotes show that the sentence means a value. */
  readonly #quoted: readonly (readonly [RegExp, string])[];
  readonly #tokens: readonly (readonly [RegExp, string])[];

  constructor({ masked = [] }: Pick<Desired, 'masked'>) {
    const variants = masked.flatMap((each) => [each, { ...each, value: each.value.trim() }]);
    this.#exact = new Map(variants.map(({ value, shown }) => [value, shown]));
    this.#long = variants.filter(({ value }) => value.length >= longLength);
    this.#otherForms = maskerOf(masked.map(({ value }) => value));
    const short = variants.filter(({ value }) => value.length < longLength);
    this.#words = short.filter(({ value }) => value.length >= shortestWord).map(wordOf);
    this.#quoted = short
      .filter(({ value }) => value !== '' && value.length < shortestWord)
      .map(({ value, shown }) => [new RegExp(`(?<=(["'\`]))${asPattern(value)}(?=\\1)`, 'gu'), shown]);
    // A text that is derived from a value may contain a part of the value, such as one port of a list.
    this.#tokens = variants
      .flatMap(({ value, shown }) => value.split(/[\s,;]+/).map((part) => ({ value: part, shown })))
      .filter(({ value }) => value !== '')
      .map(wordOf);
  }

  /** Whether anything is masked at all. */
  get isEmpty(): boolean {
    return this.#exact.size === 0;
  }

  /** A sentence. */
  text(text: string): string {
    return [...this.#words, ...this.#quoted].reduce(
      (masked, [word, shown]) => masked.replace(word, () => shown),
      this.longOnly(text),
    );
  }

  /** A text in which short values have a meaning of their own, such as a command. */
  longOnly(text: string): string {
    const plain = this.#long.reduce(
      (masked, { value, shown }) => masked.replaceAll(value, () => shown),
      text,
    );
    return this.#otherForms(plain);
  }

  /** A field's value as a whole. */
  field(text: string): string {
    return this.#exact.get(text) ?? this.longOnly(text);
  }

  /** Every text inside a value. */
  deep<Value>(value: Value): Value {
    return mapTexts(value, (text) => this.field(text));
  }

  /**
   * Every text inside an entry of the file, except for names, ids and addresses, which never come from the
   * environment.
   */
  entry<Value>(value: Value): Value {
    return mapTexts(value, (text, name) => (identity.test(name) ? text : this.field(text)));
  }

  /** Every sentence inside a value. */
  sentences<Value>(value: Value): Value {
    return mapTexts(value, (text) => this.text(text));
  }

  operation({ changes, reason, traffic, loses, ...operation }: Operation): Operation {
    const list = (texts: readonly string[]) => [...new Set(texts.map((text) => this.#parts(text)))];
    return {
      ...operation,
      changes: this.deep(changes),
      ...(reason === undefined ? {} : { reason: this.text(reason) }),
      ...(loses === undefined ? {} : { loses: this.text(loses) }),
      ...(traffic === undefined
        ? {}
        : {
            traffic: { opened: list(traffic.opened), closed: list(traffic.closed), open: list(traffic.open) },
          }),
    };
  }

  /** Warnings of a firewall name the ports that it opens and closes. */
  warning({ message, remedies, ...warning }: Warning): Warning {
    const text = this.text(message);
    const isFirewall = warning.key?.endsWith('.firewall') === true;
    return {
      ...warning,
      message: isFirewall ? this.#parts(text) : text,
      ...(remedies === undefined ? {} : { remedies: this.remedies(remedies) }),
    };
  }

  /** Short values have a meaning of their own in a command. */
  remedies(remedies: readonly Remedy[]): readonly Remedy[] {
    return mapTexts(remedies, (text) => this.longOnly(text));
  }

  plan(plan: Plan): Plan {
    if (this.isEmpty) return plan;
    return {
      ...plan,
      operations: plan.operations.map((operation) => this.operation(operation)),
      blocked: plan.blocked.map(({ reason, remedies, ...each }) => ({
        ...each,
        reason: this.text(reason),
        remedies: this.remedies(remedies),
      })),
      warnings: plan.warnings.map((warning) => this.warning(warning)),
      cost: {
        ...plan.cost,
        unknown: plan.cost.unknown.map((each) => this.text(each)),
        left_billed: plan.cost.left_billed.map((each) => this.text(each)),
      },
    };
  }

  /** A text that is made of parts of values. */
  #parts(text: string): string {
    return this.#tokens.reduce((all, [word, shown]) => all.replace(word, () => shown), text);
  }
}

/** The digest of a spec for output: it has no salt, so it would confirm a guess of a value from the environment. */
export function publicDigest({ digest, masked }: Pick<Desired, 'digest' | 'masked'>): string | undefined {
  return masked === undefined ? digest : undefined;
}

/** Fields of the file that take nothing from the environment. */
const identity = /(^|_)ids?$|^(name|address|network|ip|server_type|image|cidr)$/;
/** The form of a digest, and of a sealed digest. */
const plainDigest = /^sha256:[0-9a-f]{64}$/;
const sealedDigest = /^sealed:[0-9a-f]{64}$/;
/** The form of a sealed text. */
const sealed = /^(.*) \[sealed:([0-9a-f]{64})\]$/s;
/** Fields that hold ids and addresses of the API. They are never sealed. */
const identifying = /(^|_)ids?$|^address$/;

/**
 * Keeps values of the environment out of a state. The state holds the masked text with a salted digest of the real
 * text instead. The digest recognises the real text only while the spec still contains it.
 */
export class Seal {
  readonly #mask: Mask;
  readonly #desired: Pick<Desired, 'masked' | 'resources'>;
  readonly #salt: string;
  #known: ReadonlyMap<string, string> | undefined;
  #entryDigests: ReadonlyMap<string, string> | undefined;

  /** @param salt of this state, so that equal values have different digests in different states */
  constructor(desired: Pick<Desired, 'masked' | 'resources'>, salt: string) {
    this.#mask = new Mask(desired);
    this.#desired = desired;
    this.#salt = salt;
  }

  close<Value>(value: Value): Value {
    if (this.#mask.isEmpty) return value;
    return mapTexts(value, (text, name) => {
      if (identifying.test(name) || sealed.test(text)) return text;
      // An unsalted digest of an entry would confirm a guess of its value.
      if (plainDigest.test(text)) return this.closedDigest(text);
      const shown = this.#mask.field(text);
      return shown === text ? text : `${shown} [sealed:${this.#digest(text)}]`;
    });
  }

  open<Value>(value: Value): Value {
    return mapTexts(value, (text) => {
      // Most texts: the expressions below take time in proportion to the length.
      if (!text.includes('sealed:')) return text;
      if (sealedDigest.test(text)) return this.#entries().get(text) ?? text;
      const [, shown, digest] = sealed.exec(text) ?? [];
      if (shown === undefined || digest === undefined) return text;
      return this.#texts().get(digest) ?? this.#filledIn(shown, digest) ?? text;
    });
  }

  /** A digest with the salt of the state. */
  closedDigest(digest: string): string {
    return this.#mask.isEmpty ? digest : `sealed:${this.#digest(digest)}`;
  }

  /** The recorded digest without its seal: `current()`, if the seal is of that digest. */
  openedDigest(recorded: string, current: () => string): string {
    if (!sealedDigest.test(recorded)) return recorded;
    const digest = current();
    return recorded === `sealed:${this.#digest(digest)}` ? digest : recorded;
  }

  /** The digests of the entries of the spec, by their sealed form. */
  #entries(): ReadonlyMap<string, string> {
    this.#entryDigests ??= new Map(
      [...this.#desired.resources.map(({ value }) => value ?? null), null].map((value) => {
        const digest = digestOf(value);
        return [`sealed:${this.#digest(digest)}`, digest];
      }),
    );
    return this.#entryDigests;
  }

  /** For text that is only shown: no digest. */
  text(text: string): string {
    return this.#mask.text(text);
  }

  #digest(text: string): string {
    return hash('sha256', `${this.#salt}\0${text}`);
  }

  /** Every text of the spec, by its digest: a value may have moved from a variable into the file. */
  #texts(): ReadonlyMap<string, string> {
    if (this.#known === undefined) {
      const known = new Map<string, string>();
      const learn = (text: string) => {
        known.set(this.#digest(text), text);
        return text;
      };
      for (const { value } of this.#desired.masked ?? []) learn(value);
      for (const { value } of this.#desired.resources) mapTexts(value, learn);
      this.#known = known;
    }
    return this.#known;
  }

  /** A text that was made of a value. */
  #filledIn(shown: string, digest: string): string | undefined {
    const text = (this.#desired.masked ?? []).reduce(
      (filled, each) => filled.replaceAll(each.shown, () => each.value),
      shown,
    );
    return this.#digest(text) === digest ? text : undefined;
  }
}

function wordOf({ value, shown }: MaskedText): readonly [RegExp, string] {
  return [new RegExp(`(?<![\\p{L}\\p{N}_])${asPattern(value)}(?![\\p{L}\\p{N}_])`, 'gu'), shown];
}

type Change = (text: string, name: string) => string;

/** The value with other texts, in the same form. */
function mapTexts<Value>(value: Value, change: Change): Value {
  return changed(value, change, '') as Value;
}

function changed(value: unknown, change: Change, name: string): unknown {
  if (typeof value === 'string') return change(value, name);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((each) => changed(each, change, name));
  return Object.fromEntries(
    Object.entries(value).map(([field, each]) => [field, changed(each, change, field)]),
  );
}
