import { formatDiagnostic } from '../../core/errors.ts';
import { isWaiting, type Plan } from '../../core/plan.ts';
import { escapeUnseen } from '../../core/text.ts';
import { type Condition, levelOf, sentenceOf } from '../../view/condition.ts';
import type { Daemon } from '../daemon.ts';
import type { Rollout } from '../fleet/rollout.ts';
import type { DaemonProject } from '../project/project.ts';
import type { CommitStatus } from './forge.ts';

type Result = Omit<CommitStatus, 'commit'>;
type ProjectResult = ReturnType<DaemonProject['result']>;

/** The statuses of the commits in force: one, and in a fleet one for each rollout. */
export function commitStatusesOf(daemon: Daemon): readonly CommitStatus[] {
  const change = daemon.change();
  if (change === undefined || daemon.fleet?.leads() === false) return [];
  const { commit, projects } = change;
  const broken = brokenIn(daemon);
  if (daemon.fleet === undefined) return [statusOf(commit, broken ?? ofProjects(projects, commit))];
  const { rollouts } = daemon.fleet.board;
  const earlier = rollouts.filter((each) => each.change !== commit).map(({ change: id }) => id);
  return [commit, ...new Set(earlier)].map((id) =>
    statusOf(
      id,
      (id === commit ? broken : undefined) ?? ofRollouts(rollouts.filter((each) => each.change === id)),
    ),
  );
}

function statusOf(commit: string, { state, text }: Result): CommitStatus {
  // Texts may quote the spec and the API.
  const line = escapeUnseen(text.replace(/\s+/g, ' ')).trim();
  return { commit, state, text: line };
}

function brokenIn(daemon: Daemon): Result | undefined {
  const problems = [
    ...daemon.projects().flatMap((each) => each.result().problem),
    ...daemon.specs.state().orphans.flatMap(({ problem }) => problem),
  ];
  const [first, ...more] = problems;
  if (first === undefined) return undefined;
  return { state: 'failure', text: `The spec is broken: ${formatDiagnostic(first)}${andMore(more.length)}` };
}

/** In the order in which they decide about the commit. */
const states = ['failure', 'pending', 'success'] as const;

function ofProjects(projects: readonly ProjectResult[], commit: string): Result {
  const results = projects.map((project) => ({ project, ...ofProject(project, commit) }));
  const state = states.find((each) => results.some((result) => result.state === each)) ?? 'success';
  const found = results.filter((result) => result.state === state);
  const [first] = found;
  if (first === undefined) return { state, text: 'No spec has changed' };
  if (projects.length === 1) return { state, text: first.text };
  if (state === 'success') return { state, text: `${projects.length} projects: converged` };
  return {
    state,
    text: `${found.length} of ${projects.length} projects, such as ${first.project.id}: ${first.text}`,
  };
}

/** The state of a commit whose project has the condition. */
function stateOf(condition: Condition): Result['state'] {
  // Drift is only reported, as the spec or the mode asks for.
  if (condition === 'converged' || condition === 'drifting') return 'success';
  return condition === 'paused' || levelOf(condition) === 'bad' ? 'failure' : 'pending';
}

function ofProject({ reconciled, condition, planned, blocked }: ProjectResult, commit: string): Result {
  const plan = planned === undefined ? 'Not planned yet' : `Plan: ${countsOf(planned)}`;
  if (reconciled !== commit) return { state: 'pending', text: plan };
  const state = stateOf(condition);
  if (condition === 'converged') return { state, text: `Converged. ${plan}` };
  // The messages of errors may name hosts of the operator's network, so only the condition is shown.
  return {
    state,
    text: condition === 'blocked' ? blockedText(blocked) : `The project ${sentenceOf(condition)}. ${plan}`,
  };
}

/** A policy refuses the plan as a whole. */
function blockedText(blocked: ProjectResult['blocked']): string {
  const [first, ...more] = blocked.filter((each) => !isWaiting(each));
  if (first === undefined) return 'Blocked';
  if (first.code === 'check_refused') return `Refused: ${first.reason}`;
  return `Blocked: ${first.key}: ${first.reason}${andMore(more.length)}`;
}

/** Counts of the plan, such as `2 to create, 1 to delete`. */
function countsOf(summary: Plan['summary']): string {
  const counts = (['create', 'update', 'replace', 'delete', 'adopt'] as const).flatMap((verb) =>
    summary[verb] === 0 ? [] : [`${summary[verb]} to ${verb}`],
  );
  return counts.length === 0 ? 'no changes' : counts.join(', ');
}

function andMore(count: number): string {
  return count > 0 ? ` (and ${count} more)` : '';
}

/** In a fleet, a commit has succeeded when all projects have it: other replicas know how each of them is. */
function ofRollouts(rollouts: readonly Rollout[]): Result {
  const stopped = rollouts.find(({ phase }) => phase === 'stopped');
  const [first] = rollouts;
  if (first === undefined) return { state: 'success', text: 'In force in all projects' };
  const { phase, wave, left, total, deletions } = stopped ?? first;
  const progress = `${total - left} of ${total} projects have this commit`;
  const text = {
    stopped: `Stopped after wave ${wave}`,
    waiting: `Waiting for approval: ${deletions} deletions`,
    counting: 'Counting the deletions',
    queued: 'Waiting for an earlier commit',
    running: `Wave ${wave}`,
  }[phase];
  return { state: phase === 'stopped' ? 'failure' : 'pending', text: `${text}. ${progress}` };
}
