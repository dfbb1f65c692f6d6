import { randomBytes } from 'node:crypto'
import type { Origin } from '../../api/hooks.js'

/** Returns an origin for actions of the server itself. */
export function ownOrigin(): Origin {
  return { requestId: randomBytes(8).toString('hex').toUpperCase(), accessKeyId: '', remoteAddress: '' }
}
