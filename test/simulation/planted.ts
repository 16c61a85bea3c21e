/** A mistake that somebody could make: one patch of one file, never shipped. */
export interface Planted {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The stories that find it, where seeds do not draw them. */
  readonly stories?: '--replaced' | '--actions' | '--drills';
}

const outcome = 'engine/intents/outcome.ts';
const evidence = 'engine/intents/evidence.ts';
const guards = 'plan/guards.ts';

/** Each has to be found by the simulation, alone, within a bounded number of seeds. */
export const plantedBugs: readonly Planted[] = [
  {
    name: 'a new key on a time-out',
    file: outcome,
    find: "return { do: 'look', afterMs: settleMs, why: 'lost', reason: result.reason };",
    replace: "return { do: 'refuse', code: 'lost', reason: result.reason, until: 'now' };",
  },
  {
    name: 'sent after the lease has ended',
    file: 'engine/intents/settle.ts',
    find: 'isValid(sendValidMs) && deps.store.isOwned?.() !== false;',
    replace: 'isValid(sendValidMs);',
    stories: '--replaced',
  },
  {
    name: 'one negative read is absence',
    file: evidence,
    find: '    if (intent.notSeenAt === undefined) {\n',
    replace:
      '    if (intent.notSeenAt === undefined) return then(reading, found);\n    if (intent.notSeenAt === undefined) {\n',
  },
  {
    name: 'sent before the intent is durable',
    file: 'engine/claims/run-state.ts',
    find: '      await store.beginIntent(intent);\n',
    replace: '      void clock.sleep(1).then(() => store.beginIntent(intent));\n',
  },
  {
    name: 'the replay header is ignored',
    file: 'api/answer.ts',
    find: "replayed: headers['idempotency-replayed']?.trim().toLowerCase() === 'true',",
    replace: 'replayed: false,',
  },
  {
    name: 'chance in every key',
    file: 'engine/intents/begin.ts',
    find: "...(kind.setting || operation.verb === 'update' ? { nonce: id } : {}),",
    replace: 'nonce: id,',
  },
  {
    name: 'a redirect is followed',
    file: 'api/pipeline.ts',
    find: '      const response = await transport.send(request, {',
    replace:
      "      const first = await transport.send(request, { timeoutMs: realTimeoutMs });\n      if (first.status < 300 || first.status > 399) return first;\n      const response = await transport.send({ ...request, url: new URL(first.headers.location ?? '/', request.url).href }, {",
  },
  {
    name: 'polled after the task has ended',
    file: 'api/tasks.ts',
    find: '      if (end !== undefined) {\n',
    replace:
      '      if (end !== undefined) {\n        for (let more = 0; more < 3; more++) await poll(task, signal);\n',
  },
  {
    name: 'a key sent again after 23 h',
    file: 'engine/intents/endings.ts',
    find: 'return Math.max(run.deps.clock.now() - firstSentAt, sinceApiMs(run, firstSentApiAt)) < keyLifeMs;',
    replace: 'return run.deps.clock.now() - firstSentAt < 100 * keyLifeMs;',
  },
  {
    name: 'an operator is asked after a 429',
    file: outcome,
    find: '    case 429:\n      return rateLimited(reason);',
    replace: "    case 429:\n      return { do: 'refuse', code: 'outcome_unknown', reason, until: 'file' };",
  },
  {
    name: 'a refusal of the resend answers the first send',
    file: outcome,
    find: '      if (unconfirmed && asks && !result.replayed) return refusalOfResend(result, pace);\n',
    replace: '',
  },
  {
    name: 'no fence',
    file: 'engine/run/start.ts',
    find: '        refuseOtherProject(desired, project);\n        if (deps',
    replace: '        if (deps',
  },
  {
    name: 'sent under whatever token there is',
    file: 'engine/run/operate.ts',
    find: '  return send(run, intent, token, holds);',
    replace: '  return send(run, intent, undefined as unknown as string, holds);',
  },
  {
    name: 'no next incarnation for what is gone',
    file: 'state/sql-store.ts',
    find: "if (change.type === 'next_incarnation' || (change.type === 'release' && change.gone)) {",
    replace: "if (change.type === 'next_incarnation') {",
  },
  {
    name: 'two writes at once',
    file: 'engine/write-gate.ts',
    find: '    if (busy || waiting.length === 0) return;\n',
    replace: '    if (waiting.length === 0) return;\n',
  },
  {
    name: 'a 5xx sent again under its key',
    file: outcome,
    find: "const why = result.status === 502 || result.status === 504 ? 'gateway_error' : 'server_error';",
    replace: "const why = 'lost';",
  },
  {
    name: 'deleted without a look at the identity',
    file: 'reconcilers/existence.ts',
    find: '.find(([field, value]) => live.identity[field] !== value);',
    replace: '.find(() => false);',
  },
  {
    name: 'protect is ignored',
    file: guards,
    find: 'if (!isProtected(subject, world)) return undefined;',
    replace: 'return undefined;',
  },
  {
    name: 'a plan is carried out before its approval',
    file: 'engine/run/approval.ts',
    find: 'if (plan.operations.every((each) => isIn(granted, each))) return true;',
    replace: 'if (plan.operations.length > 0) return true;',
  },
  {
    name: 'the approval of an earlier plan counts for a later plan',
    file: 'engine/run/approval.ts',
    find: 'if (holder.digest !== plan.digest) return new Map();',
    replace: '',
  },
  {
    name: 'an approval counts for the spec after an edit',
    file: 'engine/run/approval.ts',
    find: '    if (holder.desired !== desired) return new Map();\n',
    replace: '',
  },
  {
    name: 'an approved operation is done a second time in a later run',
    file: 'engine/run/approval.ts',
    find: 'if (isCovered && !done.some(({ verb }) => verb === operation.verb)) covered.push(operation);',
    replace: 'if (isCovered) covered.push(operation);',
  },
  {
    name: 'a later round of a run does other operations than the approved ones',
    file: 'engine/run/approval.ts',
    find: 'return this.#granted !== undefined && !isIn(this.#granted, operation);',
    replace: 'return false;',
  },
  {
    name: 'an approved operation is done a second time in the same run',
    file: 'engine/run/approval.ts',
    find: 'if (operation.key === key && operation.verb === verb) this.#granted?.delete(part);',
    replace: 'if (operation.key !== key && operation.verb !== verb) this.#granted?.delete(part);',
  },
  {
    name: 'an approved operation goes by its name, whatever it changes',
    file: 'engine/run/approval.ts',
    find: "  if (verb === 'delete' && retiredFrom(key) !== undefined) return [digestOf({ id, verb, target })];\n",
    replace: '  return [digestOf({ id, verb })];\n',
  },
  {
    name: 'a plan that deletes does not wait',
    file: 'engine/run/approval.ts',
    find: '  if (approval.deletions && deletes) return true;\n',
    replace: '',
  },
  {
    name: 'a plan that replaces does not wait',
    file: 'engine/run/approval.ts',
    find: '    approval.replacements &&\n',
    replace: '    approval.replacements === undefined &&\n',
  },
  {
    name: 'a plan over the limit of its cost does not wait',
    file: 'engine/run/approval.ts',
    find: 'return approval.monthly_increase !== null && Number(added) > approval.monthly_increase;',
    replace: 'return false;',
  },
  {
    name: 'max_deletions is ignored',
    file: 'plan/judge.ts',
    find: 'if (deletions <= limit) return [];',
    replace: 'return [];',
  },
  {
    name: 'a dry run counts the cap otherwise',
    file: 'engine/run/plan.ts',
    find: 'const planned = await planFor(run, 0)',
    replace: 'const planned = await planFor(run, 1)',
  },
  {
    name: 'prune is ignored',
    file: guards,
    find: 'if (world.settings.prune || destroy || diff.verdict.byFile) return undefined;',
    replace: 'return undefined;',
  },
  {
    name: 'an empty state buys in a project that is not empty',
    file: 'plan/purchases.ts',
    find: 'if (isNone(found)) return undefined;\n  const { key, kind }',
    replace: 'return undefined;\n  const { key, kind }',
  },
  {
    name: 'what comes later without its doing is taken as known',
    file: 'engine/claims/claims.ts',
    find: '  return { ...attribution, isNew, unlisted: unlistedHere, ...known };',
    replace:
      '  const unmanaged = isNew ? attribution.unmanaged : { servers: [], addresses: [] };\n  return { ...attribution, unmanaged, isNew, unlisted: unlistedHere, ...known };',
  },
  {
    name: 'a 429 is a refusal',
    file: outcome,
    find: '      return rateLimited(reason);\n',
    replace: "      return { do: 'refuse', code, reason, until: 'file' };\n",
  },
  {
    name: 'Retry-After is ignored',
    file: 'api/pipeline.ts',
    find: '    await budget.close(waitMs);\n',
    replace: '    void waitMs;\n',
  },
  {
    name: 'a budget without a memory',
    file: 'api/budget.ts',
    find: 'for (const at of uses) {',
    replace: 'for (const at of uses.slice(0, 0)) {',
  },
  {
    name: 'of several tokens, a throttled one is used on',
    file: 'api/pipeline.ts',
    find: 'answer.status === 429 ? this.#limited',
    replace: 'answer.status === 429 && !this.#tokens.isShared ? this.#limited',
  },
  {
    name: 'of several tokens, a revoked one is not taken out',
    file: 'api/token-pool.ts',
    find: '    if (status === 401) {\n',
    replace: '    if (status > 600) {\n',
  },
  {
    name: 'of several tokens, the first one is sent for all',
    file: 'api/pipeline.ts',
    find: 'return { slot, token, budget:',
    replace: 'return { slot, token: tokens.only, budget:',
  },
  {
    name: 'a slot is free at once',
    file: 'api/budget.ts',
    find: 'freeAt: now + lateMs + this.#coolMs,',
    replace: 'freeAt: now + lateMs + this.#coolMs / 4,',
  },
  {
    name: 'adopted by difference without exclusive',
    file: evidence,
    find: 'const isOurs = run.desired.settings.exclusive &&',
    replace: 'const isOurs = !run.desired.settings.exclusive &&',
  },
  {
    name: 'the address of a server is left when the server goes',
    file: 'reconcilers/ip.ts',
    find: '  if (!isKept(subject, server, world)) return diffLeaving(subject, live, world);\n',
    replace: '',
  },
  {
    name: 'what a crash left is sent again unseen',
    file: 'engine/intents/settle.ts',
    find: "return goOn(run, intent, { stage: { phase: 'unknown', unconfirmed }, lost",
    replace: "return goOn(run, intent, { stage: { phase: 'waiting', unconfirmed }, lost",
  },
  {
    name: 'no hold after a 401',
    file: outcome,
    find: "  401: 'everything',\n",
    replace: '',
  },
  {
    name: 'no hold after a 402',
    file: outcome,
    find: "  402: 'spending',\n",
    replace: '',
  },
  {
    name: 'no hold after a 403',
    file: outcome,
    find: "  403: 'operation',\n",
    replace: '',
  },
  {
    name: 'a lost resource is made again after one look',
    file: 'engine/run.ts',
    find: '  await clock.sleep(absenceGapMs, signal);\n',
    replace: '  await clock.sleep(0, signal);\n',
  },
  {
    name: 'deleted after one read',
    file: evidence,
    find: 'deletion: { ...common, done: onceAbsent(bind), not_done: sendAgain },',
    replace: 'deletion: { ...common, done: bind, not_done: sendAgain },',
  },
  {
    name: 'the age of a backup by one clock alone',
    file: 'reconcilers/backup.ts',
    find: 'return ageMs >= 0 && ageMs <= mostMs;',
    replace: 'return false;',
  },
  {
    name: 'what a failed task left is bought again',
    file: evidence,
    find: 'creation: { ...common, pending: taint,',
    replace: 'creation: { ...common, done: retry as never, pending: taint,',
  },
  {
    name: 'a task is not waited for',
    file: evidence,
    find: '  if (isAwaited && answer.taskId !== undefined) return awaitTask(run, intent, answer.taskId, halt);\n',
    replace: '',
  },
  {
    name: 'a dry run that keeps notes',
    file: 'api/token-record.ts',
    find: '    putNote: async () => {},',
    replace: '    putNote: (name, value) => memory.putNote(name, value),',
  },
  {
    name: 'the newest backups go, and the oldest stay',
    file: 'reconcilers/backup/copies.ts',
    find: '.sort((a, b) => takenAt(b) - takenAt(a))',
    replace: '.sort((a, b) => takenAt(a) - takenAt(b))',
  },
  {
    name: 'an image that is not seen is taken again',
    file: 'reconcilers/server-image.ts',
    find: "return { verdict: 'unseen', reason: 'no documented read shows server images', candidates: [] };",
    replace: "return { verdict: 'not_done' };",
  },
  {
    name: 'a fresh refusal of the probe is trusted',
    file: outcome,
    find: "if (namesProbe(result)) return 'fresh';",
    replace: "if (namesProbe(result)) return 'fenced';",
  },
  {
    name: 'the next attempt without a fence',
    file: 'engine/intents/not-there.ts',
    find: "if (question.stage !== 'fenced') return resendSame(run, intent, why);",
    replace: "if (why === 'not_found') return resendSame(run, intent, why);",
  },
  {
    name: 'a probe without a record',
    file: 'engine/intents/probe-key.ts',
    find: '    asking = await run.state.update(asking, { stage: asked(asking, question) });\n',
    replace: '',
  },
  {
    name: 'no wait for what shows late',
    file: evidence,
    find: "  if (verb !== 'create') return 0;\n  const { showsWithinMs",
    replace: "  if (verb !== 'none') return 0;\n  const { showsWithinMs",
  },
  {
    name: 'the calibration is skipped',
    file: 'engine/intents/probe-key.ts',
    find: '  if (known[name] !== undefined) return known[name];\n',
    replace: '  if (name !== undefined) return { storesRefusals: true };\n',
  },
  {
    name: 'a new state never asks the key that `moved` names',
    file: 'engine/claims/line.ts',
    find: 'const line = new Set([key, ...(moved === undefined ? [] : [moved])]);',
    replace: 'const line = new Set(moved === undefined ? [key] : [key]);',
    stories: '--actions',
  },
  {
    name: '`destroy` deletes protected servers',
    file: guards,
    find: 'if (!isProtected(subject, world)) return undefined;',
    replace: 'if (destroy || !isProtected(subject, world)) return undefined;',
    stories: '--actions',
  },
  {
    name: 'the first key of a renamed resource is left out',
    file: 'engine/claims/scope.ts',
    find: 'Math.max(0, Math.min(count - others, Math.max(-1, ...used) + 1))',
    replace:
      'Math.max(0, used.length === 0 ? count - others : Math.min(count - others, Math.max(-1, ...used) + 1))',
    stories: '--actions',
  },
  {
    name: 'a replacement does not ask the earlier keys of its entry',
    file: 'engine/run/operate.ts',
    find: 'desired && (await askLineAgain(run, desired, isReplaced ? 1 : 0));',
    replace: 'desired && !isReplaced ? await askLineAgain(run, desired, 0) : undefined;',
    stories: '--actions',
  },
  {
    name: 'a resource that a new state has found is deleted without a question',
    file: guards,
    find: "if (!binding?.recovered || (destroy && binding.recovered === 'taken')) return undefined;",
    replace: 'if (binding?.key !== undefined) return undefined;',
    stories: '--actions',
  },
  {
    name: 'an entry that returns does not take back the released resource',
    file: 'engine/claims/line.ts',
    find: 'return [entry ?? formerKey, ...formerKeys];',
    replace: 'return [];',
    stories: '--actions',
  },
  {
    name: 'a retiring server does not take its key back',
    file: 'engine/claims/line.ts',
    find: '  if (run.moves.waiting.length > 0) return false;\n',
    replace: '  if (run.moves.waiting.length >= 0) return false;\n',
    stories: '--actions',
  },
  {
    name: 'a replacement deletes all old servers first',
    file: 'plan/replacements.ts',
    find: '  if (planned.length === 0) return [];\n',
    replace: '  if (planned.length >= 0) return [];\n',
    stories: '--actions',
  },
  {
    name: 'a replaced server is deleted before the proof of the new one',
    file: 'engine/run/operate.ts',
    find: "  const unproved = operation.verb === 'delete' ? await provedBefore(run, world, operation) : undefined;\n  if (unproved !== undefined) return unproved;\n",
    replace: '  if (run.mode.destroy) await provedBefore(run, world, operation);\n',
    stories: '--actions',
  },
  {
    name: 'the old server stays once the new one is complete',
    file: 'reconcilers/server/diff.ts',
    find: '  if (successor !== undefined && failed !== undefined) return leftByFailed(subject, successor, failed);\n',
    replace:
      '  if (successor !== undefined && failed === undefined) return unchanged;\n  if (successor !== undefined && failed !== undefined) return leftByFailed(subject, successor, failed);\n',
    stories: '--actions',
  },
  {
    name: 'a disk is cut down without a word of the spec',
    file: 'reconcilers/server/resize.ts',
    find: '  return Object.keys(set).length === 0 ? undefined : ',
    replace: '  return Object.keys(set).length >= 0 ? undefined : ',
  },
  {
    name: 'a renamed resource leaves its idempotency key unused',
    file: 'engine/claims/run-state.ts',
    find: "  return isTop ? [change, { type: 'next_incarnation', key }] : [change];\n",
    replace: "  return isTop && change.gone ? [change, { type: 'next_incarnation', key }] : [change];\n",
    stories: '--drills',
  },
  {
    name: 'a new state does not ask the keys of servers that no read shows',
    file: 'engine/run/recover.ts',
    find: 'servers.some(isBare) && (servers.length > 1 || isOneOpen);',
    replace: 'servers.length > 99;',
    stories: '--drills',
  },
  {
    name: 'a server is bought beside an unidentified server',
    file: 'plan/lost-state.ts',
    find: '  if (used === undefined) return undefined;\n',
    replace: '  if (used !== null) return undefined;\n',
    stories: '--drills',
  },
  {
    name: 'an earlier key is used again, and no key is reserved',
    file: 'engine/run/operate.ts',
    find: 'const unreserved = await reserveKeys(run, operation);',
    replace: 'const unreserved = (void reserveKeys, undefined);',
    stories: '--drills',
  },
  {
    name: 'an apply reserves no key of a renamed entry',
    file: 'engine/run/unreached-keys.ts',
    find: 'if ((await reservationOf(run, binding)) !== undefined) continue;',
    replace: 'if ((await reservationOf(run, binding)) !== null) continue;',
    stories: '--drills',
  },
  {
    name: 'a server is deleted beside one that is in question',
    file: 'plan/lost-state.ts',
    find: '  if (other === undefined) return undefined;\n  const reason = `the resource of',
    replace: '  if (other !== null) return undefined;\n  const reason = `the resource of',
    stories: '--drills',
  },
];
