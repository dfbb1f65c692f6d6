import type { FileHandle } from 'node:fs/promises'
import type { HeaderList } from '../../http/errors.js'
import { parseRange } from '../../http/range.js'
import { JSON_TYPE, reply } from '../../http/reply.js'
import { replyContent } from '../../http/send.js'
import { pages } from '../../store/database.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { asGatewayError, decode, type GatewayExchange, sendParts, splitFirst } from '../exchange.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { mustFindVersion } from '../store/version-reads.js'
import { type DealEndpoint, dealEndpoint, recordOf } from './deal-envelope.js'
import { parsePlace } from './download.js'
import { readGeneration } from './version-headers.js'

const PAGE = 500
export const WHOLE_BUCKET = Buffer.alloc(0)

interface History {
  readonly bucket: number
  /** Empty: the bucket as a whole. */
  readonly key: Buffer
  /** Member of `data` that names the subject of the history, and its value. */
  readonly subject: readonly [member: string, name: string]
  /** Noun in the message of an empty history. */
  readonly what: 'object' | 'bucket'
}

/**
 * Restores the object when it has no local copy, then returns the deals that include
 * it. With the header `history-only` it restores nothing; with `deal-cid` it restores the object from no other deal;
 * with `of-generation`, the version of that generation; with `repair`, it replaces a local copy that is lost or
 * damaged.
 */
export const objectRetrieval: DealEndpoint = {
  nothing: (rest) => ({ file_name: readable(splitFirst(rest)[1]), deals: [] }),
  async run(exchange, rest) {
    const { context, account } = exchange
    const place = parsePlace(context, rest)
    const bucket = await mustOwnBucket(context, account, place.bucket)
    const generation = readGeneration(exchange)
    const row = await mustFindVersion(context.db.read, bucket.id, place.key, generation)
    const cold = row.bodyAt === 'network' && !isForHistory(exchange)
    const repairs = row.bodyAt !== 'network' && isForRepair(exchange)
    const asked = [bucket, place.key, dealAsked(exchange), generation] as const
    const { failure, message } = cold
      ? await outcomeOf(context.bringBack.run(...asked).then(() => 'The object has been brought back.'))
      : repairs
        ? await outcomeOf(context.bringBack.repair(...asked).then((replaced) => (replaced ? REPAIRED : WHOLE)))
        : {}
    const subject = ['file_name', place.key.toString()] as const
    const history: History = { bucket: bucket.id, key: place.key, subject, what: 'object' }
    await sendHistory(exchange, history, failure === undefined ? 'success' : 'fail', failure ?? message)
    return undefined
  },
}

/** GET retrieve/<bucket>/<object> */
export const retrieveObject = dealEndpoint(objectRetrieval)

const REPAIRED = 'The damaged copy of the object has been replaced.'
const WHOLE = 'The copy of the object is whole.'

/** Returns the deals that were made of the whole bucket. */
export const bucketRetrieval: DealEndpoint = {
  nothing: (rest) => ({ bucket_name: readable(splitFirst(rest)[1]), deals: [] }),
  async run(exchange, rest) {
    const [word, raw] = splitFirst(rest)
    if (word !== 'retrieve') throw new GatewayError('NotFound')
    const name = decode(raw).toString()
    const { id } = await mustOwnBucket(exchange.context, exchange.account, name)
    const history: History = { bucket: id, key: WHOLE_BUCKET, subject: ['bucket_name', name], what: 'bucket' }
    await sendHistory(exchange, history, 'success')
    return undefined
  },
}

/** GET bucket/retrieve/<bucket> */
export const retrieveBucket = dealEndpoint(bucketRetrieval)

function dealAsked({ context, request }: GatewayExchange): string | undefined {
  return request.headers[`${context.names.header}deal-cid`]?.toString()
}

function isForRepair({ context, request }: GatewayExchange): boolean {
  return request.headers[`${context.names.header}repair`] === 'true'
}

function isForHistory({ context, request }: GatewayExchange): boolean {
  return request.headers[`${context.names.header}history-only`] === 'true'
}

interface Outcome {
  /** Why no deal delivered; absent when one did. */
  readonly failure?: string
  readonly message?: string
}

async function outcomeOf(broughtBack: Promise<string>): Promise<Outcome> {
  try {
    return { message: await broughtBack }
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'RetrievalFailed') return { failure: error.message }
    throw error
  }
}

async function sendHistory(
  exchange: GatewayExchange,
  history: History,
  status: 'success' | 'fail',
  message?: string,
): Promise<void> {
  const { context } = exchange
  const { bucket, key, what } = history
  const never = (await context.db.read.deals.history(bucket, key, 0, 1)).length === 0
  const reported = never ? `The specified ${what} does not have deals` : `The deals made of the ${what}.`
  await sendParts(exchange, [...JSON_TYPE], write(context, history, { status, message: message ?? reported }))
}

/** Streams page by page, so that memory does not grow with the length of the history. */
async function* write({ db }: GatewayContext, history: History, end: object): AsyncGenerator<string> {
  const [member, name] = history.subject
  yield `{"data":{"${member}":${JSON.stringify(name)},"deals":[`
  let comma = ''
  const { deals } = db.read
  for await (const page of pages('id', 0, (after) => deals.history(history.bucket, history.key, after, PAGE))) {
    const envelopes = page.map((deal) => ({ data: recordOf(deal), status: 'success', message: '' }))
    yield comma + envelopes.map((envelope) => JSON.stringify(envelope)).join(',')
    comma = ','
  }
  yield `]},${JSON.stringify(end).slice(1)}`
}

/** A part of a path, decoded if possible. */
function readable(raw: string): string {
  try {
    return decode(raw).toString()
  } catch {
    return ''
  }
}

/**
 * GET|HEAD car/<secret>: the CAR of an offline deal, for the provider that stores it. Anyone who knows the secret may
 * fetch it while the deal needs it. Throws GatewayError NotFound else.
 */
export async function sendCar(exchange: GatewayExchange, secret: string): Promise<void> {
  const { context } = exchange
  const given = await context.offlineDealService?.give(secret)
  if (given === undefined) throw new GatewayError('NotFound')
  const { task, car } = given
  const file = await context.carFiles.open(task.uuid, car.deal).catch((error) => {
    throw error.code === 'ENOENT' ? new GatewayError('NotFound', {}, error) : error
  })
  try {
    await send(exchange, file, car.carSize, `"${car.md5}"`)
  } finally {
    await file.close()
  }
}

async function send(exchange: GatewayExchange, file: FileHandle, size: number, etag: string): Promise<void> {
  const { request, context } = exchange
  const ifRange = request.headers['if-range']
  const range = ifRange === undefined || ifRange === etag ? parseRange(request.headers.range, size) : undefined
  const type: HeaderList = ['Content-Type', 'application/vnd.ipld.car', 'X-Content-Type-Options', 'nosniff']
  const headers: HeaderList = [...type, 'Accept-Ranges', 'bytes', 'ETag', etag]
  if (range === 'unsatisfiable') return reply(exchange, 416, [...headers, 'Content-Range', `bytes */${size}`])
  const failed = (error: unknown) => asGatewayError(error, exchange)
  await replyContent(exchange, file, size, range, headers, context.limits.downloadIdleMs, failed)
}
