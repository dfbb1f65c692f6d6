import type { PlatformRoute } from '../route.js'
import { deals } from './deals.js'
import { miners } from './miners.js'
import { prices } from './prices.js'
import { signIn } from './sign-in.js'
import { tasks } from './tasks.js'

/** The endpoints of the platform, by their subject. */
export const subjects = {
  'signing in': signIn,
  'storage providers': miners,
  prices,
  tasks,
  deals,
} satisfies Record<string, readonly PlatformRoute[]>
