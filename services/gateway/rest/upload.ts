import { createHash, type Hash, hash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { receive, type ServiceRequest } from '../../http/body.js'
import { reply } from '../../http/reply.js'
import { callerOf, isAllowed, refusalOf } from '../access.js'
import { GatewayError } from '../errors.js'
import { type GatewayExchange, hasGone, readWriteOrder } from '../exchange.js'
import { mustBeBucket } from '../store/key-rules.js'
import { newGeneration } from '../store/object-row.js'
import type { Draft, StoredDraft } from '../store/store-draft.js'
import { parsePlace } from './download.js'
import { readAttributes, readRecord } from './object-headers.js'
import { readLock, versionHeaders } from './version-headers.js'

/**
 * PUT upload/<bucket>/<object>: the body is the object. 200 means that the object is on the disk; any other status,
 * that the previous object is unchanged. Only when the database was lost during the commit, it may be either.
 */
export async function upload(exchange: GatewayExchange, path: string): Promise<void> {
  const { context, request, identity } = exchange
  const place = parsePlace(context, path)
  const { buckets, policies } = context.db.read
  const found = await buckets.find(place.bucket)
  if (!(await isAllowed(policies, identity, 'put', found, place.key.toString()))) {
    throw refusalOf(identity)
  }
  const bucket = mustBeBucket(context, place.bucket, found)
  const length = declaredLength(request, context.limits.maxObjectBytes)
  const attributes = readAttributes(exchange)
  const record = readRecord(exchange, bucket)
  const lock = readLock(exchange, bucket)
  await context.rules.mayPut(context.db.read, bucket, place.key, length)
  const asked = readWriteOrder(context, request)
  const writeId = asked && ('lateFor' in asked ? asked.lateFor : asked.writeId)
  await context.store.mustHaveRoom(bucket, place.key, length, writeId)
  context.db.requireRoom()

  const late =
    asked && 'lateFor' in asked
      ? context.lateOrders.open(callerOf(identity), asked.lateFor, bucket.id, place.key)
      : undefined
  try {
    exchange.body.open()
    const store = length <= context.limits.inlineBytes ? receiveToMemory : receiveToStore
    const body = await store(exchange, length, attributes.etag)
    const { contentType, headers, checksum } = attributes
    const order: Draft['order'] = (tables) => (asked && 'lateFor' in asked ? late?.take(tables) : asked)
    // A client that times out disconnects and takes the upload for failed. The gateway sees that at the earliest one
    // turn of the event loop after the last bytes.
    const ordered = context.features.has('write-fences')
    if (ordered) await turn()
    const abandoned = () => ordered && hasGone(request)
    const draft = {
      key: place.key,
      size: length,
      contentType,
      headers,
      checksum,
      record,
      lock,
      ...body,
      order,
      abandoned,
    }
    answer(exchange, await context.store.put(bucket, draft))
  } finally {
    late?.close()
  }
}

function answer(exchange: GatewayExchange, { row, isVersioned, lock }: StoredDraft): void {
  const { context } = exchange
  reply(exchange, 200, [
    ...['ETag', `"${row.etag}"`],
    ...[`${context.names.header}generation`, row.generation],
    ...[`${context.names.header}last-modified`, row.modified],
    ...(row.checksum === null ? [] : [`${context.names.header}checksum`, row.checksum]),
    ...(isVersioned ? versionHeaders(context, row, lock) : []),
  ])
}

function declaredLength(request: ServiceRequest, most: number): number {
  const text = request.headers['content-length']
  if (text === undefined || request.headers['transfer-encoding'] !== undefined) throw new GatewayError('NoLength')
  const length = Number(text)
  if (!Number.isSafeInteger(length)) throw new GatewayError('NoLength')
  if (length > most) throw new GatewayError('EntityTooLarge')
  return length
}

type Body = Pick<Draft, 'generation' | 'body' | 'etag'>

async function receiveToMemory({ context, request }: GatewayExchange, length: number, etag?: string): Promise<Body> {
  const chunks: Buffer[] = []
  const sink = { write: (chunk: Buffer) => chunks.push(chunk) > 0, ready: () => Promise.resolve() }
  await receive(request, length, sink, context.limits.uploadIdleMs)
  const body = Buffer.concat(chunks)
  return { generation: newGeneration(context.clock), body, etag: etag ?? hash('md5', body) }
}

async function receiveToStore({ context, request }: GatewayExchange, length: number, etag?: string): Promise<Body> {
  const generation = newGeneration(context.clock)
  const body = await context.bodies.create(generation, length)
  // MD5 is the most expensive part of an upload; it is skipped when it is not needed.
  const md5 = etag === undefined ? createHash('md5') : undefined
  const sink = {
    write(chunk: Buffer, used?: () => void): boolean {
      md5?.update(chunk)
      return body.write(chunk, used)
    },
    ready: () => body.ready(),
  }
  try {
    await receive(request, length, sink, context.limits.uploadIdleMs)
    return { generation, body: await body.finish(), etag: etag ?? (md5 as Hash).digest('hex') }
  } catch (error) {
    await body.abandon()
    throw error
  }
}
