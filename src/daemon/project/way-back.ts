import { z } from 'zod';
import type { Desired, DesiredResource } from '../../core/desired.ts';
import type { Diagnostic } from '../../core/errors.ts';
import { partsOf } from '../../core/intent.ts';
import { mapTexts, member } from '../../core/json.ts';
import type { ResourceKey } from '../../core/keys.ts';
import { isWaiting } from '../../core/plan.ts';
import type { Intent, StateStore } from '../../core/state.ts';
import { lossesOf } from '../../plan/undo.ts';
import type { Commit, Offer } from '../../view/facts.ts';
import type { DaemonLogger, ProjectSession } from '../ports.ts';
import type { Found } from './history.ts';
import type { ReconciliationMemory } from './memory.ts';

const noteName = 'converged_spec';

/** The spec in the state, in the form of this release. */
const kept = z.object({
  format: z.literal(1),
  files: z.array(z.string()),
  commit: z.custom<Commit>((value) => typeof member(value, 'id') === 'string').optional(),
  desired: z.custom<Desired>((value) => Array.isArray(member(value, 'resources'))),
  /** The newest write when the spec converged, by id; null without a write. */
  newest: z.string().nullable(),
});

type Remembered = NonNullable<ReconciliationMemory['wayBack']>;

/**
 * `settings.on_failure: back`: remembers the last spec that converged, and returns to it from a spec that is blocked or
 * refused. It never returns twice from the same commit, so that it does not fight the branch.
 */
export class WayBack {
  readonly #log: DaemonLogger;
  #refused: Remembered['refused'];
  /** The digest of the spec in the state. */
  #kept: string | undefined;
  /** The newest write that the state names with that spec. */
  #newest: string | null | undefined;
  /** The digest of a spec without a way back, which is reported once. */
  #stays: string | undefined;

  constructor(log: DaemonLogger) {
    this.#log = log;
  }

  remember(): Remembered {
    return { ...(this.#kept && { kept: this.#kept }), ...(this.#refused && { refused: this.#refused }) };
  }

  /** @param desired the spec in force, or the spec that was given since */
  recall({ kept, refused }: Remembered = {}, desired: Desired | undefined): void {
    this.#kept = kept;
    if (this.#refused?.digest === refused?.digest) return;
    this.#refused = desired?.digest === refused?.digest ? refused : undefined;
  }

  /** Whether the daemon has returned from this spec. Another spec, or another commit, ends that. */
  keepsOut({ desired, commit }: Offer): boolean {
    const isSame = this.#refused?.digest === desired.digest && this.#refused.commit === commit?.id;
    if (!isSame) this.#refused = undefined;
    return isSame;
  }

  /** After a reconciliation: keeps a spec that has converged. Whether the daemon returns from the spec. */
  async refuses(
    offer: Offer,
    { condition, plan }: Pick<Found, 'condition' | 'plan'>,
    { store, profile }: Pick<ProjectSession, 'store' | 'profile'>,
  ): Promise<boolean> {
    const { desired, commit } = offer;
    const isBack = desired.settings.on_failure === 'back';
    if (condition === 'converged' && isBack) await this.#keep(offer, store);
    else if (condition === 'converged') this.#kept = undefined;
    const isStuck = condition === 'blocked' || condition === 'paused';
    if (!isBack || !isStuck || this.#kept === undefined || this.#kept === desired.digest) return false;
    const earlier = await this.#earlier(desired, store);
    if (earlier === undefined) return false;
    const changes = await changesSince(earlier.newest, store);
    const changed = 'the project was changed after the last spec that converged';
    if (changes === undefined) return this.#stay(desired, [], changed);
    const others = changes.filter((write) => !isFor(desired, write) && !isFor(earlier.desired, write));
    if (others.length > 0) return this.#stay(desired, others, changed);
    const own = changes.filter((write) => isFor(desired, write));
    const losses = lossesOf(own, profile);
    if (losses.length > 0) return this.#stay(desired, losses, 'a change cannot be undone wholly');
    const found = plan?.blocked.find((each) => !isWaiting(each)) ?? plan?.blocked[0];
    const reason = found === undefined ? condition : `${found.key}: ${found.reason}`;
    this.#refused = { digest: desired.digest, reason, ...(commit && { commit: commit.id }) };
    return true;
  }

  #stay({ digest }: Desired, because: readonly { readonly key: ResourceKey }[], reason: string): false {
    const keys = because.map(({ key }) => key);
    if (this.#stays !== digest) this.#log.warn({ keys }, `no way back: ${reason}`);
    this.#stays = digest;
    return false;
  }

  async #keep(
    { desired, files, commit }: Offer,
    store: Pick<StateStore, 'putNote' | 'intents'>,
  ): Promise<void> {
    const [{ id: newest } = { id: null }] = await store.intents({ limit: 1 });
    if (this.#kept === desired.digest && this.#newest === newest) return;
    // Neither the place of the token nor values of the environment are part of the entries.
    const { token: _token, environment: _environment, ...spec } = desired;
    const resources = spec.resources.map(({ fields: _fields, cautions: _cautions, ...each }) => each);
    await store.putNote(noteName, { format: 1, files, commit, desired: { ...spec, resources }, newest });
    this.#kept = desired.digest;
    this.#newest = newest;
  }

  /** The kept spec, if all values of the environment in its entries are known. */
  async #earlier({ environment }: Desired, store: Pick<StateStore, 'note'>) {
    const earlier = kept.safeParse(await store.note(noteName)).data;
    if (earlier === undefined || earlier.desired.digest !== this.#kept) return undefined;
    let isKnown = true;
    mapTexts(earlier.desired.resources, (text) => {
      if (text.includes('${env:') && environment?.texts.has(text) !== true) isKnown = false;
      return text;
    });
    return isKnown ? earlier : undefined;
  }

  /** The spec in force in place of a refused one, and the report about the refused one. */
  async inPlaceOf(
    offer: Offer,
    store: Pick<StateStore, 'note' | 'bindings' | 'intents'>,
  ): Promise<{ readonly offer: Offer; readonly problem: readonly Diagnostic[] } | undefined> {
    if (this.#refused?.digest !== offer.desired.digest || !this.keepsOut(offer)) return undefined;
    const earlier = await this.#earlier(offer.desired, store);
    if (earlier === undefined) return undefined;
    const { environment, token } = offer.desired;
    const { files, commit } = earlier;
    const resources = [
      ...earlier.desired.resources,
      ...(await adoptedBy(offer.desired, earlier.desired, store)),
    ];
    const desired: Desired = {
      ...earlier.desired,
      resources,
      ...(environment && { environment }),
      ...(token && { token }),
    };
    const which = commit === undefined ? '' : `, of commit ${commit.id.slice(0, 12)}`;
    const message = `the spec is refused (${this.#refused.reason}). The last spec that converged is in force${which}. vdcsync waits for the next commit`;
    const position = { file: offer.files[0] ?? '-', line: 1, column: 1 };
    return { offer: { desired, files, commit }, problem: [{ position, message }] };
  }
}

/** Whether the write was made for this spec. */
function isFor({ digest }: Pick<Desired, 'digest'>, { spec }: Pick<Intent, 'spec'>): boolean {
  return spec?.startsWith(digest) === true;
}

/** The entries whose resources the refused spec adopted, and did not create: the way back releases these resources. */
async function adoptedBy(
  refused: Desired,
  earlier: Desired,
  store: Pick<StateStore, 'bindings' | 'intents'>,
): Promise<readonly DesiredResource[]> {
  const entries = new Set(earlier.resources.map(({ key }) => key));
  const adopted: DesiredResource[] = [];
  for (const { key, id, formerKeys = [] } of await store.bindings()) {
    const entry = refused.resources.find(
      (each) => each.key === key && each.parent === undefined && each.managed,
    );
    if (entry === undefined || [key, ...formerKeys].some((each) => entries.has(each))) continue;
    const isCreation = (each: Intent) =>
      each.verb === 'create' && isFor(refused, each) && partsOf(each).answer?.id === id;
    if (!(await store.intents({ key, limit: 50 })).some(isCreation))
      adopted.push({ ...entry, id, managed: false });
  }
  return adopted;
}

/** The later writes that may have changed the project. `undefined`: the state has deleted the record of the write. */
async function changesSince(
  last: string | null,
  store: Pick<StateStore, 'intents'>,
): Promise<readonly Intent[] | undefined> {
  const newestFirst = await store.intents({ limit: 10_000 });
  const end = last === null ? newestFirst.length : newestFirst.findIndex(({ id }) => id === last);
  if (end < 0) return undefined;
  return newestFirst
    .slice(0, end)
    .filter((write) =>
      write.phase === 'closed'
        ? ['done', 'failed', 'abandoned'].includes(write.outcome)
        : write.phase !== 'blocked' || write.blocked.until !== 'file',
    );
}
