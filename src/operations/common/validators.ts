import { createHash } from 'node:crypto'
import type { Reply } from '../../response/reply.js'
import { quoted } from './etags.js'

/** With what clients look for in an object, as which they may read this document. Made at this moment, it has changed at this moment. */
export function withValidators(reply: Reply): Reply {
  const etag = quoted(createHash('md5').update(String(reply.body)).digest('hex'))
  return { ...reply, headers: { ...reply.headers, etag, 'last-modified': new Date().toUTCString() } }
}
