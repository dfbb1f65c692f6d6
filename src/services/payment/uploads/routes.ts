import type { Route } from '../http/route.js'
import { upload } from './upload.js'

export const uploadRoutes: readonly Route[] = [
  { method: 'POST', path: '/api/v1/storage/ipfs/upload', access: 'wallet', answer: upload },
]
