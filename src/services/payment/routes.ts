import type { Route } from './http/route.js'
import { signInRoutes } from './sign-in/routes.js'
import { systemRoutes } from './system/routes.js'
import { uploadRoutes } from './uploads/routes.js'

/** Every endpoint with an answer in JSON. */
export const routes: readonly Route[] = [...signInRoutes, ...systemRoutes, ...uploadRoutes]
