import { type S3Error, unless } from '../../../common/errors/s3-error.js'
import { encodeSegment } from '../brand.js'
import { httpFailure, readAnswer } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { isTokenRefusal, noSuchKey, type Subject, TokenRefused, translate } from '../errors.js'
import { requireBucket } from '../listing/look-up.js'
import { endsInControl, PLAIN_DISPOSITION } from '../object-facts.js'
import type { RestResponse } from '../transport/response.js'
import { withMarker } from './versions.js'

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

/** Resolves undefined when the object was removed after it was listed. */
export function open(client: GatewayClient, bucket: string, key: string): Promise<RestResponse | undefined> {
  return unless('NoSuchKey', requestWhole(client, bucket, key), undefined)
}
