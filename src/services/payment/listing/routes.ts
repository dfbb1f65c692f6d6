import type { Route } from '../http/route.js'
import { showUploads } from './show-uploads.js'

export const listingRoutes: readonly Route[] = [
  { method: 'GET', path: '/api/v1/storage/tasks/deals', access: 'wallet', answer: showUploads },
]
