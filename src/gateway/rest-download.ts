import { S3Error } from '../errors/s3-error.js'
import { DownloadBody } from './download-body.js'
import { nonsense, noSuchKey, unavailable } from './errors.js'
import type { ByteRange, Download, GatewayFeatures, GatewayObject } from './gateway.js'
import { whyUnfit } from './keys.js'
import { factsFromHeaders, headerFacts } from './object-facts.js'
import { invalidRange, parseContentRange, rangeHeader, type Span, spanOf } from './range.js'
import { isReadable, request, stat } from './stat.js'
import { looking, type Tools } from './tools.js'
import type { RestResponse } from './transport/response.js'

/** How often an object that changes between listing and download is looked at anew. */
const ATTEMPTS = 3
/** Last-Modified has whole seconds: a younger object may have been overwritten within its second. */
const AMBIGUOUS_MS = 2000

/** See Gateway.download. */
export async function download(
  tools: Tools,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
): Promise<Download> {
  if (!features.anyKey && whyUnfit(key) !== undefined) throw noSuchKey(bucket, key)
  if (features.objectHead) {
    const direct = await downloadDirectly(tools, features, bucket, key, range)
    if (direct) return direct
  }
  // Nothing is told of the object to somebody who may not read it, not even whether it is there.
  if (tools.own && !(await isReadable(tools, bucket, key))) throw noSuchKey(bucket, key)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const asked = performance.now()
    const listed = await stat(looking(tools), features, bucket, key)
    if (!listed) throw noSuchKey(bucket, key)
    const span = spanOf(range, listed.size)
    const found = await downloadListed(tools, features, bucket, listed, asked, span)
    if (found) return found
  }
  throw unavailable(undefined, 'The object is being changed, or the object gateway sends something else. Try again.')
}

/** One call: the gateway tells everything with the bytes. Undefined when it does not. */
async function downloadDirectly(
  tools: Tools,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
): Promise<Download | undefined> {
  // "The last 0 bytes" cannot be written as a Range header that means it.
  const asked: Record<string, string> =
    range && !('suffix' in range && range.suffix === 0) ? { range: rangeHeader(range) } : {}
  const response = await request(tools, 'GET', { bucket, key }, asked)
  try {
    return await readDirect(tools, features, key, range, response)
  } catch (error) {
    response.destroy()
    throw error
  }
}

async function readDirect(
  tools: Tools,
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
  const object = factsFromHeaders(tools.names, features, response.headers, key, size)
  if (!object || !Number.isSafeInteger(size)) {
    response.destroy()
    return undefined
  }
  const span = spanOf(range, size)
  const from = sent?.first ?? 0
  const to = sent?.last ?? size - 1
  if (length !== to - from + 1 || span.first < from || span.last > to)
    throw nonsense('answered with another range than was asked for')
  return new DownloadBody(response, {
    object,
    span,
    skip: span.first - from,
    surplus: to - span.last,
    idleMs: tools.rest.idleMs,
  })
}

/** The listing, `asked` for at that `performance.now()`, has said what there is; the download must agree with it. Undefined when it does not. */
async function downloadListed(
  tools: Tools,
  features: GatewayFeatures,
  bucket: string,
  listed: GatewayObject,
  asked: number,
  span: Span,
): Promise<Download | undefined> {
  const { key } = listed
  // A folder object has no bytes, and its download is not an object's.
  if (key.endsWith('/') && !features.anyKey) {
    return new DownloadBody(undefined, { object: { ...listed, headers: {}, metadata: {} }, span, ...whole(tools) })
  }
  const response = await open(tools, bucket, key)
  if (!response) return undefined
  const wrong = disagreement(response, listed)
  if (wrong !== undefined) {
    response.destroy()
    tools.log.info({ bucket, wrong }, 'the object changed between listing and download')
    return undefined
  }
  const sinceAsked = performance.now() - asked
  if (
    isAmbiguous(response, sinceAsked) &&
    (await stat(looking(tools), features, bucket, key))?.stamp !== listed.stamp
  ) {
    response.destroy()
    return undefined
  }
  const { contentType, headers, metadata } = headerFacts(tools.names, response.headers, key, true)
  const object = { ...listed, contentType, headers, metadata }
  return new DownloadBody(response, {
    ...whole(tools),
    object,
    span,
    skip: span.first,
    surplus: listed.size - 1 - span.last,
  })
}

function whole(tools: Tools): { skip: number; surplus: number; idleMs: number } {
  return { skip: 0, surplus: 0, idleMs: tools.rest.idleMs }
}

/** Undefined when the object has gone since it was listed. */
async function open(tools: Tools, bucket: string, key: string): Promise<RestResponse | undefined> {
  try {
    return await request(tools, 'GET', { bucket, key })
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchKey') return undefined
    throw error
  }
}

/** What is wrong with a full download of the listed object. */
function disagreement(response: RestResponse, listed: GatewayObject): string | undefined {
  const { headers, status } = response
  if (status !== 200) return `status ${status}`
  if (/^text\/html\b/i.test(headers['content-type'] ?? '') && !/^text\/html\b/i.test(listed.contentType))
    return 'an HTML page'
  // Absent in a chunked answer; the bytes are counted anyway.
  const length = headers['content-length']
  if (length !== undefined && Number(length) !== listed.size) return 'size'
  const time = Date.parse(headers['last-modified'] ?? '')
  if (time !== Math.floor(Date.parse(listed.lastModified) / 1000) * 1000) return 'time'
  return undefined
}

/**
 * Whether the object was so young when the listing looked at it, perhaps long before the download, that an overwrite since then need not show.
 * Both times are the gateway's own.
 */
function isAmbiguous(response: RestResponse, sinceAskedMs: number): boolean {
  const answered = Date.parse(response.headers.date ?? '')
  const modified = Date.parse(response.headers['last-modified'] ?? '')
  return !(answered - sinceAskedMs - modified >= AMBIGUOUS_MS)
}

/** The mark of the upload that the object now comes from; undefined when it is not one of ours or gone. */
export async function revisionOf(tools: Tools, bucket: string, key: string): Promise<string | undefined> {
  const response = await open(tools, bucket, key)
  if (!response) return undefined
  const { revision } = headerFacts(tools.names, response.headers, key, true)
  response.drain()
  return revision
}
