import { Refusal } from '../problem.ts';
import type { Route } from '../router.ts';
import { projectView, taskView } from '../views.ts';

/** `@source API §4 /project, /tasks` */
export const projectRoutes: readonly Route[] = [
  {
    name: 'read_project',
    method: 'GET',
    path: '/project',
    handle: ({ project, readings }) => ({ status: 200, data: projectView(project, readings) }),
  },
  {
    name: 'read_task',
    method: 'GET',
    path: '/tasks/{id}',
    handle: ({ project, params, nowMs, readings }) => {
      const task = project.tasks.find((candidate) => candidate.id === params.id);
      const kept = task !== undefined && !(task.done && nowMs - task.endsMs >= readings.taskRetentionMs);
      if (!kept || task.forgotten)
        throw new Refusal(404, 'task_not_found', { detail: 'The task does not exist.' });
      return { status: 200, data: taskView(task, nowMs) };
    },
  },
];
