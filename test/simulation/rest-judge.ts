import type { DesiredResource } from '../../src/core/desired.ts';
import type { Binding, Intent } from '../../src/core/state.ts';
import type { Project, Server } from '../../src/emulator/world.ts';
import type { Controller } from '../../src/simulation/controller.ts';
import type { RestJudge, Thing } from '../../src/simulation/rest.ts';
import { entryOf } from '../../src/simulation/spec-file.ts';
import type { StoryStage } from '../../src/simulation/stage.ts';
import { failuresAreReported, type SpecModel } from '../../src/simulation/story.ts';
import { checkJournal } from './journal.ts';

/** The judgement of a story that has come to rest, where states are put back and a profile enables operations. */
export function storyRest(lines: readonly string[]): RestJudge {
  return {
    ...{ unknowableTo, isAsWanted },
    checkState: (stage, controller) => checkJournal(stage, controller, lines),
  };
}

/** Servers that only a state of before has known, or whose key the API had forgotten, and no documented read shows. */
async function unknowableTo(
  { history, clock, observer, emulator }: StoryStage,
  { box, epoch, behind, clockWasSet }: Controller,
  { servers }: Project,
): Promise<readonly Thing[]> {
  // Only the clock of the host showed that the API had forgotten the key. @source API §8
  if (clockWasSet && !emulator.readings.dateHeader)
    return servers
      .filter(({ id }) => history.isUnseen(String(id), true))
      .map(({ id }) => ({ kind: 'server', id: String(id) }));
  const hidden = epoch === 0 ? [] : servers.filter(({ id }) => history.isUnseen(String(id), behind));
  if (hidden.length === 0) return [];
  const store = await box.open(clock.now());
  const journal = await store.journal({ limit: Number.POSITIVE_INFINITY });
  await box.release();
  const ever = new Set(
    journal.flatMap(({ data }) => {
      const { binding, intent } = data as { readonly binding?: Binding; readonly intent?: Intent };
      // A reservation asks nothing.
      const isAsked = intent !== undefined && intent.request.probe === undefined;
      const made = isAsked ? history.knowableUnder(intent).filter((each) => history.isLive(each)) : [];
      // The id may have belonged to an earlier server. @assumption A17
      const isSame =
        binding !== undefined &&
        history.birthBoundAs(binding)?.number === history.birthOf('server', binding.id)?.number;
      return [...made, ...(isSame ? [binding] : [])].map(({ kind, id }) => `${kind} ${id}`);
    }),
  );
  const unknown = hidden.filter(({ id }) => !ever.has(`server ${id}`));
  if (unknown.length > 0) observer.count('servers that a state put back can know nothing of');
  return unknown.map(({ id }) => ({ kind: 'server', id: String(id) }));
}

function isAsWanted(
  { story, emulator, controllers }: StoryStage,
  bindings: readonly Binding[],
  { key, kind, value, protect }: DesiredResource,
  server: Server | undefined,
  spec: SpecModel,
): boolean {
  const { backups, images } = emulator.world.projects[0] as Project;
  if (kind === 'server_image') {
    const binding = bindings.find((each) => each.key === key);
    // Where the answer had no id, it goes by its name. @assumption A51
    const isThere = images.some(({ id, name }) => [id, name].includes(binding?.id ?? ''));
    return binding === undefined || isThere || !failuresAreReported(story);
  }
  if (story.profile !== true) return true;
  if (kind === 'backup') {
    const { keep } = value as { readonly keep?: number };
    const copies = bindings.filter(
      (each) =>
        each.key.startsWith(`${key}.`) &&
        backups.some(({ id, serverId }) => id === each.id && serverId === server?.id),
    ).length;
    return protect || copies + 1 <= (keep ?? copies + 1);
  }
  if (kind === 'drive') {
    const iso = (value as { readonly iso: string | null }).iso;
    // No key is bound to an ISO with `managed: false`, and its entry may give the name alone.
    const entry = iso === null ? undefined : entryOf(spec, iso);
    const id = bindings.find((each) => each.key === iso)?.id ?? entry?.id ?? iso;
    if (entry?.managed === false && id === iso) return true;
    // No read shows the drive, which another file may have changed.
    const mayBeAnothers = controllers.length > 1;
    return mayBeAnothers || !failuresAreReported(story) || server?.isoInDrive === id;
  }
  return true;
}
