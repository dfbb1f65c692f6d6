import type { Route } from '../http/route.js'
import { createTask } from './create-task.js'
import { showProviderTasks, showTasks } from './list/routes.js'
import { showTask } from './show-task.js'
import { updateTask } from './update-task.js'

export const taskRoutes: readonly Route[] = [
  { method: 'GET', path: '/tasks', access: 'optional', answer: showTasks },
  { method: 'GET', path: '/tasks/:task_uuid', access: 'optional', answer: showTask },
  { method: 'POST', path: '/tasks', access: 'user', answer: createTask },
  { method: 'PUT', path: '/uuid_tasks/:task_uuid', access: 'user', answer: updateTask },
  { method: 'GET', path: '/my_miner/tasks', access: 'user', answer: showProviderTasks },
]
