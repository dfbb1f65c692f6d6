import { createHash } from 'node:crypto'
import { quoted } from '../../common/etags.js'
import type { LateDocument, Reply, ReplyHeaders } from '../api/request.js'

export function xml(body: string | Buffer, headers: ReplyHeaders = {}, status = 200): Reply {
  return { status, headers: { 'content-type': 'application/xml', ...headers }, body }
}

export function empty(headers: ReplyHeaders = {}, status = 200): Reply {
  return { status, headers }
}

export function noContent(headers: ReplyHeaders = {}): Reply {
  return { status: 204, headers }
}

/** Creates the reply of an operation that is still running. A rejection is handled when the reply is sent. */
export function late(document: Promise<string | LateDocument>): Reply {
  document.catch(() => {})
  return { status: 200, headers: { 'content-type': 'application/xml' }, body: { late: document } }
}

/**
 * Adds ETag and Last-Modified, because clients may read this document as an object. Last-Modified is the current time,
 * as the document is generated now.
 */
export function withValidators(reply: Reply): Reply {
  const etag = quoted(createHash('md5').update(String(reply.body)).digest('hex'))
  return { ...reply, headers: { ...reply.headers, etag, 'last-modified': new Date().toUTCString() } }
}
