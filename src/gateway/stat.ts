import { S3Error } from '../errors/s3-error.js'
import { isTokenRefusal, noSuchKey, type Subject, TokenRefused, translate } from './errors.js'
import type { GatewayFeatures, GatewayObject } from './gateway.js'
import { whyUnfit } from './keys.js'
import { toObject } from './list-entry.js'
import { lookUp, requireBucket } from './look-up.js'
import { factsFromHeaders } from './object-facts.js'
import { httpFailure, readAnswer } from './rest-client.js'
import { looking, type Tools } from './tools.js'
import type { RestResponse } from './transport/response.js'

/** See Gateway.stat. */
export async function stat(
  tools: Tools,
  features: GatewayFeatures,
  bucket: string,
  key: string,
): Promise<GatewayObject | undefined> {
  if (!features.anyKey && whyUnfit(key) !== undefined) return undefined
  if (features.objectHead) {
    const answer = await head(tools, features, bucket, key)
    if (answer !== 'unknown') return answer
  }
  if (tools.own && !(await isReadable(tools, bucket, key))) return undefined
  const entry = await lookUp(looking(tools), features, bucket, key)
  return entry && !entry.isPrefix ? toObject(features, entry) : undefined
}

/** Asks for the object's bytes and leaves them: the one way to learn whether somebody without an account may read it. Throws AccessDenied. */
export async function isReadable(tools: Tools, bucket: string, key: string): Promise<boolean> {
  try {
    const response = await request(tools, 'GET', { bucket, key })
    response.drain()
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchKey') return false
    throw error
  }
}

/** `unknown` when the answer is not about an object: the gateway does not do what it says it does. */
async function head(
  tools: Tools,
  features: GatewayFeatures,
  bucket: string,
  key: string,
): Promise<GatewayObject | undefined | 'unknown'> {
  try {
    const answer = await request(tools, 'HEAD', { bucket, key })
    answer.drain()
    if (answer.status !== 200) return 'unknown'
    return (
      factsFromHeaders(tools.names, features, answer.headers, key, Number(answer.headers['content-length'])) ??
      'unknown'
    )
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchKey') return undefined
    throw error
  }
}

/** The head of the answer to a GET or HEAD of an object: 200, 206 or 416. Throws S3Error for any other. */
export function request(
  tools: Tools,
  method: 'GET' | 'HEAD',
  subject: Required<Subject>,
  headers: Record<string, string> = {},
): Promise<RestResponse> {
  const { rest, names, session, log } = tools
  const path = names.downloadPath(subject.bucket, subject.key)
  return session.withUrlToken(async (token) => {
    // Without the parameter the gateway would answer with its console's page and status 200.
    const response = await rest.get(method, `${path}?token=${encodeURIComponent(token)}`, {
      'accept-encoding': 'identity',
      ...headers,
    })
    if ([200, 206, 416].includes(response.status)) return response
    const failure = httpFailure(names, await readAnswer(response, rest.idleMs))
    // The answer to a HEAD has no body to say what is missing.
    if (method === 'HEAD' && failure.status === 404 && failure.headerCode === undefined)
      throw await missing(tools, subject)
    const error = translate(failure, subject, log)
    // Whoever is told that there are no bytes has been let in.
    const refused = failure.status === 403 && error.code !== 'InvalidObjectState'
    throw isTokenRefusal(failure) || refused ? new TokenRefused(error) : error
  })
}

async function missing(tools: Tools, subject: Required<Subject>): Promise<S3Error> {
  await requireBucket(looking(tools), subject.bucket)
  return noSuchKey(subject.bucket, subject.key)
}
