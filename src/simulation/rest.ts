import equal from 'fast-deep-equal';
import type { DesiredResource } from '../core/desired.ts';
import { retiredFrom } from '../core/keys.ts';
import type { KindName } from '../core/kind-facts.ts';
import type { Warning } from '../core/plan.ts';
import type { Binding } from '../core/state.ts';
import type { Network, Project, Server } from '../emulator/world.ts';
import type { Controller } from './controller.ts';
import { listsOf, sorts } from './resource-history.ts';
import type { StoryStage } from './stage.ts';
import type { SpecModel } from './story.ts';

export interface Thing {
  readonly kind: KindName;
  readonly id: string | null;
}

/** The parts of the judgement that a rehearsal has no use for. */
export interface RestJudge {
  /** Servers that no controller can know of. */
  unknowableTo(stage: StoryStage, controller: Controller, project: Project): Promise<readonly Thing[]>;
  /** Whether the resource of an operation that only a profile enables is as the spec wants it. */
  isAsWanted(
    stage: StoryStage,
    bindings: readonly Binding[],
    resource: DesiredResource,
    server: Server | undefined,
    spec: SpecModel,
  ): boolean;
  /** Whether the state of the machine is sound. */
  checkState(stage: StoryStage, controller: Controller): Promise<void>;
}

const rehearsed: Omit<RestJudge, 'checkState'> = { unknowableTo: async () => [], isAsWanted: () => true };

/** The next run plans nothing and writes nothing, and neither does a dry run. Returns the warnings. */
export async function checkFixedPoint(
  stage: StoryStage,
  controller: Controller,
  spec: SpecModel,
): Promise<readonly Warning[]> {
  let warnings: readonly Warning[] = [];
  const desired = stage.load(spec);
  for (const dry of [true, false]) {
    if (stage.violation !== undefined) return warnings;
    // A dry run leaves no note of its requests, so the process after it does not know them.
    await stage.clock.advance(2 * 60_000);
    const { running, engine } = await stage.start(controller, desired, dry);
    const changes = () => stage.crossed.get('beginIntent:before') ?? 0;
    const writes = () => stage.crossed.get('write:before') ?? 0;
    const before = [changes(), writes(), stage.crossed.get('change:after') ?? 0];
    const work = dry
      ? engine.plan(desired)
      : engine.apply(desired, { approve: async () => false }).then(({ plan }) => plan);
    const plan = await stage.clock.run(Promise.race([work, running.crashable.died.then(() => undefined)]));
    if (plan !== undefined && plan.operations.length + plan.blocked.length > 0) {
      const what = [
        ...plan.operations.map(({ id }) => id),
        ...plan.blocked.map(({ key, code }) => `${key} ${code}`),
      ];
      stage.fail('I13', `right after it converged, the next run plans ${what.join(', ')}`);
    }
    if (changes() !== before[0] || writes() !== before[1])
      stage.fail('I13', 'a run with nothing to do wrote');
    if (dry && (stage.crossed.get('change:after') ?? 0) !== before[2])
      stage.fail('I7', 'a dry run changed the state');
    const strange = plan?.warnings.find(({ code }) => code === 'unmanaged_resources');
    if (isCalm(stage) && strange !== undefined) stage.fail('I1', `without any fault ${strange.message}`);
    warnings = plan?.warnings ?? [];
    await stage.end(running);
  }
  const { bindings } = await stage.readState(controller);
  const retired = bindings.find(({ kind, key }) => kind === 'server' && retiredFrom(key) !== undefined);
  if (retired !== undefined) stage.fail('I1', `${retired.key} stays although its successor is complete`);
  return warnings;
}

/** Each billed resource is wanted, kept on purpose or foreign. Each wanted resource exists. */
export async function checkAtRest(
  stage: StoryStage,
  controller: Controller,
  spec: SpecModel,
  warnings: readonly Warning[],
  judge: Omit<RestJudge, 'checkState'> = rehearsed,
): Promise<void> {
  if (stage.violation !== undefined) return;
  const { bindings } = await stage.readState(controller);
  const { project } = stage;
  const known: Thing[] = [];
  for (const each of stage.controllers) {
    const things = await knownTo(stage, each);
    known.push(...things, ...(await judge.unknowableTo(stage, each, project)));
    // The plan of another file reports the addresses of the servers of that file.
    if (each.file === controller.file) continue;
    for (const { kind, id } of things)
      if (kind === 'server' && id !== null) known.push(...addressesOf(project, id));
  }
  const desired = stage.load(spec);
  // The spec names resources that it does not manage.
  for (const { kind, id, held } of desired.resources)
    if (id !== undefined && held === undefined)
      known.push({ kind, id }, ...(kind === 'server' ? addressesOf(project, id) : []));
  checkNothingLeft(stage, project, known, warnings);
  checkNoNeedlessAddress(stage, project, bindings);
  if (desired.settings.drift === 'report') return;
  for (const resource of desired.resources)
    if (resource.managed && !isThere(stage, project, bindings, resource, spec, judge))
      stage.fail('I12', `converged, but ${resource.key} does not match the spec`);
}

/** The resources that a machine knows: bound, or made by a write that is still open. */
async function knownTo(stage: StoryStage, controller: Controller): Promise<readonly Thing[]> {
  const { bindings, open } = await stage.readState(controller);
  const made = open.flatMap(({ idempotencyKey, kind }) =>
    stage.history
      .executionsUnder(idempotencyKey)
      .filter((each) => stage.history.isLive(each))
      .map(({ id }) => ({ kind, id })),
  );
  return [...bindings, ...made];
}

function addressesOf({ ips }: Project, server: string): readonly Thing[] {
  return ips
    .filter(({ serverId }) => String(serverId) === server)
    .map(({ id }) => ({ kind: 'ip', id: String(id) }));
}

function isBeingMade(project: Project, server: number | null): boolean {
  return project.servers.some(({ id, status }) => id === server && status === 'creating');
}

function checkNothingLeft(
  stage: StoryStage,
  project: Project,
  known: readonly Thing[],
  warnings: readonly Warning[],
): void {
  const text = [...warnings.map(({ message }) => message), ...stage.leftBilled].join('\n');
  // A warning reports servers without a known id: only the count of a network shows these servers.
  const isOfServers = ({ code }: { readonly code: string }) => code === 'unlisted_servers';
  // The plan of another file asks about the servers of that file.
  const areAsked = stage.controllers.length > 1 && stage.questions.all.some(isOfServers);
  const areCounted = warnings.some((each) => isOfServers(each) && each.key === null) || areAsked;
  const forgotten = stage.controllers.some(({ epoch }) => epoch > 0);
  const lists = listsOf(project);
  for (const sort of sorts) {
    for (const one of lists[sort]) {
      const { id } = one;
      // A warning lists several resources of a sort together.
      const isNamed = () => new RegExp(`\\b${sort}s? [^;]*\\b${id}\\b`).test(text);
      const traceLineOf = 'address' in one ? text.includes(one.address) : isNamed();
      // No read shows it before the task that made its server ends. @assumption A59
      if ('serverId' in one && isBeingMade(project, one.serverId)) continue;
      // An address is released with its server.
      if ('serverId' in one && stage.history.wasReleased('server', String(one.serverId))) continue;
      const birth = stage.history.birthOf(sort, String(id));
      const isUnbilled = sort === 'network' || sort === 'iso';
      // If the resource is billed, a warning also reports a resource that a lost state no longer knows, or that appeared
      // after the operator had given up its creation.
      const isLost = forgotten || (birth !== undefined && stage.history.isGivenUp(birth));
      // A question named the resource, and the operator removed the entry that the resource blocked.
      const isReported = stage.questions.all.some(
        ({ code, kind }) => code === 'name_exists' && kind === sort,
      );
      const isUnidentified = ({ code, key }: Warning) =>
        code === 'unlisted_servers' && birth !== undefined && key === stage.history.madeUnder(birth);
      if (
        traceLineOf ||
        (sort === 'server' && (areCounted || warnings.some(isUnidentified))) ||
        (forgotten && stage.ignoresUnmanaged) ||
        (isUnbilled && (isLost || isReported))
      )
        continue;
      const isKnown = known.some((each) => each.kind === sort && each.id === String(id));
      if (isKnown || birth?.isForeign || stage.history.wasReleased(sort, String(id))) continue;
      if (sort === 'server' && stage.rules.isHidden(String(id)))
        stage.giveUp('a server error was lost that had its effect, of a resource that no read shows');
      else if (sort === 'network' && (stage.story.readings.pageSize ?? null) !== null)
        stage.giveUp('only a list shows the resource, and the list is cut off');
      else if ('cidr' in one && isTwin(one, project, known))
        stage.giveUp('two states created the network at the same time, and both took the same one');
      else stage.fail('I1', `${sort} ${id} exists, but no state and no warning mentions it`);
    }
  }
}

/** Two states know the other network of that name and subnet. */
function isTwin({ id, name, cidr }: Network, { networks }: Project, known: readonly Thing[]): boolean {
  const others = networks.filter((each) => each.id !== id && each.name === name && each.cidr === cidr);
  const statesOf = (other: number) =>
    known.filter((each) => each.kind === 'network' && each.id === `${other}`);
  return others.some((other) => statesOf(other.id).length > 1);
}

/** Undisturbed, an address goes with the server that it came with, unless the spec has it kept. */
function checkNoNeedlessAddress(stage: StoryStage, project: Project, bindings: readonly Binding[]): void {
  const servers = stage.story.specs.flatMap((spec) => Object.values(spec.servers));
  const mayStay = servers.some(
    ({ keep_ip, public_ipv4 }) => keep_ip === true || equal(public_ipv4, { reuse: true }),
  );
  if (!isCalm(stage) || mayStay) return;
  const bound = new Set(bindings.filter(({ kind }) => kind === 'ip').map(({ id }) => id));
  const left = project.ips.find(
    ({ id, serverId }) =>
      serverId === null && !bound.has(String(id)) && !stage.history.birthOf('ip', String(id))?.isForeign,
  );
  if (left !== undefined) stage.fail('I1', `without any fault ${left.address} stays without its server`);
}

function isCalm({ story, controllers }: StoryStage): boolean {
  const undisturbed =
    story.actions === undefined &&
    story.faults.length === 0 &&
    story.incidents.every(({ what }) => what.do === 'edit');
  return undisturbed && controllers.every(({ epoch }) => epoch === 0);
}

/** Whether the resource of an entry exists as the spec wants it. */
function isThere(
  stage: StoryStage,
  project: Project,
  bindings: readonly Binding[],
  resource: DesiredResource,
  spec: SpecModel,
  judge: Pick<RestJudge, 'isAsWanted'>,
): boolean {
  const { key, kind, parent, value } = resource;
  const binding = bindings.find((each) => each.key === key);
  const owner = bindings.find((each) => each.key === parent);
  const server = project.servers.find((each) => String(each.id) === owner?.id);
  switch (kind) {
    case 'server':
      // Without a task in the answer, no documented read shows whether the work failed.
      return project.servers.some((each) => String(each.id) === binding?.id);
    case 'ip': {
      const isBound = (id: string) => bindings.some((each) => each.kind === 'ip' && each.id === id);
      const isForeign = (id: string) =>
        stage.history.birthOf('ip', id)?.isForeign === true || stage.history.wasReleased('ip', id);
      const attached = project.ips.filter((each) => server !== undefined && each.serverId === server.id);
      const isUnbound = attached.some(({ id }) => !isBound(String(id)) && !isForeign(String(id)));
      if (isUnbound && asksForNew(spec, parent)) return false;
      return parent !== undefined || project.ips.some((each) => String(each.id) === binding?.id);
    }
    case 'network':
      return project.networks.some((each) => String(each.id) === binding?.id);
    case 'iso':
      return project.isos.some((each) => each.id === binding?.id && each.status === 'available');
    case 'network_interface': {
      const network = bindings.find((each) => each.key === (value as { readonly network: string }).network);
      const interfaces =
        server?.interfaces.filter((each) => !each.public && String(each.networkId) === network?.id) ?? [];
      return network === undefined || interfaces.length > 0;
    }
    case 'firewall':
      return server !== undefined && isLike(server.firewall, value);
    case 'backup':
      return (
        project.backups.some((each) => each.serverId === server?.id) &&
        judge.isAsWanted(stage, bindings, resource, server, spec)
      );
    case 'drive':
    case 'server_image':
    case 'backup_policy':
      return judge.isAsWanted(stage, bindings, resource, server, spec);
  }
}

/** Whether the live firewall has all that was asked for; a field that was left out asks for nothing. */
export function isLike(live: Server['firewall'], asked: unknown): boolean {
  const {
    enabled = live.enabled,
    policy_in = live.policyIn,
    rules = live.rules,
  } = asked as {
    readonly enabled?: boolean;
    readonly policy_in?: string;
    readonly rules?: readonly object[];
  };
  const ports = (each: readonly object[]) =>
    each.map((rule) => (rule as { readonly destination_port?: unknown }).destination_port);
  return live.enabled === enabled && live.policyIn === policy_in && equal(ports(live.rules), ports(rules));
}

/** Its own address must be bound with it. A warning reports any other address that the server may have. */
function asksForNew({ servers }: SpecModel, key: string | undefined): boolean {
  const address = servers[key?.slice('servers.'.length) ?? '']?.public_ipv4;
  return (address as { readonly new?: true } | undefined)?.new === true;
}
