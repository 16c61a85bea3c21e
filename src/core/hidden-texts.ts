import { hash } from 'node:crypto';
import type { Desired } from './desired.ts';
import { ConfigError } from './errors.ts';
import { mapTexts } from './json.ts';

/**
 * Whether vdcsync only passes the text on, and decides nothing by it: the URL of an ISO, and the fields of a firewall
 * rule that no diff and no policy reads. Only these texts may come from the environment, because a plan has to show
 * the effects of all others.
 *
 * @param path inside an entry, a request or an answer
 */
export function isPassedOn(path: readonly (string | number)[]): boolean {
  const rules = path.indexOf('rules');
  if (rules < 0) return path.at(-1) === 'url';
  const field = path[rules + 2];
  return field !== undefined && !readRuleFields.has(String(field));
}

const readRuleFields: ReadonlySet<string> = new Set([
  ...['id', 'direction', 'action', 'enabled', 'protocol', 'destination_port'],
]);

/** Parts of an answer that are only shown. vdcsync decides by the rest, which stays unchanged. */
const sentences: ReadonlySet<string> = new Set([
  ...['title', 'detail', 'message', 'error', 'reason', 'failure_reason', 'invalidParams'],
]);

/** A spec, the same spec with stand-ins, and its real texts and stand-ins by their digest. */
interface KnownTexts {
  readonly spec: Desired;
  readonly sealed: Desired;
  readonly real: ReadonlyMap<string, string>;
  readonly standIns: ReadonlyMap<string, string>;
}

/** A run of the last spec may continue while the next spec is planned. */
const keptSpecs = 2;

/**
 * The border between the API, which gets the values of the environment, and the engine, which never has one.
 *
 * The engine has a *stand-in* for each text that came from the environment: the text of the spec, and a seal with a
 * digest of the real text. So everything that the engine plans, records and reports shows the text of the spec, and
 * equal texts have equal seals. The client opens the stand-ins in the bodies that it sends. In the answers it closes
 * the real texts.
 */
export class HiddenTexts {
  #known: readonly KnownTexts[] = [];
  #salt = '';
  /** Stand-ins of the state for texts that no spec has any more, by their digest. */
  readonly #former = new Map<string, string>();
  /** The texts of the last spec by their digest: a value may have moved from a variable into the spec. */
  #plain: ReadonlyMap<string, string> | undefined;
  #masked: (text: string) => string = (text) => text;

  /**
   * The spec with stand-ins.
   *
   * @param salt of the state, so that equal texts have different digests in different states
   */
  learn(spec: Desired, salt: string): Desired {
    if (salt !== this.#salt) this.#known = [];
    this.#salt = salt;
    if (this.#known[0]?.spec === spec) return this.#known[0].sealed;
    const known = this.#known.find((each) => each.spec === spec) ?? this.#read(spec);
    this.#known = [known, ...this.#known.filter((each) => each !== known)].slice(0, keptSpecs);
    this.#plain = undefined;
    const variables = this.#known
      .flatMap((each) => [...(each.spec.environment?.variables ?? [])])
      .map(([name, value]) => ({ value, shown: `\${env:${name}}` }));
    const [long, short] = [maskerOf(variables), wordMaskerOf(variables)];
    this.#masked = (text) => short(long(text));
    return known.sealed;
  }

  #read(spec: Desired): KnownTexts {
    const texts = [...(spec.environment?.texts ?? [])].map(
      ([shown, real]) => [shown, real, this.#digest(real)] as const,
    );
    const real = new Map(texts.map(([, text, digest]) => [digest, text]));
    // Equal texts have one stand-in.
    const standIns = new Map(texts.map(([shown, , digest]) => [digest, sealed(shown, digest)]));
    const byShown = new Map(texts.map(([shown, , digest]) => [shown, standIns.get(digest)]));
    const close = (text: string, path: readonly string[]) =>
      (isPassedOn(path) ? byShown.get(text) : undefined) ?? text;
    const resources = texts.length === 0 ? spec.resources : mapTexts(spec.resources, close);
    return { spec, real, standIns, sealed: texts.length === 0 ? spec : { ...spec, resources } };
  }

  /**
   * The real texts in the place of the stand-ins, for the API alone.
   *
   * @throws ConfigError if a real text is not known any more
   */
  open<Value>(value: Value): Value {
    return mapTexts(value, (text) => {
      const digest = digestIn(text);
      if (digest === undefined) return text;
      const real = this.#find(({ real }) => real, digest) ?? this.#inFile(digest);
      if (real !== undefined) return real;
      // The spec itself has a text that resembles a stand-in.
      if (this.#inFile(this.#digest(text)) !== undefined) return text;
      throw new ConfigError(`The value of ${withoutSeals(text)} has changed.`);
    });
  }

  /** Equal for equal real texts, from any variables. */
  reduced<Value>(value: Value): Value {
    return mapTexts(value, (text) => digestIn(text) ?? text);
  }

  /** The recorded value, with the texts that the spec has now for the same real texts. */
  recorded<Value>(value: Value): Value {
    return mapTexts(value, (text, path) => {
      const digest = digestIn(text);
      if (digest === undefined) return isPassedOn(path) ? (this.#closed(text) ?? text) : text;
      const now = this.#now(digest);
      if (now === undefined) this.#former.set(digest, text);
      return now ?? text;
    });
  }

  /** An answer of the API without values: with stand-ins, and with the variables in sentences that repeat a value. */
  inAnswer<Value>(answer: Value): Value {
    if (this.#isIdle()) return answer;
    return mapTexts(answer, (text, path) => {
      if (isPassedOn(path)) return this.#closed(text) ?? this.#masked(text);
      return path.some((name) => sentences.has(name)) ? this.#masked(text) : text;
    });
  }

  /** The texts of the spec, for output and plan files. */
  shown<Value>(value: Value): Value {
    return this.#isIdle() ? value : withoutSeals(value);
  }

  #isIdle(): boolean {
    return this.#former.size === 0 && this.#known.every(({ real }) => real.size === 0);
  }

  /** The text of a spec for this real text: of the last spec, or an earlier one; `undefined` if there is none. */
  #closed(text: string): string | undefined {
    if (this.#isIdle()) return text;
    const digest = this.#digest(text);
    return this.#now(digest) ?? this.#find(({ standIns }) => standIns, digest) ?? this.#former.get(digest);
  }

  #now(digest: string): string | undefined {
    return this.#known[0]?.standIns.get(digest) ?? this.#inFile(digest);
  }

  #find(of: (known: KnownTexts) => ReadonlyMap<string, string>, digest: string): string | undefined {
    return this.#known.map((each) => of(each).get(digest)).find((each) => each !== undefined);
  }

  #inFile(digest: string): string | undefined {
    if (this.#plain === undefined) {
      const plain = new Map<string, string>();
      mapTexts(this.#known[0]?.spec.resources, (text, path) => {
        if (isPassedOn(path)) plain.set(this.#digest(text), text);
        return text;
      });
      this.#plain = plain;
    }
    return this.#plain.get(digest);
  }

  /** The API trims text. @source API §4 rule 3 */
  #digest(text: string): string {
    return hash('sha256', `${this.#salt}\0${text.trim()}`);
  }
}

const seal = / \[sealed:[0-9a-f]{64}\]/g;
const sealStart = ' [sealed:';
const sealLength = `${sealStart}]`.length + 64;

/** Every text inside a value without its seal. */
export function withoutSeals<Value>(value: Value): Value {
  return mapTexts(value, (text) => (text.includes(sealStart) ? text.replaceAll(seal, '') : text));
}

function sealed(shown: string, digest: string): string {
  return `${shown}${sealStart}${digest}]`;
}

function digestIn(text: string): string | undefined {
  const end = text.slice(-sealLength);
  return end.startsWith(sealStart) && end.endsWith(']') ? end.slice(sealStart.length, -1) : undefined;
}

/** A secret, and the text that takes its place. */
interface Masked {
  readonly value: string;
  readonly shown: string;
}

/** A shorter secret protects nothing, and occurs in other texts by chance. */
const fewestCharacters = 8;

/**
 * Gives a function that removes secrets from a text, in each form in which a program may repeat them: unchanged, in
 * JSON, in a URL, and in Base64, alone or as part of a longer text such as `user:password`.
 */
export function maskerOf(secrets: readonly Masked[]): (text: string) => string {
  const shownOf = new Map(
    secrets
      .filter(({ value }) => value.trim().length >= fewestCharacters)
      .flatMap(({ value, shown }) =>
        formsOf(value.trim().toWellFormed()).map((form) => [form, shown] as const),
      ),
  );
  // The longest first: one form may hold another.
  const longestFirst = [...shownOf].sort(([a], [b]) => b.length - a.length);
  return (text) => longestFirst.reduce((all, [form, shown]) => all.replaceAll(form, () => shown), text);
}

/** The same for secrets that are too short for `maskerOf`: only whole words of a sentence are removed. */
export function wordMaskerOf(secrets: readonly Masked[]): (text: string) => string {
  const short = secrets
    .map(({ value, shown }) => ({ value: value.trim(), shown }))
    .filter(({ value }) => value !== '' && value.length < fewestCharacters);
  return (text) => short.reduce(withoutWord, text);
}

function withoutWord(text: string, { value, shown }: Masked): string {
  let masked = '';
  let from = 0;
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
    if (at < from || isLetter(text[at - 1]) || isLetter(text[at + value.length])) continue;
    masked += `${text.slice(from, at)}${shown}`;
    from = at + value.length;
  }
  return masked + text.slice(from);
}

function isLetter(character: string | undefined): boolean {
  if (character === undefined) return false;
  return character.toLowerCase() !== character.toUpperCase() || '0123456789_'.includes(character);
}

function formsOf(secret: string): readonly string[] {
  const base64 = base64Forms(secret);
  const urlSafe = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), ...base64, ...urlSafe];
}

/**
 * Base64 has three forms of a text, by its place in groups of three bytes. Characters shared with neighbours are left
 * out.
 */
function base64Forms(secret: string): readonly string[] {
  const within = [0, 1, 2].map((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
    return bytes.toString('base64').slice(Math.ceil((offset * 4) / 3), Math.floor((bytes.length * 4) / 3));
  });
  return [Buffer.from(secret).toString('base64'), ...within];
}
