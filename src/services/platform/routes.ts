import { dealRoutes } from './deals/routes.js'
import { notYet, type Route } from './http/route.js'
import { signInRoutes } from './sign-in/routes.js'
import { taskRoutes } from './tasks/routes.js'

/** Every endpoint of the platform. */
export const routes: readonly Route[] = [
  ...signInRoutes,
  { method: 'POST', path: '/user/api_keys/jwt', access: 'public', answer: notYet('Issuing API keys') },
  { method: 'GET', path: '/miners', access: 'public', answer: notYet('Listing providers') },
  { method: 'GET', path: '/miners/:miner_id', access: 'public', answer: notYet('Showing a provider') },
  { method: 'POST', path: '/miner/info', access: 'user', answer: notYet('Updating a provider') },
  { method: 'GET', path: '/stats/storage', access: 'public', answer: notYet('Price statistics') },
  ...taskRoutes,
  ...dealRoutes,
]
