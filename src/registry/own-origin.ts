import { randomBytes } from 'node:crypto'
import type { Origin } from './hooks.js'

/** Of what the server does by itself. */
export function ownOrigin(): Origin {
  return { requestId: randomBytes(8).toString('hex').toUpperCase(), accessKeyId: '', remoteAddress: '' }
}
