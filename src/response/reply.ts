import type { Transfer } from '../gateway/gateway.js'

/** Header values are latin-1 strings; undefined ones are left out. */
export type ReplyHeaders = Record<string, string | number | undefined>

/** What an operation answers; `response/send.ts` is the only code that writes it. */
export interface Reply {
  status: number
  headers: ReplyHeaders
  /** A complete body, an object's bytes from the gateway, or a body that may take long and keeps the connection alive meanwhile. */
  body?: string | Buffer | RelayBody | LateBody
}

/** An object's bytes: cut the client's connection if they end early. */
export interface RelayBody {
  readonly download: Transfer
}

/** A document that may take minutes: after a while a 200 and white space are sent, then the document, which may be an `<Error>` inside the 200. */
export interface LateBody {
  readonly late: Promise<string | LateDocument>
}

export interface LateDocument {
  readonly document: string
  /** Further ones, told only if nothing has been sent before the document was ready. */
  readonly headers?: ReplyHeaders
}

export function xml(body: string, headers: ReplyHeaders = {}, status = 200): Reply {
  return { status, headers: { 'content-type': 'application/xml', ...headers }, body }
}

export function empty(headers: ReplyHeaders = {}, status = 200): Reply {
  return { status, headers }
}

export function noContent(headers: ReplyHeaders = {}): Reply {
  return { status: 204, headers }
}

/** The answer of something that is under way already. What it fails with reaches whoever sends the reply; nobody else has to look at it before. */
export function late(document: Promise<string | LateDocument>): Reply {
  document.catch(() => {})
  return { status: 200, headers: { 'content-type': 'application/xml' }, body: { late: document } }
}
