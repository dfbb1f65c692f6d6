import { billingRoutes } from './billing/routes.js'
import { dealRoutes } from './deals/routes.js'
import type { Route } from './http/route.js'
import { listingRoutes } from './listing/routes.js'
import { mintRoutes } from './mints/routes.js'
import { signInRoutes } from './sign-in/routes.js'
import { systemRoutes } from './system/routes.js'
import { uploadRoutes } from './uploads/routes.js'

/** Every endpoint with an answer in JSON. */
export const routes: readonly Route[] = [
  ...signInRoutes,
  ...systemRoutes,
  ...uploadRoutes,
  ...listingRoutes,
  ...dealRoutes,
  ...mintRoutes,
  ...billingRoutes,
]
