import type { IncomingHttpHeaders } from 'node:http'
import type { MaybePromise } from '../../../common/maybe-promise.js'
import { wholeSeconds } from '../../clock.js'
import type { HeaderList } from '../../http/errors.js'
import { parseRange } from '../../http/range.js'
import { reply } from '../../http/reply.js'
import { replyContent } from '../../http/send.js'
import { BodyError, type OpenBody } from '../../store/bodies.js'
import { type Identity, isAllowed, owns, refusalOf } from '../access.js'
import type { Account } from '../accounts/accounts.js'
import type { ReadContext } from '../context.js'
import { GatewayError } from '../errors.js'
import {
  asGatewayError,
  decode,
  type GatewayExchange,
  isOwnPath,
  type ReadExchange,
  replyRestError,
  replyXmlError,
  splitFirst,
} from '../exchange.js'
import { isShareLink, verifyShareLink } from '../share-link.js'
import type { BucketRow } from '../store/buckets.js'
import { mustBeBucket } from '../store/key-rules.js'
import { type ObjectRow, storedBodyOf } from '../store/object-row.js'
import { openVersion, type VersionRef } from '../store/version-reads.js'
import { objectHeaders, recordHeaders, wantsRecord } from './object-headers.js'
import { readVersionRef, versionHeaders } from './version-headers.js'

/** GET|HEAD download/<bucket>/<object>?token=: the body of the object. */
export async function download(exchange: ReadExchange, path: string): Promise<void> {
  const { context, target } = exchange
  const token = target.parameters.get('token')
  const named = identify(exchange, token)
  const identity = named instanceof Promise ? await named : named
  const place = parsePlace(context, path)
  const { buckets, policies } = context.db.read
  const bucketRow = buckets.find(place.bucket)
  const found = bucketRow instanceof Promise ? await bucketRow : bucketRow
  const allowed = isAllowed(policies, identity, 'get', found, place.key.toString())
  if (!(allowed instanceof Promise ? await allowed : allowed)) throw refusalOf(identity)
  const bucket = mustBeBucket(context, place.bucket, found)
  const byOwner = owns(identity, bucket)
  const ref = readVersionRef(exchange)
  // Rules for others are about current objects.
  if (ref !== undefined && !byOwner) throw refusalOf(identity)
  await sendObject(exchange, { bucket, key: place.key, ref }, byOwner)
}

/** Uses the token, or the Authorization header when there is none. */
function identify({ context, identity }: ReadExchange, token: string | null): MaybePromise<Identity> {
  if (token === null || token === '') return identity
  const account = context.tokens.accountOf(token)
  return account instanceof Promise ? account.then(mustBeAccount) : mustBeAccount(account)
}

function mustBeAccount(account: Account | undefined): Account {
  if (account === undefined) throw new GatewayError('Authentication')
  return account
}

/**
 * Answers a GET or HEAD of an object, with conditions and range. Throws GatewayError NoSuchKey.
 * @param byOwner the caller owns the bucket, and may see the record of the object
 */
async function sendObject(exchange: ReadExchange, place: ObjectTarget, byOwner: boolean): Promise<void> {
  const { context, request, target } = exchange
  const { bucket } = place
  const { row, body, record } = await openObject(exchange, place, byOwner)
  try {
    const headers = objectHeaders(context, row, target.parameters)
    headers.push(...record)
    if (bucket.versioning !== null) {
      const isLockable = byOwner && bucket.lockRule !== null
      const lock = isLockable ? await context.db.read.locks.find(row.generation) : undefined
      headers.push(...versionHeaders(context, row, lock))
    }
    const verdict = evaluate(request.headers, row)
    if (verdict === 'not modified') return reply(exchange, 304, headers)
    if (verdict === 'failed') throw new GatewayError('PreconditionFailed')
    const holds = rangeHolds(request.headers['if-range'], row)
    const range = holds ? parseRange(request.headers.range, row.size) : undefined
    if (range === 'unsatisfiable') return refuseRange(exchange, row.size)
    if (Buffer.isBuffer(body)) {
      const { first, last } = range ?? { first: 0, last: row.size - 1 }
      const of = range === undefined ? [] : ['Content-Range', `bytes ${first}-${last}/${row.size}`]
      reply(exchange, range === undefined ? 200 : 206, [...headers, ...of], body.subarray(first, last + 1))
    } else {
      const failed = (error: unknown) => asGatewayError(error, exchange)
      await replyContent(exchange, body, row.size, range, headers, context.limits.downloadIdleMs, failed)
    }
  } finally {
    if (body !== undefined && !Buffer.isBuffer(body)) await body.close()
  }
}

interface ObjectTarget {
  readonly bucket: BucketRow
  readonly key: Buffer
  /** Absent: the current object. */
  readonly ref?: VersionRef | undefined
}

interface Opened {
  readonly row: ObjectRow
  /** What the owner of the bucket may see of the record. */
  readonly record: HeaderList
  /** Absent for HEAD. */
  readonly body?: Buffer | OpenBody
}

/** An overwrite may remove the body between the index lookup and its opening: then look again. */
async function openObject(
  exchange: ReadExchange,
  { bucket, key, ref }: ObjectTarget,
  byOwner: boolean,
): Promise<Opened> {
  const { context, request } = exchange
  const { read } = context.db
  const wanted = { body: request.method !== 'HEAD', record: byOwner && wantsRecord(exchange) }
  let missing: string | undefined
  for (;;) {
    const opened = await openVersion(read, bucket, key, ref, wanted)
    const hidden = ref === undefined && context.rules.isHidden(read, bucket.id, key)
    if (hidden instanceof Promise ? await hidden : hidden) throw new GatewayError('NoSuchKey')
    const { row } = opened
    const record = wanted.record ? recordHeaders(exchange, opened) : []
    if (request.method === 'HEAD') return { row, record }
    if (row.bodyAt === 'network') throw new GatewayError('InvalidObjectState')
    if (row.bodyAt === 'index') {
      if (opened.body === undefined) throw new BodyError('lost', `The body ${row.generation} in the index is lost.`)
      return { row, record, body: opened.body }
    }
    const body = await context.bodies.open(storedBodyOf(row))
    if (body !== undefined) return { row, record, body }
    if (missing === row.bodyName) throw new BodyError('lost', `The body ${row.bodyName} is lost.`)
    missing = row.bodyName
  }
}

function refuseRange(exchange: ReadExchange, size: number): void {
  const answer = isOwnPath(exchange.context, exchange.target.path) ? replyRestError : replyXmlError
  answer(exchange, new GatewayError('InvalidRange'), ['Content-Range', `bytes */${size}`])
}

type Facts = Pick<ObjectRow, 'etag' | 'modified'>

/** Evaluates the conditional headers of a GET or HEAD, in the order of RFC 9110, 13.2.2. */
function evaluate(headers: IncomingHttpHeaders, object: Facts): 'go on' | 'not modified' | 'failed' {
  const ifMatch = headers['if-match']
  const unmodifiedSince = parseDate(headers['if-unmodified-since'])
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, object.etag)) return 'failed'
  } else if (unmodifiedSince !== undefined && wholeSeconds(object.modified) > unmodifiedSince) {
    return 'failed'
  }
  const ifNoneMatch = headers['if-none-match']
  const modifiedSince = parseDate(headers['if-modified-since'])
  if (ifNoneMatch !== undefined) {
    if (matches(ifNoneMatch, object.etag)) return 'not modified'
  } else if (modifiedSince !== undefined && wholeSeconds(object.modified) <= modifiedSince) {
    return 'not modified'
  }
  return 'go on'
}

/** False when If-Range names another state of the object, so that Range must be ignored. */
function rangeHolds(ifRange: string | string[] | undefined, object: Facts): boolean {
  if (typeof ifRange !== 'string') return true
  if (ifRange.startsWith('"')) return ifRange === `"${object.etag}"`
  return parseDate(ifRange) === wholeSeconds(object.modified)
}

/**
 * Our ETags are strong, but a client may have received a weak one from a cache in between. Unquoted ones match as well,
 * as in S3.
 */
function matches(list: string, etag: string): boolean {
  return list.split(',').some((item) => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag.replace(/^W\//, '') === `"${etag}"`
  })
}

/** Seconds since 1970; undefined when the text is not a date, and the header then has no effect. */
function parseDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000)
}

/**
 * GET|HEAD /<bucket>/<object>: for clients with a share link, or with read access by policy. Errors are those of S3.
 */
export async function sharedObject(exchange: GatewayExchange): Promise<void> {
  const { context, request, target, identity } = exchange
  try {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw new GatewayError('AccessDenied')
    const caller = isShareLink(context, target) ? await verifyShareLink(exchange) : identity
    const place = parsePlace(context, target.path.slice(1))
    const { buckets, policies } = context.db.read
    const found = await buckets.find(place.bucket)
    if (!(await isAllowed(policies, caller, 'get', found, place.key.toString()))) throw new GatewayError('AccessDenied')
    await sendObject(exchange, { bucket: mustBeBucket(context, place.bucket, found), key: place.key }, false)
  } catch (error) {
    replyXmlError(exchange, error)
  }
}

interface KeyPath {
  readonly bucket: string
  readonly key: Buffer
}

/**
 * Parses `<bucket>/<key>`, percent-encoded. Decodes the key once and does not change it otherwise. Throws GatewayError
 * unless the key is UTF-8 of 1 to 1024 bytes.
 */
export function parsePlace({ limits }: ReadContext, path: string): KeyPath {
  const [bucket, rest] = splitFirst(path)
  const key = decode(rest)
  if (key.length === 0) throw new GatewayError('InvalidArguments')
  if (key.length > limits.maxKeyBytes) throw new GatewayError('KeyTooLong')
  return { bucket: decode(bucket).toString(), key }
}
