import { createHash } from 'node:crypto'
import { quoted } from '../common/etags.js'
import type { Reply } from './reply.js'

/**
 * Adds ETag and Last-Modified, because clients may read this document as an object. Last-Modified is the current time,
 * as the document is generated now.
 */
export function withValidators(reply: Reply): Reply {
  const etag = quoted(createHash('md5').update(String(reply.body)).digest('hex'))
  return { ...reply, headers: { ...reply.headers, etag, 'last-modified': new Date().toUTCString() } }
}
