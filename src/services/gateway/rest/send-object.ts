import type { FileHandle } from 'node:fs/promises'
import { parseRange, type Span } from '../../http/range.js'
import { type HeaderList, reply } from '../../http/reply.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { isOwnPath } from '../http/own-path.js'
import { replyRestError, replyXmlError } from '../http/reply-error.js'
import type { BucketRow } from '../store/buckets.js'
import type { ObjectRow } from '../store/objects.js'
import { breaksHeader, sendBrokenHeader } from './broken-header.js'
import { evaluate, rangeHolds } from './conditionals.js'
import { objectHeaders } from './object-headers.js'
import { sendFile } from './send-file.js'

/** Answers a GET or HEAD of an object, with conditions and range. Throws GatewayError NoSuchKey. */
export async function sendObject(exchange: Exchange, bucket: BucketRow, key: Buffer): Promise<void> {
  const { context, request, target } = exchange
  const { row, body } = await openObject(exchange, bucket, key)
  try {
    const broken = breaksHeader(exchange, key)
    if (broken !== undefined) return sendBrokenHeader(exchange, broken)
    const headers = objectHeaders(context, row, target.parameters)
    const ignored = context.quirks.has('ignore-range')
    const verdict = ignored ? 'go on' : evaluate(request.headers, row)
    if (verdict === 'not modified') return reply(exchange, 304, headers)
    if (verdict === 'failed') throw new GatewayError('PreconditionFailed')
    const range =
      ignored || !rangeHolds(request.headers['if-range'], row) ? undefined : parseRange(request.headers.range, row.size)
    if (range === 'unsatisfiable') return refuseRange(exchange, row.size)
    await sendSpan(exchange, row, body, range, headers)
  } finally {
    if (body !== undefined && !Buffer.isBuffer(body)) await body.close()
  }
}

interface Opened {
  readonly row: ObjectRow
  /** Absent for HEAD. */
  readonly body?: Buffer | FileHandle
}

/** An overwrite may remove the file between the index lookup and the opening of the file: then look again. */
async function openObject({ context, request }: Exchange, bucket: BucketRow, key: Buffer): Promise<Opened> {
  let missing: string | undefined
  for (;;) {
    const row = context.objects.find(bucket.id, key)
    if (row === undefined || context.rules.isHidden(bucket.id, key)) throw new GatewayError('NoSuchKey')
    if (request.method === 'HEAD') return { row }
    if (row.bodyAt === 'network') throw new GatewayError('InvalidObjectState')
    if (row.bodyAt === 'index') {
      const body = context.objects.inlineBody(row.generation)
      if (body === undefined) throw new Error(`The index has lost the body of generation ${row.generation}.`)
      return { row, body }
    }
    try {
      return { row, body: await context.blobs.open(row.generation) }
    } catch (error) {
      const gone = (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (!gone || missing === row.generation) throw error
      missing = row.generation
    }
  }
}

async function sendSpan(
  exchange: Exchange,
  row: ObjectRow,
  body: Opened['body'],
  range: Span | undefined,
  headers: HeaderList,
): Promise<void> {
  const { request, response, context } = exchange
  const { first, last } = range ?? { first: 0, last: row.size - 1 }
  const status = range === undefined ? 200 : 206
  if (range !== undefined) headers.push('Content-Range', `bytes ${first}-${last}/${row.size}`)
  if (Buffer.isBuffer(body)) return reply(exchange, status, headers, body.subarray(first, last + 1))

  // Content-Length must follow Content-Disposition: Node decodes the latter as UTF-8 once it knows the former.
  headers.push('Content-Length', last - first + 1)
  response.writeHead(status, headers)
  if (request.method === 'HEAD' || body === undefined) response.end()
  else await sendFile(body.fd, first, last, response, context.limits.downloadIdleMs)
}

function refuseRange(exchange: Exchange, size: number): void {
  const answer = isOwnPath(exchange.context, exchange.target.path) ? replyRestError : replyXmlError
  answer(exchange, new GatewayError('InvalidRange'), ['Content-Range', `bytes */${size}`])
}
