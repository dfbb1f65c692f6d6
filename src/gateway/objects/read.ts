import { S3Error, unless } from '../../../common/errors/s3-error.js'
import type { ByteRange, Download, GatewayFeatures, GatewayObject } from '../../api/gateway.js'
import type { VersionRef } from '../../api/versions.js'
import { encodeSegment } from '../brand.js'
import { httpFailure, readAnswer } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { isTokenRefusal, nonsense, noSuchKey, type Subject, TokenRefused, translate, unavailable } from '../errors.js'
import { isPartOfRoot, whyUnfit } from '../keys.js'
import { toObject } from '../listing/listing-scanner.js'
import { lookUp, requireBucket } from '../listing/look-up.js'
import { askForRecord, endsInControl, factsFromHeaders, headerFacts, PLAIN_DISPOSITION } from '../object-facts.js'
import type { RestResponse } from '../transport/response.js'
import { DownloadBody, invalidRange, parseContentRange, rangeHeader, resolveRange, type Span } from './download-body.js'
import { askForVersion, isOf, noSuchVersion, withMarker } from './versions.js'

/** Attempts before a download fails because the object keeps changing between listing and download. */
const MAX_ATTEMPTS = 3

/**
 * See Gateway.download. Needs one call on gateways that describe the object with its bytes (`objectHead`); on others,
 * it lists the object first and checks that the download agrees with the listing.
 */
export async function download(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
  ref?: VersionRef,
): Promise<Download> {
  if (ref && !features.versions) {
    const current = await download(client, features, bucket, key, range)
    if (isOf(current.object, ref)) return current
    current.discard()
    throw noSuchVersion(key, ref)
  }
  if (!features.anyKey && whyUnfit(key) !== undefined) throw noSuchKey(bucket, key)
  if (features.objectHead) {
    const direct = await downloadDirectly(client, features, bucket, key, range, ref)
    if (direct) return direct
  }
  // A caller who may not read the object must not learn anything about it, not even whether it exists.
  if (client.account && !(await isReadable(client, bucket, key))) throw noSuchKey(bucket, key)
  let difference = ''
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const asked = performance.now()
    const listed = await stat(lookupClient(client), features, bucket, key)
    if (!listed) throw noSuchKey(bucket, key)
    const span = resolveRange(range, listed.size)
    const found = await downloadListed(client, features, bucket, listed, asked, span)
    if (typeof found !== 'string') return found
    difference = found
  }
  const cause = new Error(`the listing and the download differ: ${difference}`)
  throw unavailable(cause, 'The object is being changed, or the object gateway sends something else. Try again.')
}

/**
 * Downloads with one call, which also describes the object. Resolves undefined when the answer does not describe it.
 * Throws S3Error.
 */
async function downloadDirectly(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
  ref: VersionRef | undefined,
): Promise<Download | undefined> {
  // A Range header cannot express "the last 0 bytes".
  const asked = askForVersion(client.names, ref, askForRecord(client.names, features))
  if (range && !('suffix' in range && range.suffix === 0)) asked.range = rangeHeader(range)
  const response = await request(client, 'GET', { bucket, key }, asked)
  try {
    return await readDirect(client, features, key, range, response)
  } catch (error) {
    response.destroy()
    throw error
  }
}

async function readDirect(
  client: GatewayClient,
  features: GatewayFeatures,
  key: string,
  range: ByteRange | undefined,
  response: RestResponse,
): Promise<Download | undefined> {
  const contentRange = response.headers['content-range']
  if (response.status === 416) {
    response.drain()
    const size = /^bytes \*\/(\d+)$/.exec(contentRange ?? '')?.[1]
    if (size === undefined) throw nonsense('refused a range without telling the size')
    throw invalidRange(Number(size))
  }
  const sent = response.status === 206 ? parseContentRange(contentRange) : undefined
  const length = Number(response.headers['content-length'] ?? Number.NaN)
  if (response.status === 206 && !sent) throw nonsense('answered a range without saying which')
  const size = sent?.size ?? length
  const object = factsFromHeaders(client.names, features, response.headers, key, size)
  if (!object || !Number.isSafeInteger(size)) {
    response.destroy()
    return undefined
  }
  const span = resolveRange(range, size)
  const from = sent?.first ?? 0
  const to = sent?.last ?? size - 1
  if (length !== to - from + 1 || span.first < from || span.last > to)
    throw nonsense('answered with another range than was asked for')
  return new DownloadBody(response, {
    object,
    span,
    skip: span.first - from,
    surplus: to - span.last,
    idleMs: client.rest.idleMs,
  })
}

/** Last-Modified has whole seconds: an object younger than this may have been overwritten within the same second. */
const AMBIGUOUS_MS = 2000

/**
 * Downloads an object that the listing has described. When the download does not agree with the listing, resolves to
 * the difference, in words. Throws S3Error.
 * @param asked `performance.now()` when the listing was requested
 */
async function downloadListed(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  listed: GatewayObject,
  asked: number,
  span: Span,
): Promise<Download | string> {
  const { key } = listed
  // Downloading the key of an empty folder object may return something that is not an object.
  if (key.endsWith('/') && listed.size === 0 && !features.anyKey) {
    return new DownloadBody(undefined, { object: { ...listed, headers: {}, metadata: {} }, span, ...whole(client) })
  }
  const response = await open(client, bucket, key)
  if (!response) return 'the object is gone'
  const wrong = disagreement(response, listed)
  if (wrong !== undefined) {
    response.destroy()
    return `the download has another ${wrong}`
  }
  const sinceAsked = performance.now() - asked
  if (
    isAmbiguous(response, sinceAsked) &&
    (await stat(lookupClient(client), features, bucket, key))?.revision !== listed.revision
  ) {
    response.destroy()
    return 'the object was overwritten within the same second'
  }
  const facts = headerFacts(client.names, response.headers, key, true)
  const { contentType, headers, metadata, writeId, encrypted } = facts
  const marks = { ...(writeId !== undefined && { writeId }), ...(encrypted && { encrypted }) }
  const object = { ...listed, contentType, headers, metadata, ...marks }
  return new DownloadBody(response, {
    ...whole(client),
    object,
    span,
    skip: span.first,
    surplus: listed.size - 1 - span.last,
  })
}

function whole(client: GatewayClient): { skip: number; surplus: number; idleMs: number } {
  return { skip: 0, surplus: 0, idleMs: client.rest.idleMs }
}

/** Resolves undefined when the object was removed after it was listed. */
function open(client: GatewayClient, bucket: string, key: string): Promise<RestResponse | undefined> {
  return unless('NoSuchKey', requestWhole(client, bucket, key), undefined)
}

/** Names the first difference between a full download and the listed object; undefined when they agree. */
function disagreement(response: RestResponse, listed: GatewayObject): string | undefined {
  const { headers, status } = response
  if (status !== 200) return `status (${status})`
  if (/^text\/html\b/i.test(headers['content-type'] ?? '') && !/^text\/html\b/i.test(listed.contentType))
    return 'type (an HTML page)'
  // A chunked answer has no length; `Delivery` counts the bytes anyway.
  const length = headers['content-length']
  if (length !== undefined && Number(length) !== listed.size) return 'size'
  const time = Date.parse(headers['last-modified'] ?? '')
  if (time !== Math.floor(Date.parse(listed.lastModified) / 1000) * 1000) return 'time'
  return undefined
}

/**
 * True when the object was so young when it was listed, perhaps long before the download, that an overwrite since then
 * may not change Last-Modified. Both times come from the gateway's clock.
 */
function isAmbiguous(response: RestResponse, sinceAskedMs: number): boolean {
  const answered = Date.parse(response.headers.date ?? '')
  const modified = Date.parse(response.headers['last-modified'] ?? '')
  return !(answered - sinceAskedMs - modified >= AMBIGUOUS_MS)
}

/**
 * The id of the write that created the listed object. Null when the object is gone or another client wrote it.
 * Undefined when the download does not agree with the listing: the object was overwritten since, or something other
 * than the gateway answered.
 */
export async function writeIdOf(
  client: GatewayClient,
  bucket: string,
  listed: GatewayObject,
): Promise<string | null | undefined> {
  const response = await open(client, bucket, listed.key)
  if (!response) return null
  if (disagreement(response, listed) !== undefined) {
    response.destroy()
    return undefined
  }
  const { writeId } = headerFacts(client.names, response.headers, listed.key, true)
  response.drain()
  return writeId ?? null
}

/** See Gateway.stat. */
export async function stat(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  ref?: VersionRef,
  onMarker?: (error: S3Error) => void,
): Promise<GatewayObject | undefined> {
  if (ref && !features.versions) {
    const current = await stat(client, features, bucket, key)
    if (current && isOf(current, ref)) return current
    if ('id' in ref && ref.id !== 'null') throw noSuchVersion(key, ref)
    return undefined
  }
  if (!features.anyKey && whyUnfit(key) !== undefined) return undefined
  if (features.objectHead) {
    const answer = await head(client, features, bucket, key, ref, onMarker)
    if (answer !== 'unknown') return answer
    // A listing has the current versions alone.
    if (ref) throw nonsense('does not describe a version of an object')
  }
  if (client.account && !(await isReadable(client, bucket, key))) return undefined
  const entry = await lookUp(lookupClient(client), features, bucket, key)
  if (entry && !entry.isPrefix) return toObject(features, entry)
  if (features.anyKey || !isPartOfRoot(key) || !(await isDownloaded(lookupClient(client), bucket, key)))
    return undefined
  const found = await lookUp(lookupClient(client), features, bucket, key, true)
  return found && !found.isPrefix ? toObject(features, found) : undefined
}

/** True when a download finds an object that the listing of a part of the root did not show. */
function isDownloaded(client: GatewayClient, bucket: string, key: string): Promise<boolean> {
  return unless('AccessDenied', isReadable(client, bucket, key), false)
}

/**
 * Describes an object by a HEAD request. Resolves `unknown` when the answer does not describe an object although the
 * gateway announced that it would.
 */
async function head(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  ref: VersionRef | undefined,
  onMarker: ((error: S3Error) => void) | undefined,
): Promise<GatewayObject | undefined | 'unknown'> {
  try {
    const asked = askForVersion(client.names, ref, askForRecord(client.names, features))
    const answer = await request(client, 'HEAD', { bucket, key }, asked)
    answer.drain()
    if (answer.status !== 200) return 'unknown'
    return (
      factsFromHeaders(client.names, features, answer.headers, key, Number(answer.headers['content-length'])) ??
      'unknown'
    )
  } catch (error) {
    if (!(error instanceof S3Error)) throw error
    if (error.code === 'NoSuchKey') {
      if (error.headers['x-amz-delete-marker'] !== undefined) onMarker?.(error)
      return undefined
    }
    if (error.code === 'NoSuchVersion' && ref && 'revision' in ref) return undefined
    throw error
  }
}

/**
 * True when the object can be downloaded. Requests its bytes and drops them, because the interface offers no other way
 * to learn whether a caller without an account may read an object. Throws AccessDenied.
 */
export async function isReadable(client: GatewayClient, bucket: string, key: string): Promise<boolean> {
  const response = await open(client, bucket, key)
  response?.drain()
  return response !== undefined
}

/**
 * Downloads a whole object in the way that legacy gateways support. Gateways write the name unescaped into
 * Content-Disposition, and control characters there break the answer: this requests another disposition for such a
 * name. Throws S3Error.
 */
function requestWhole(client: GatewayClient, bucket: string, key: string): Promise<RestResponse> {
  const query = endsInControl(key) ? `&response-content-disposition=${PLAIN_DISPOSITION}` : ''
  return request(client, 'GET', { bucket, key }, {}, query)
}

const NO_HEADERS = Object.freeze({})

const IDENTITY = Object.freeze({ 'accept-encoding': 'identity' })

/**
 * Sends a GET or HEAD for an object and returns the response with status 200, 206 or 416. Throws S3Error for any other
 * status.
 */
export function request(
  client: GatewayClient,
  method: 'GET' | 'HEAD',
  subject: Required<Subject>,
  headers: Record<string, string> = NO_HEADERS,
  query = '',
): Promise<RestResponse> {
  const { rest, names, session } = client
  const path = names.downloadPath(subject.bucket, subject.key)
  return session.withUrlToken(async (token) => {
    // Without the token parameter the gateway answers with status 200 and the page of its console.
    const target = `${path}?token=${encodeSegment(token)}${query}`
    const response = await rest.get(method, target, headers === NO_HEADERS ? IDENTITY : { ...IDENTITY, ...headers })
    const { status } = response
    if (status === 200 || status === 206 || status === 416) return response
    const answer = await readAnswer(response, rest.idleMs)
    const failure = httpFailure(names, answer)
    // The answer to a HEAD has no body that names what is missing.
    if (method === 'HEAD' && failure.status === 404 && failure.headerCode === undefined)
      throw await missing(client, subject)
    const error = withMarker(translate(failure, subject), names, answer.headers)
    // InvalidObjectState means that the gateway accepted the caller and holds no bytes.
    const refused = failure.status === 403 && error.code !== 'InvalidObjectState'
    throw isTokenRefusal(failure) || refused ? new TokenRefused(error) : error
  })
}

async function missing(client: GatewayClient, subject: Required<Subject>): Promise<S3Error> {
  await requireBucket(lookupClient(client), subject.bucket)
  return noSuchKey(subject.bucket, subject.key)
}
