import { createHash, type Hash, hash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isAllowed } from '../access/access.js'
import { mustFindBucket } from '../bucket-name.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { type HeaderList, reply } from '../http/reply.js'
import type { Draft } from '../store/object-store.js'
import { type Attributes, readAttributes } from './attributes.js'
import { parsePlace } from './place.js'
import { receive } from './receive.js'

/** PUT upload/<bucket>/<object>: the body is the object. 200 means that it is on the disk; anything else, that what was there still is. */
export async function upload(exchange: Exchange, path: string): Promise<void> {
  const { context, request, identity } = exchange
  const place = parsePlace(context, path)
  const found = context.buckets.find(place.bucket)
  if (!isAllowed(context.policies, identity, 'put', found?.id, place.key.toString())) {
    throw new GatewayError('Authentication')
  }
  const bucket = mustFindBucket(context, place.bucket)
  const length = declaredLength(request, context.limits.maxObjectBytes)
  const attributes = readAttributes(exchange)
  context.rules.mayPut(bucket.id, place.key, length)

  exchange.body.open()
  const etag = etagToKeep(context, attributes)
  const store = length <= context.limits.inlineBytes ? receiveToMemory : receiveToFile
  const body = await store(exchange, length, etag)
  const { contentType, headers } = attributes
  const row = await context.store.put(bucket, { key: place.key, size: length, contentType, headers, ...body })

  const told: HeaderList = context.quirks.has('no-upload-etag')
    ? []
    : [
        ...['ETag', `"${row.etag}"`],
        ...[`${context.names.header}generation`, row.generation],
        ...[`${context.names.header}last-modified`, row.modified],
      ]
  reply(exchange, 200, told)
}

function declaredLength(request: IncomingMessage, most: number): number {
  const text = request.headers['content-length']
  if (text === undefined || request.headers['transfer-encoding'] !== undefined) throw new GatewayError('NoLength')
  const length = Number(text)
  if (!Number.isSafeInteger(length)) throw new GatewayError('NoLength')
  if (length > most) throw new GatewayError('EntityTooLarge')
  return length
}

/** The ETag that is not the MD5 of the body; undefined when it is. */
function etagToKeep({ quirks }: GatewayContext, attributes: Attributes): string | undefined {
  return quirks.has('random-etags') ? `${randomBytes(16).toString('hex')}-1` : attributes.etag
}

type Body = Pick<Draft, 'generation' | 'body' | 'etag'>

async function receiveToMemory({ context, request }: Exchange, length: number, etag?: string): Promise<Body> {
  const chunks: Buffer[] = []
  const sink = { write: (chunk: Buffer) => chunks.push(chunk) > 0, ready: () => Promise.resolve() }
  await receive(request, length, sink, context.limits.uploadIdleMs)
  const body = Buffer.concat(chunks)
  return { generation: context.blobs.newGeneration(), body, etag: etag ?? hash('md5', body) }
}

async function receiveToFile({ context, request }: Exchange, length: number, etag?: string): Promise<Body> {
  const file = await context.blobs.create()
  // MD5 is the dearest part of an upload: left out when nobody needs it.
  const md5 = etag === undefined ? createHash('md5') : undefined
  const sink = {
    write(chunk: Buffer): boolean {
      md5?.update(chunk)
      return file.write(chunk)
    },
    ready: () => file.ready(),
  }
  try {
    await receive(request, length, sink, context.limits.uploadIdleMs)
    await file.finish()
  } catch (error) {
    await file.abandon()
    context.blobs.discard(file.generation)
    throw error
  }
  return { generation: file.generation, etag: etag ?? (md5 as Hash).digest('hex') }
}
