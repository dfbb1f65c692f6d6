import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ReportedAlready, type S3Error } from '../../common/errors/s3-error.js'
import { type Logger, redact } from '../../common/log.js'
import type { Context } from '../api/context.js'
import type { Caller } from '../api/identity.js'
import type { Reply, RequestHead } from '../api/request.js'
import type { SentReply } from '../http/send.js'
import type { Selected } from '../plugins/table.js'

/** One line of the access log. */
export interface AccessEntry {
  readonly requestId: string
  readonly operation: string
  /** Absent for core S3. */
  readonly plugin?: string
  readonly method: string
  readonly bucket?: string
  readonly key?: string
  /** Custom query parameters `x-...=value`, by which the client can find the line. They have no other effect. */
  readonly marks?: Readonly<Record<string, string>>
  readonly status: number
  /** Why a policy or ACL allowed or denied the request; absent where none was asked. Never sent. */
  readonly decision?: string
  /** S3 error code. */
  readonly error?: string
  /** Cause of the error; logged, never sent. */
  readonly cause?: unknown
  /** Bytes of the request body that arrived, with framing; bytes of the response body passed to the connection. */
  readonly bytesIn: number
  readonly bytesOut: number
  readonly ms: number
  readonly accessKeyId?: string
  readonly remote: string
  /** True if the response is incomplete because the client disconnected or the connection was cut. */
  readonly cut: boolean
}

/** Takes each request that has ended. */
export type OnDone = (entry: AccessEntry, incoming: IncomingMessage, outgoing: ServerResponse) => void

/** What is known of a request when it has ended. */
export interface RequestFacts {
  id: string
  incoming: IncomingMessage
  outgoing: ServerResponse
  head: RequestHead | undefined
  selected: Selected | undefined
  caller: Caller | undefined
  context: Pick<Context, 'authorizer' | 'form'> | undefined
  reply: Reply
  failure: S3Error | undefined
  started: number
  /** When the reply was known, as `started` by `performance.now()`. */
  answered: number
  sent: SentReply
  /** Bytes of the body that were read; undefined if none was opened. */
  received: number | undefined
  /** Bytes of the body without framing, if the client declared them. */
  length?: number | undefined
  /** Address of the client. */
  remote: string
  /** In place of the one that a line in S3's format has by method and query. */
  operation?: string
}

/** 16 hex digits like those of S3. Uses a UUID, for which Node caches random bytes: randomBytes(8) costs 7 µs. */
export function requestId(): string {
  const uuid = randomUUID()
  return (uuid.slice(0, 8) + uuid.slice(-8)).toUpperCase()
}

export function describeRequest(facts: RequestFacts): AccessEntry {
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
    decision: facts.context?.authorizer.reason,
    error: failure?.code,
    cause: failure?.cause,
    bytesIn: bytesIn(facts),
    bytesOut: facts.sent.bytes,
    ms: Math.round((performance.now() - facts.started) * 10) / 10,
    accessKeyId: facts.caller?.identity.accessKeyId,
    remote: facts.remote,
    cut: !outgoing.writableEnded,
  }
}

/** A body with a declared length that arrived whole may have been read elsewhere, or dropped. */
function bytesIn({ incoming, received = 0 }: RequestFacts): number {
  const declared = incoming.headers['content-length']
  return declared !== undefined && incoming.complete ? Number(declared) : received
}

/** Logs the cause of a server error. */
export function logFailure(log: Logger, entry: AccessEntry): void {
  // 501 answers a client's request for a feature that is not implemented: not a failure of the server.
  if (entry.status < 500 || entry.status === 501) return
  const { requestId, plugin, operation, error: code, cause: err } = entry
  if (err instanceof ReportedAlready) err.report(log, { requestId })
  else log.error({ requestId, plugin, operation, code, err }, 'request failed')
}

/** Bounds per request: marks that are logged, and characters of each name and value. */
const MAX_MARKS = 10
const MAX_MARK_LENGTH = 200

/** A parameter with such a name may hold a secret, for example of a reverse proxy, and is not logged. */
const SECRET_WORD = /token|signature|credential|secret|passw|auth|key/i

/**
 * "You can include custom information to be stored in the access log record":
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html#LogFormatCustom
 */
function marksOf({ query }: RequestHead): AccessEntry['marks'] {
  if (query.entries.length === 0) return undefined
  const isMark = (name: string) => /^x-(?!id$|amz-|cloud-)/i.test(name) && !SECRET_WORD.test(name)
  const marks = query.entries.filter(([name, value]) => value !== '' && isMark(name)).slice(0, MAX_MARKS)
  if (marks.length === 0) return undefined
  const cut = (text: string) => redact(text).slice(0, MAX_MARK_LENGTH)
  return Object.fromEntries(marks.map(([name, value]) => [cut(name), cut(value)]))
}
