import equal from 'fast-deep-equal';
import { type Claim, objectName } from '../../src/core/claims.ts';
import type { Controller } from '../../src/simulation/controller.ts';
import type { StoryStage } from '../../src/simulation/stage.ts';
import { replay } from './replay.ts';

/** The journal, replayed, is the state: the whole one, and a beginning of it where the state was put back. */
export async function checkJournal(
  stage: StoryStage,
  controller: Controller,
  lines: readonly string[],
): Promise<void> {
  if (stage.violation !== undefined) return;
  const store = await controller.box.open(stage.clock.now());
  const journal = await store.journal({ limit: Number.POSITIVE_INFINITY });
  const [bindings, open] = [await store.bindings(), await store.openIntents()];
  const whole = replay(journal);
  const sameBindings = equal([...whole.bindings.values()].sort(byKey), [...bindings].sort(byKey));
  const sameClaims = equal(new Map(whole.claims), byObject(await store.claims()));
  if (!sameBindings || !sameClaims || !equal(whole.openIntents, open))
    stage.fail('I10', 'the journal, replayed, is another state');
  for (const binding of bindings) {
    const gone = whole.incarnations.get(binding.key) ?? 0;
    if (gone !== (await store.incarnation(binding.key)))
      stage.fail('I10', `another incarnation of ${binding.key}`);
  }
  const text = JSON.stringify(journal) + lines.join('\n');
  for (const [name, secret] of Object.entries(stage.tokens))
    if (text.includes(secret)) stage.fail('I11', `the journal or a log contains the token ${name}`);
  await controller.box.release();
}

function byObject(claims: readonly Claim[]): ReadonlyMap<string, Claim> {
  return new Map(claims.map((claim) => [objectName(claim), claim]));
}

function byKey(one: { readonly key: string }, other: { readonly key: string }): number {
  return one.key < other.key ? -1 : 1;
}
