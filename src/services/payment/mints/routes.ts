import type { Route } from '../http/route.js'
import { recordMint } from './record-mint.js'

export const mintRoutes: readonly Route[] = [
  { method: 'POST', path: '/api/v1/storage/mint/info', access: 'wallet', answer: recordMint },
]
