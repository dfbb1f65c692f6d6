import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from './auth/caller.js'
import type { S3Error } from './errors/s3-error.js'
import { redact } from './log.js'
import type { Selected } from './registry/table.js'
import type { RequestHead } from './request/s3-request.js'
import type { Reply } from './response/reply.js'
import type { Sent } from './response/send.js'

/** One line of the access log. */
export interface AccessEntry {
  readonly requestId: string
  readonly operation: string
  /** Absent for core S3. */
  readonly plugin?: string
  readonly method: string
  readonly bucket?: string
  readonly key?: string
  /** What the client wants to find the line by: query parameters `x-...=value`, which mean nothing else. */
  readonly marks?: Readonly<Record<string, string>>
  readonly status: number
  /** S3 error code. */
  readonly error?: string
  /** What led to an error; logged, never sent. */
  readonly cause?: unknown
  /** Bytes of the request body as declared, and of the response body as handed over. */
  readonly bytesIn: number
  readonly bytesOut: number
  readonly ms: number
  readonly accessKeyId?: string
  readonly remote: string
  /** True when the response did not reach its end: the client left or the connection was cut. */
  readonly cut: boolean
}

export interface Facts {
  id: string
  incoming: IncomingMessage
  outgoing: ServerResponse
  head: RequestHead | undefined
  selected: Selected | undefined
  caller: Caller | undefined
  reply: Reply
  failure: S3Error | undefined
  started: number
  sent: Sent
}

export function describeRequest(facts: Facts): AccessEntry {
  const { head, selected, failure, outgoing } = facts
  return {
    requestId: facts.id,
    operation: selected?.operation.name ?? 'Unknown',
    plugin: selected?.plugin === 's3' ? undefined : selected?.plugin,
    method: facts.incoming.method ?? '',
    bucket: head?.bucket,
    key: head?.key === undefined ? undefined : redact(head.key),
    marks: head && marksOf(head),
    status: outgoing.headersSent ? outgoing.statusCode : facts.reply.status,
    error: failure?.code,
    cause: failure?.cause,
    bytesIn: Number(facts.incoming.headers['content-length'] ?? 0),
    bytesOut: facts.sent.bytes,
    ms: Math.round((performance.now() - facts.started) * 10) / 10,
    accessKeyId: facts.caller?.identity.accessKeyId,
    remote: facts.incoming.socket.remoteAddress ?? '',
    cut: !outgoing.writableEnded,
  }
}

/** Of a request, so many are logged, and so many characters of each. */
const MAX_MARKS = 10
const MAX_MARK_LENGTH = 200
/** In a name: what it has is no mark but somebody's secret, be it for whatever stands before this server. */
const SECRET_WORD = /token|signature|credential|secret|passw|auth|key/i

/** "You can include custom information to be stored in the access log record": https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html#LogFormatCustom */
function marksOf({ query }: RequestHead): AccessEntry['marks'] {
  const isMark = (name: string) => /^x-(?!id$|amz-|cloud-)/i.test(name) && !SECRET_WORD.test(name)
  const marks = query.entries.filter(([name, value]) => value !== '' && isMark(name)).slice(0, MAX_MARKS)
  if (marks.length === 0) return undefined
  const cut = (text: string) => redact(text).slice(0, MAX_MARK_LENGTH)
  return Object.fromEntries(marks.map(([name, value]) => [cut(name), cut(value)]))
}
