import type { Route } from '../http/route.js'
import { issueKeyOrJwt } from './issue.js'

/** Who may call depends on the body, so the answer decides it. */
export const apiKeyRoutes: readonly Route[] = [
  { method: 'POST', path: '/user/api_keys/jwt', access: 'public', answer: issueKeyOrJwt },
]
