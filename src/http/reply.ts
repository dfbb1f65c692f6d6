import { createHash } from 'node:crypto'
import { quoted } from '../common/etags.js'
import type { Transfer } from '../gateway/gateway.js'

/** Header values are latin-1 strings; undefined values are omitted. */
export type ReplyHeaders = Record<string, string | number | undefined>

/** The reply of an operation. Only `response/send.ts` writes it. */
export interface Reply {
  status: number
  headers: ReplyHeaders
  /** A complete body, an object's bytes from the gateway, or a body that is not ready yet. */
  body?: string | Buffer | RelayBody | LateBody
}

/** An object's bytes. If they end early, the client's connection is cut. */
export interface RelayBody {
  readonly download: Transfer
}

/**
 * A document that may take minutes. If it is not ready after some seconds, a 200 and white space keep the connection
 * alive; the document follows, possibly an `<Error>` inside the 200.
 */
export interface LateBody {
  readonly late: Promise<string | LateDocument>
}

export interface LateDocument {
  readonly document: string
  /** Additional headers, sent only if the document is ready before the response begins. */
  readonly headers?: ReplyHeaders
}

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
