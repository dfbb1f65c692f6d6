import { apiKeyRoutes } from './api-keys/routes.js'
import { dealRoutes } from './deals/routes.js'
import type { Route } from './http/route.js'
import { minerRoutes } from './miners/routes.js'
import { signInRoutes } from './sign-in/routes.js'
import { statisticsRoutes } from './statistics/routes.js'
import { taskRoutes } from './tasks/routes.js'

/** Every endpoint of the platform. */
export const routes: readonly Route[] = [
  ...signInRoutes,
  ...apiKeyRoutes,
  ...minerRoutes,
  ...statisticsRoutes,
  ...taskRoutes,
  ...dealRoutes,
]
