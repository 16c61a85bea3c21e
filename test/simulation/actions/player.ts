import { SpecError } from '../../../src/core/errors.ts';
import { type ResourceKey, takeApart, topLevelKey } from '../../../src/core/keys.ts';
import type { Plan } from '../../../src/core/plan.ts';
import type { ApplyReport } from '../../../src/core/progress.ts';
import type { Binding } from '../../../src/core/state.ts';
import { mutate } from '../../../src/simulation/client-area.ts';
import type { Controller, Running } from '../../../src/simulation/controller.ts';
import { operate } from '../../../src/simulation/operator.ts';
import { type Command, type Operator, runCommand } from '../../../src/simulation/operator-command.ts';
import type { RunCall } from '../../../src/simulation/parts.ts';
import { type Birth, isSort, listsOf, type ResourceSort } from '../../../src/simulation/resource-history.ts';
import { judgeEnd } from '../../../src/simulation/scenario.ts';
import type { StoryStage } from '../../../src/simulation/stage.ts';
import type { SpecModel } from '../../../src/simulation/story.ts';
import type { Actions } from '../director.ts';
import { EditedFile, editedFile } from '../edited-file.ts';
import { ActionLines, type EditedSection } from '../lines.ts';
import { boxOf } from '../machine-box.ts';
import { answer } from '../operator/answer.ts';
import { exchangeState, mutateAt } from '../strike.ts';
import { FileEditor, nameAt } from './file-editor.ts';
import type {
  CommandAction,
  EntryPlace,
  FileEdit,
  GivenId,
  OperatorAction,
  TimedAction,
} from './operator-action.ts';

const sortOf = { servers: 'server', ips: 'ip', networks: 'network', isos: 'iso' } as const satisfies Record<
  EditedSection,
  ResourceSort
>;

/** Plays the actions of operators, in order, each at its moment. */
export class ActionPlayer implements Actions {
  readonly #stage: StoryStage;
  readonly #main: Controller;
  readonly #left: TimedAction[];
  /** Crossings of the boundary of the next action since the action before. */
  #crossings = 0;
  #isDue = false;
  #isApplied = false;
  #other: Controller | undefined;
  #saved: Plan | undefined;
  #report: ApplyReport | undefined;
  readonly #calls = new Map<Controller, RunCall>();
  readonly #editors = new Map<EditedFile, FileEditor>();

  constructor(stage: StoryStage, main: Controller) {
    this.#stage = stage;
    this.#main = main;
    this.#left = [...((stage.story.actions ?? []) as readonly TimedAction[])];
  }

  get isOver(): boolean {
    return this.#left.length === 0;
  }

  get others(): readonly Controller[] {
    return this.#other === undefined ? [] : [this.#other];
  }

  /** How the next run of the machine is called, once. */
  takeCall(controller: Controller): RunCall {
    const call = this.#calls.get(controller) ?? {};
    this.#calls.delete(controller);
    return call;
  }

  /** A process crosses a boundary: the next action may be due there. */
  crossed(running: Running, name: string): void {
    const [next] = this.#left;
    if (next === undefined || typeof next.when === 'string' || this.#isDue || running.byOperator) return;
    if (next.when.boundary !== name || ++this.#crossings < next.when.nth) return;
    this.#isDue = true;
    running.halt.abort(new Error('halt'));
  }

  /** A run of the machine has ended. */
  ended(controller: Controller, report: ApplyReport | undefined): void {
    if (controller !== this.#main) return;
    // A run that was interrupted has no messages, and those of the run before it may not hold any more.
    this.#report = report;
    this.#isApplied = report?.outcome === 'converged';
  }

  /** Carries out the actions that are due; `isAtRest`: the runs have nothing left to do. */
  async act(isAtRest: boolean): Promise<void> {
    let isFirst = this.#isDue || isAtRest;
    for (;;) {
      const [next] = this.#left;
      if (next === undefined || this.#stage.violation !== undefined) return;
      if (!isFirst && next.when !== 'at_once') return;
      isFirst = false;
      this.#left.shift();
      this.#crossings = 0;
      this.#isDue = false;
      this.#stage.observer.count(`action ${next.what.do}`);
      this.#stage.trace.add('op', JSON.stringify(next.what));
      await this.#carryOut(this.#controllerOf(next), next.what);
      // The messages of the last run hold for the spec and the state of that run.
      if (next.what.do !== 'wait') this.#report = undefined;
    }
  }

  #controllerOf({ by }: TimedAction): Controller {
    return by === 'other_file' ? (this.#other ?? this.#main) : this.#main;
  }

  async #carryOut(controller: Controller, what: OperatorAction): Promise<void> {
    switch (what.do) {
      case 'answer':
      case 'apply_target':
      case 'apply_exclude':
      case 'destroy':
      case 'save_plan':
      case 'apply_saved':
      case 'forget':
      case 'ignore':
      case 'adopt':
      case 'resolve':
        return this.#command(controller, what);
      case 'lose_the_state':
        return exchangeState(controller, () => boxOf(controller).lose(), false);
      case 'put_state_back':
        return exchangeState(controller, () => boxOf(controller).cut(what.changes));
      case 'start_other_file':
        this.#startOther(what.scope);
        return;
      case 'wait':
        return this.#stage.clock.advance(what.ms);
      case 'remove':
        return mutateAt(this.#stage, what);
      case 'standing':
        mutate(this.#stage, { do: 'set_standing', standing: what.standing });
        return;
      default:
        return this.#edit(controller, what);
    }
  }

  #startOther(isScoped: boolean): void {
    if (this.#other !== undefined) return;
    const { model } = this.#stage.file;
    const file = isScoped
      ? new EditedFile({ ...model, scope: 'other' }, new ActionLines('other/'))
      : new EditedFile(model);
    this.#other = this.#stage.controller('c', 'readWrite', file);
  }

  async #edit(controller: Controller, edit: FileEdit): Promise<void> {
    const { bindings } = await this.#stage.readState(controller);
    const ids = {
      find: (section: EditedSection, name: string, which: GivenId) =>
        this.#idFor(controller, bindings, topLevelKey(section, name), which),
    };
    const file = editedFile(controller);
    const editor = this.#editors.get(file) ?? new FileEditor(file);
    this.#editors.set(file, editor);
    this.#write(controller, editor.edited(edit, ids, this.#isApplied));
  }

  /** An operator does not apply a file that vdcsync refuses. */
  #write(controller: Controller, model: SpecModel | undefined): void {
    const { trace } = this.#stage;
    if (model === undefined) {
      trace.add('op', 'nothing to edit');
      return;
    }
    try {
      this.#stage.load(model);
    } catch (error) {
      if (!(error instanceof SpecError)) throw error;
      trace.add('op', `the file is refused: ${error.message}`);
      return;
    }
    controller.file.model = model;
    if (controller === this.#main) {
      this.#isApplied = false;
      // The report is about the spec before.
      this.#report = undefined;
    }
    trace.add('op', `the file is ${JSON.stringify(model)}`);
  }

  #idFor(
    controller: Controller,
    bindings: readonly Binding[],
    key: ResourceKey,
    which: GivenId,
  ): string | undefined {
    const { kind } = takeApart(key);
    if (!isSort(kind)) return undefined;
    if (which === 'unknown') return kind === 'iso' ? 'uiso-999999' : '999999';
    const { history } = this.#stage;
    const made = history
      .executionsOf(controller.file.lines.nameOf(key))
      .findLast((each) => each.kind === kind && history.isLive(each));
    const own = bindings.find((each) => each.key === key)?.id ?? made?.id ?? undefined;
    if (which === 'own') return own;
    const lists = this.#lists();
    return lists[kind].map(({ id }) => String(id)).find((id) => id !== own);
  }

  /** The resources that an operator may mean, by their sort. */
  #lists() {
    const lists = listsOf(this.#stage.project);
    return { ...lists, network: lists.network.filter((each) => !each.isDefault) };
  }

  async #command(controller: Controller, what: CommandAction): Promise<void> {
    switch (what.do) {
      case 'answer':
        if (this.#report === undefined || controller !== this.#main) return;
        this.#write(controller, await operate(this.#operator(controller), this.#report, answer));
        return;
      case 'apply_target':
      case 'apply_exclude': {
        const key = keyAt(controller.file.model, what.of);
        if (key === undefined) return;
        const selection = { targets: [], excludes: [] };
        const part = what.do === 'apply_target' ? { targets: [key] } : { excludes: [key] };
        this.#calls.set(controller, { selection: { ...selection, ...part } });
        return;
      }
      case 'destroy':
        this.#calls.set(controller, { destroy: true });
        return;
      case 'save_plan':
        this.#saved = await this.#plan(controller);
        return;
      case 'apply_saved':
        if (this.#saved !== undefined) this.#calls.set(controller, { saved: this.#saved });
        return;
      case 'forget':
        return this.#forget(controller, what.place);
      case 'ignore':
        return this.#ignore(controller, what);
      case 'adopt':
        return this.#adopt(controller, what.of, what.id);
      case 'resolve':
        return this.#resolve(controller, what);
    }
  }

  async #plan(controller: Controller): Promise<Plan | undefined> {
    const { clock } = this.#stage;
    await clock.advance(2 * 60_000);
    const desired = this.#stage.load(controller.file.model);
    const { running, engine } = await this.#stage.start(controller, desired, true);
    const work = engine.plan(desired).catch((error: unknown) => this.#judge(error));
    const plan = await clock.run(Promise.race([work, running.crashable.died.then(() => undefined)]));
    await this.#stage.end(running);
    await clock.advance(2 * 60_000);
    return plan;
  }

  async #forget(controller: Controller, place: number): Promise<void> {
    const { bindings } = await this.#stage.readState(controller);
    const keys = bindings.map(({ key }) => key).sort();
    const key = keys[place % Math.max(1, keys.length)];
    if (key !== undefined) await this.#say(controller, { do: 'forget', key });
  }

  async #ignore(controller: Controller, what: CommandAction & { do: 'ignore' }): Promise<void> {
    const { of, place, undo } = what;
    const list = this.#lists()[of];
    const one = list[place % Math.max(1, list.length)];
    if (one === undefined) return;
    const { history } = this.#stage;
    const name = 'address' in one ? one.address : String(one.id);
    const births = [history.birthOf(of, String(one.id))];
    if (of === 'server')
      for (const ip of this.#lists().ip)
        if (ip.serverId === one.id) births.push(history.birthOf('ip', String(ip.id)));
    const said = await this.#say(controller, { do: undo ? 'unignore' : 'ignore', names: [name] });
    // The operator takes the resource out of the management of the spec, which may buy another one.
    if (said && !undo) for (const birth of births) if (birth !== undefined) history.dismiss(birth);
  }

  async #adopt(controller: Controller, of: EntryPlace, which: GivenId): Promise<void> {
    const key = keyAt(controller.file.model, of);
    if (key === undefined) return;
    const { bindings } = await this.#stage.readState(controller);
    const id = this.#idFor(controller, bindings, key, which);
    if (id === undefined) return;
    if (await this.#say(controller, { do: 'adopt', key, id }))
      this.#given(controller, sortOf[of.section], id, key);
  }

  async #resolve(controller: Controller, what: CommandAction & { do: 'resolve' }): Promise<void> {
    const { place, word, id: which } = what;
    const { open } = await this.#stage.readState(controller);
    const intent = [...open].sort((a, b) => (a.key < b.key ? -1 : 1))[place % Math.max(1, open.length)];
    if (intent === undefined) return;
    const { key } = intent;
    const { history } = this.#stage;
    // A task may have ended since the last request.
    history.recordExecutions(false);
    const made = history.executionsUnder(intent.idempotencyKey).filter((each) => history.isLive(each));
    if (word !== 'adopt') {
      const said = await this.#say(controller, { do: 'resolve', key, as: { type: word } });
      // The operator declares the creation absent, so another one may be bought.
      if (said && intent.verb === 'create') {
        history.releasedUnder(intent.idempotencyKey);
        for (const each of made) {
          const birth = isSort(each.kind) && each.id !== null && history.birthOf(each.kind, each.id);
          if (birth) history.dismiss(birth);
        }
      }
      return;
    }
    const { bindings } = await this.#stage.readState(controller);
    const own = made[0]?.id?.split('/').at(-1);
    const id = which === 'own' ? own : this.#idFor(controller, bindings, key, which);
    if (id === undefined) return;
    const said = await this.#say(controller, { do: 'resolve', key, as: { type: 'adopt', id } });
    if (said && isSort(intent.kind)) this.#given(controller, intent.kind, id, key);
  }

  /** The operator has said whose resource it is. */
  #given(controller: Controller, sort: ResourceSort, id: string, key: ResourceKey): void {
    const { history } = this.#stage;
    const birth: Birth | undefined = history.birthOf(sort, id);
    if (birth === undefined) return;
    history.give(birth, controller.file.lines.nameOf(key));
    controller.confirmed.add(birth.number);
  }

  /** Whether the command has succeeded. A refusal is an answer too; any other error is a bug. */
  async #say(controller: Controller, command: Command): Promise<boolean> {
    const said = await runCommand(this.#operator(controller), command);
    if (said instanceof Error) this.#judge(said);
    return said !== undefined && !(said instanceof Error);
  }

  #operator(controller: Controller): Operator {
    return { stage: this.#stage, controller, file: controller.file.model };
  }

  #judge(error: unknown): undefined {
    judgeEnd(this.#stage, { end: 'error', error }, true);
  }
}

function keyAt(model: SpecModel, of: EntryPlace): ResourceKey | undefined {
  const name = nameAt(model, of);
  return name === undefined ? undefined : topLevelKey(of.section, name);
}
