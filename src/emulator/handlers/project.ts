import type { Route } from '../call.ts';
import { Refusal } from '../problem.ts';
import { shows } from '../router.ts';
import { projectView, taskView } from '../views.ts';

/** `@source API §4 /project, /tasks` */
export const projectRoutes: readonly Route[] = [
  shows('read_project', '/project', ({ project, readings }) => projectView(project, readings)),
  shows('read_task', '/tasks/{id}', ({ project, params, nowMs, readings }) => {
    const task = project.tasks.find((candidate) => candidate.id === params.id);
    const kept = task !== undefined && !(task.done && nowMs - task.endsMs >= readings.taskRetentionMs);
    if (!kept || task.forgotten) throw new Refusal(404, 'task_not_found', 'The task does not exist.');
    return taskView(task, nowMs);
  }),
];
