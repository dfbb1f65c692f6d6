import { notYet, type Route } from '../http/route.js'

export const taskRoutes: readonly Route[] = [
  { method: 'GET', path: '/tasks', access: 'optional', answer: notYet('Listing tasks') },
  { method: 'GET', path: '/tasks/:task_uuid', access: 'optional', answer: notYet('Showing a task') },
  { method: 'POST', path: '/tasks', access: 'user', answer: notYet('Creating a task') },
  { method: 'GET', path: '/my_miner/tasks', access: 'user', answer: notYet('Listing the tasks of a provider') },
]
