import type { Claim } from '../core/claims.ts';
import type { Desired } from '../core/desired.ts';
import { Seal } from '../core/environment-mask.ts';
import type { WriteRequest } from '../core/ports.ts';
import type { Binding, Intent, IntentPatch, StateChange, StateStore } from '../core/state.ts';

type OpenStage = NonNullable<IntentPatch['stage']>;

/**
 * The store without values of the environment: these texts are sealed when they are recorded. They are opened when
 * they are read, as long as the file gives the same values. A sealed text that cannot be opened differs from every
 * other text: its field is planned as changed, and a request with this text is not sent again.
 */
export async function sealedStore(
  store: StateStore,
  desired: Desired,
  digestOf: (request: WriteRequest) => string,
): Promise<StateStore> {
  const { lineage } = await store.info();
  const seal = new Seal(desired, lineage);
  const opened = (intent: Intent): Intent => ({
    ...intent,
    changes: seal.open(intent.changes),
    request: seal.open(intent.request),
    basis: seal.open(intent.basis),
    sentAs: openedSent(intent, seal, digestOf),
    preimage: seal.open(intent.preimage),
    ...(intent.entry === undefined ? {} : { entry: seal.open(intent.entry) }),
  });
  const closedBinding = (binding: Binding): Binding => ({ ...binding, applied: seal.close(binding.applied) });
  const closedClaim = (claim: Claim): Claim =>
    claim.holder.is === 'paused'
      ? { ...claim, holder: { ...claim.holder, reason: seal.text(claim.holder.reason) } }
      : claim;
  const closed = (changes: readonly StateChange[]) =>
    changes.map((change) => {
      if (change.type === 'bind') return { ...change, binding: closedBinding(change.binding) };
      if (change.type === 'proof') return { ...change, proof: seal.close(change.proof) };
      return change.type === 'claim' ? { ...change, claim: closedClaim(change.claim) } : change;
    });
  const closedStage = (stage: OpenStage): OpenStage =>
    stage.phase === 'blocked'
      ? { ...stage, blocked: { ...stage.blocked, reason: seal.text(stage.blocked.reason) } }
      : stage;
  const closedPatch = ({ stage, detail, ...patch }: IntentPatch): IntentPatch => ({
    ...patch,
    ...(stage === undefined ? {} : { stage: closedStage(stage) }),
    ...(detail === undefined ? {} : { detail: seal.text(detail) }),
  });
  const own: Partial<StateStore> = {
    bindings: async () =>
      (await store.bindings()).map((binding) => ({ ...binding, applied: seal.open(binding.applied) })),
    change: (changes, at) => store.change(closed(changes), at),
    beginIntent: (intent) =>
      store.beginIntent({
        ...intent,
        changes: seal.close(intent.changes),
        request: { ...intent.request, ...closedBody(intent, seal) },
        preimage: seal.close(intent.preimage),
        basis: seal.closedDigest(intent.basis),
        sentAs: seal.closedDigest(intent.sentAs),
        ...(intent.entry === undefined ? {} : { entry: seal.close(intent.entry) }),
      }),
    updateIntent: (id, patch, at, note) =>
      store.updateIntent(id, closedPatch(patch), at, note === undefined ? note : seal.close(note)),
    closeIntent: (id, ended, changes, at) =>
      store.closeIntent(id, { ...ended, text: seal.text(ended.text) }, closed(changes), at),
    openIntents: async () => (await store.openIntents()).map(opened),
    intents: async (filter) => (await store.intents(filter)).map(opened),
    note: async (name) => seal.open(await store.note(name)),
    putNote: (name, value) => store.putNote(name, seal.close(value)),
  };
  return new Proxy(store, {
    get(target, name) {
      const mine: unknown = Reflect.get(own, name);
      if (mine !== undefined) return mine;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function closedBody({ request }: Intent, seal: Seal): Pick<Intent['request'], 'body'> {
  return request.body === undefined ? {} : { body: seal.close(request.body) };
}

/** The digest of the request, if the request is still the one that was sent. */
function openedSent(
  { request, sentAs }: Intent,
  seal: Seal,
  digestOf: (request: WriteRequest) => string,
): string {
  return seal.openedDigest(sentAs, () => digestOf(seal.open(request)));
}
