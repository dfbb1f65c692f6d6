// Requests to the S3 endpoint. Everything that the console does goes through here, as a signed request.
import { canonicalQuery, EMPTY_HASH, isReachable, pathOf, sha256 } from './signer.js'
import { parseXml } from './xml.js'

const encoder = new TextEncoder()
const UNREACHABLE =
  'Browsers remove the parts . and .. from every address: the console cannot request this object. Use another client of S3.'
const NOT_OFFERED = 'This server does not offer this: it runs without the plugin that does.'
/** What buckets may have in their names, as those made long ago. Browsers learn no reason why a server refuses others. */
const BUCKET = /^[\w.-]{1,255}$/

/** An error that the server has answered, or `NetworkError` if it has not. */
export class ApiError extends Error {
  /** @param fields what the server says besides: `Path`, `Line` and `Column` of what is wrong in a document, and others */
  constructor(code, message, { status = 0, requestId, fields = {} } = {}) {
    super(message)
    this.code = code
    this.status = status
    this.requestId = requestId
    this.fields = fields
  }
}

/**
 * What the endpoint is asked with: its address and a signer, which only a sign-in lacks.
 * @typedef {{ endpoint: string, signer?: import('./signer.js').Signer }} Client
 */

/**
 * The URL of a request. Throws ApiError for what a browser would send to another address.
 * @param versionId of the object; undefined for the current version
 * @param query names with values; one that is undefined is left out
 */
export function urlOf({ endpoint }, { bucket, key, versionId, path = pathOf(bucket, key), query = {} }) {
  if (key === '') throw new ApiError('UnreachableKey', 'No object has an empty name.')
  if (bucket !== undefined && !BUCKET.test(bucket))
    throw new ApiError('InvalidBucketName', 'No bucket has such a name: it may have letters, digits, dots and hyphens.')
  if (!isReachable(path)) throw new ApiError('UnreachableKey', UNREACHABLE)
  const pairs = Object.entries({ ...query, versionId: query.versionId ?? versionId }).filter(
    ([, value]) => value !== undefined,
  )
  return `${endpoint}${path}${pairs.length > 0 ? `?${canonicalQuery(pairs)}` : ''}`
}

/**
 * Sends a request, and again with the time of the server if this machine has another one. Throws ApiError.
 * @param request { method?, bucket?, key?, versionId?, path?, query?, headers?, body?, service?, signal? }
 */
export function send(client, request) {
  return inServerTime(client, () => sendOnce(client, request))
}

/** Sends once more, in the time of the server, what was refused because this machine has another one. */
export async function inServerTime(client, sending) {
  try {
    return await sending()
  } catch (error) {
    if (error.code !== 'RequestTimeTooSkewed' || !error.serverTime) throw error
    client.signer.skew = error.serverTime - Date.now()
    return sending()
  }
}

async function sendOnce(client, request) {
  const { method = 'GET', service, signal } = request
  const body = typeof request.body === 'string' ? encoder.encode(request.body) : request.body
  const url = urlOf(client, request)
  const hash = body === undefined ? EMPTY_HASH : await sha256(body)
  // A client without a signer is signing in.
  const headers = client.signer
    ? await client.signer.sign({ method, url, headers: request.headers, hash, service })
    : request.headers
  // No cookie goes out, and none would count. A redirect is no answer of an S3 endpoint.
  const options = { credentials: 'omit', cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer' }
  let response
  try {
    response = await fetch(url, { method, headers, body, signal, ...options })
  } catch (error) {
    if (signal?.aborted) throw error
    throw unreachable(client)
  }
  if (response.ok) return response
  const error = await errorOf(response.status, response.headers, await response.text().catch(() => ''))
  if (isMissing(error, request)) error.message = NOT_OFFERED
  throw error
}

export function unreachable({ endpoint }) {
  return new ApiError('NetworkError', `No answer came from ${endpoint}. The server may be down, or out of reach.`)
}

/** The error in an answer. @param headers has `get` */
export async function errorOf(status, headers, text) {
  const about = { status, requestId: headers.get('x-amz-request-id') ?? undefined }
  const [code, message, fields] = wordsOf(status, headers.get('content-type') ?? '', text)
  const error = new ApiError(code, message, { ...about, fields })
  // The version that hides an object, or that was asked for.
  if (headers.get('x-amz-delete-marker') === 'true') error.deleteMarker = headers.get('x-amz-version-id') ?? ''
  error.serverTime = Date.parse(headers.get('date') ?? '') || undefined
  return error
}

function wordsOf(status, type, text) {
  try {
    if (type.includes('json')) {
      const { Code, Message, Details } = JSON.parse(text)
      return [Code, Message, Details]
    }
    const root = parseXml(text)
    const error = root.child('Error') ?? root
    const code = error.get('Code')
    const fields = Object.fromEntries(error.children.map(({ name, text }) => [name, text]))
    if (code !== undefined) return [code, error.get('Message') ?? code, fields]
  } catch {
    // A proxy in between has answered, or a HEAD, which has no document.
  }
  return NO_DOCUMENT[status] ?? [`HTTP ${status}`, `The server answered with status ${status}.`]
}

/** What the answer to a HEAD means, which has no document. */
const NO_DOCUMENT = {
  400: [
    'BadRequest',
    'The server cannot answer this: the id of a version may be wrong, or a key of the client is needed.',
  ],
  403: ['AccessDenied', 'This key pair may not read this.'],
  404: ['NotFound', 'There is nothing of this name, or no such version of it.'],
  412: ['PreconditionFailed', 'It was changed meanwhile.'],
}

/** True for an error by which a server refuses a call that none of its plugins has. */
function isMissing({ code, message }, { path = '' }) {
  if (code === 'NoSuchKey') return path.startsWith('/-/')
  return code === 'NotImplemented' && message.startsWith('The query parameter "x-')
}

/** Sends a request whose answer is a document of S3; undefined if it is empty. Throws ApiError. */
export async function sendXml(client, request) {
  return readXml(await send(client, request))
}

/** The document of an answer. Throws ApiError. */
export async function readXml(response) {
  const text = await response.text()
  if (text.trim() === '') return undefined
  const root = parseXml(text)
  // CompleteMultipartUpload and CopyObject may fail after the status 200 was sent.
  if (root.name === 'Error') throw new ApiError(root.get('Code') ?? 'InternalError', root.get('Message') ?? '')
  return root
}

/** Sends a request whose answer is JSON, as those beyond S3 are. Throws ApiError. */
export async function sendJson(client, request) {
  const headers = { accept: 'application/json', ...request.headers }
  if (request.json === undefined) return (await send(client, { ...request, headers })).json()
  const body = JSON.stringify(request.json)
  const typed = { ...headers, 'content-type': 'application/json' }
  return (await send(client, { method: 'POST', ...request, headers: typed, body })).json()
}
