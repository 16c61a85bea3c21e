import { startEmulator } from '../src/emulator/http-server.ts';

// The emulator of `bench:fleet`, in a process of its own: its CPU time is no part of a replica's.

interface Watch {
  readonly project: number;
  readonly text: string;
}

const { projects, speed } = JSON.parse(process.argv[2] ?? '') as {
  projects: readonly number[];
  speed: number;
};
const api = await startEmulator({ speed, projects: projects.map((id) => ({ id, name: `project ${id}` })) });
const tokens = projects.map((id) => [id, api.emulator.tokens(id).readWrite] as const);
process.send?.({ baseUrl: api.baseUrl, tokens });

/** Gives each project the resources of the first one. */
function copyFirst(): void {
  const world = api.emulator.snapshot();
  const [first] = world.projects;
  if (first === undefined) return;
  world.projects = world.projects.map(({ id, name }) => {
    return { ...structuredClone({ ...first, tasks: [], answers: [] }), id, name };
  });
  api.emulator.restore(world);
  process.send?.({ copied: projects.length });
}

/** `copy`, or a watch: answers when the project was sent a POST with this text. */
process.on('message', (message: Watch | 'copy') => {
  if (message === 'copy') return copyFirst();
  const { project, text } = message;
  const { requests } = api.emulator;
  const [last] = requests.slice(-1);
  const timer = setInterval(() => {
    const news = requests.slice(last === undefined ? 0 : requests.lastIndexOf(last) + 1);
    const isSent = news.some((each) => {
      return each.project === project && each.method === 'POST' && each.body?.includes(text) === true;
    });
    if (!isSent) return;
    clearInterval(timer);
    process.send?.({ sent: text });
  }, 5);
});
process.on('disconnect', () => process.exit());
