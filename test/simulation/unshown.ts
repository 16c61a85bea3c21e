import { seenInterfaces, seenIps, showsIso } from '../../src/emulator/visibility.ts';
import type { Execution, TaskEffect } from '../../src/emulator/world.ts';
import { keyLifeMs, projectOf, type Truth } from '../../src/simulation/rules/truth.ts';

// The creations that no documented read shows.

/** The list in which alone it can be seen ends before it. @assumption A8 */
export function isCutOff(truth: Truth, { kind, id }: Execution): boolean {
  const { pageSize } = truth.emulator.readings;
  if (pageSize === null || (kind !== 'network' && kind !== 'card' && kind !== 'ip')) return false;
  const { networks, servers, ips } = projectOf(truth);
  const [server, card] = (id ?? '').split('/');
  const cards = servers.find((each) => String(each.id) === server)?.interfaces ?? [];
  const place =
    kind === 'card'
      ? cards.findIndex((each) => each.id === card)
      : (kind === 'ip' ? ips : networks).findIndex((each) => String(each.id) === id);
  return place === -1 || place >= pageSize;
}

/** Only its addresses show it, which the list ends before: no list of servers has it, and no network counts it. @assumption A8 */
export function isServerCutOff(truth: Truth, { kind, id }: Execution): boolean {
  const { readings } = truth.emulator;
  const project = projectOf(truth);
  const server = project.servers.find((each) => kind === 'server' && String(each.id) === id);
  if (readings.pageSize === null || server === undefined || truth.serversAreListed) return false;
  const isCounted = seenInterfaces(project, server, readings).some((card) => !card.public);
  const shown = seenIps(project, readings).slice(0, readings.pageSize);
  return !isCounted && shown.every(({ serverId }) => serverId !== server.id);
}

/** Its task never ends, so no list shows it, and its key has stopped to replay the answer. @source API §8 */
export function isPendingForGood(first: Execution, execution: Execution): boolean {
  return first.id === null && execution.atMs - first.atMs >= keyLifeMs;
}

/** Whether this work ends with the resource of the creation. */
export function makes(effect: TaskEffect, { kind, id }: Execution): boolean {
  switch (effect.kind) {
    case 'create_server':
      return kind === 'server' && id === String(effect.serverId);
    case 'create_network':
      return kind === 'network' && id === String(effect.networkId);
    case 'add_card':
      return kind === 'card' && id === `${effect.serverId}/${effect.cardId}`;
    case 'add_iso':
      return kind === 'iso' && id === effect.isoId;
    default:
      return false;
  }
}

/** Is it being made, and shown by no read yet? @source API §3 rule 5 */
export function isHidden(truth: Truth, { kind, id }: Execution): boolean {
  const project = projectOf(truth);
  const { readings } = truth.emulator;
  const [server, card] = (id ?? '').split('/');
  switch (kind) {
    case 'network':
      return id === null;
    case 'iso':
      return project.isos.some((iso) => iso.id === id && !showsIso(project, iso, readings));
    case 'server':
      return truth.history.isUnseen(id ?? '', true);
    case 'card': {
      const owner = project.servers.find((each) => String(each.id) === server);
      return (
        owner !== undefined && !seenInterfaces(project, owner, readings).some((each) => each.id === card)
      );
    }
    default:
      return false;
  }
}

/** No read shows images. @source API §4 */
export function isUnseen({ history }: Truth, { kind, id }: Execution, behind: boolean): boolean {
  return kind === 'image' || (kind === 'server' && id !== null && history.isUnseen(id, behind));
}
