import type { Route } from '../http/route.js'
import { showUpload } from './show-upload.js'
import { upload } from './upload.js'

export const uploadRoutes: readonly Route[] = [
  { method: 'POST', path: '/api/v1/storage/ipfs/upload', access: 'wallet', answer: upload },
  { method: 'GET', path: '/api/v1/storage/source_file_upload/:id', access: 'wallet', answer: showUpload },
]
