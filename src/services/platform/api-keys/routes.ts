import type { Route } from '../http/route.js'
import { issueKeyOrJwt } from './issue.js'
import { listKeys, revokeKey } from './revoke.js'

export const apiKeyRoutes: readonly Route[] = [
  // Who may call depends on the body, so the answer decides it.
  { method: 'POST', path: '/user/api_keys/jwt', access: 'public', answer: issueKeyOrJwt },
  { method: 'GET', path: '/user/api_keys', access: 'signed-in', answer: listKeys },
  { method: 'POST', path: '/user/api_keys/revoke', access: 'signed-in', answer: revokeKey },
]
