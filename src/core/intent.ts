import type { Intent, IntentPatch, KnownEffect, Stage } from './state.ts';

/** The intent after a patch. A new stage replaces all fields of the previous stage. */
export function patched(intent: Intent, { stage, ...fields }: IntentPatch): Intent {
  return stage === undefined ? { ...intent, ...fields } : inStage({ ...intent, ...fields }, stage);
}

/** The intent with the fields of another stage. */
export function inStage(intent: Intent, stage: Stage): Intent {
  const rest = Object.entries(intent).filter(([name]) => !stageFields.has(name));
  return { ...Object.fromEntries(rest), ...stage } as unknown as Intent;
}

const stageFields: ReadonlySet<string> = new Set<KeysOf<Stage>>([
  ...(['phase', 'unconfirmed', 'answer', 'notSeenAt', 'blocked', 'by', 'former'] as const),
  ...(['outcome', 'because', 'closedAt'] as const),
]);

type KeysOf<Union> = Union extends unknown ? keyof Union : never;

type FieldOf<Union, Name> = Union extends { readonly [Field in Name & string]?: infer Value } ? Value : never;

/** The fields of all phases; each phase has some of these fields. */
type StageParts = Pick<Stage, 'phase'> & {
  readonly [Name in Exclude<KeysOf<Stage>, 'phase' | 'by' | 'former'>]?: FieldOf<Stage, Name>;
};

/** When the write was first sent: by the API's clock, if the API shows one. Wall ms. @assumption A35 */
export function sentByApi({
  firstSentAt,
  firstSentApiAt,
}: Pick<Intent, 'firstSentAt' | 'firstSentApiAt'>): number {
  return firstSentApiAt ?? firstSentAt;
}

/** The fields of an intent whose phase does not matter. */
export function partsOf(intent: Stage): StageParts {
  return intent;
}

/** The word for the end of a write. */
export function endWord(intent: Intent): string | undefined {
  const { outcome, because } = partsOf(intent);
  return because === 'found' ? 'found' : outcome;
}

/** A send of the write may have had an effect that no answer and no evidence has shown. */
export function isUnconfirmed(intent: Stage): boolean {
  return partsOf(intent).unconfirmed !== undefined || intent.phase === 'sending';
}

/** The known effect of the write. */
export function effectOf(intent: Stage): KnownEffect {
  const { unconfirmed, answer } = partsOf(intent);
  return { ...(unconfirmed && { unconfirmed }), ...(answer && { answer }) };
}
