import type { Pool } from 'undici'
import type { GatewayAccount } from '../../api/identity.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { readAtMost } from '../../common/http/bounded-text.js'
import { isRecord } from '../../common/json.js'
import type { BrandNames } from '../brand.js'
import { isLostConnection, nonsense, unavailable } from '../errors.js'
import { type GatewayWatch, USER_AGENT, type WatchedCall, watching } from '../gateway-call.js'

const MAX_ANSWER_BYTES = 64 * 1024

export interface KeyPairDeps {
  readonly pool: Pool
  /** Path of the gateway's address, '' or `/something`. */
  readonly basePath: string
  readonly names: BrandNames
  /** Longest wait for the head of the answer, ms. */
  readonly timeoutMs: number
  readonly watch: GatewayWatch
}

/**
 * Asks the gateway for the key pair of a user of the task platform: `GET /gateway`. Resolves undefined when the gateway
 * refuses the token.
 * @param token JWT of the platform, in the alphabet of a JWT
 * @throws S3Error NotImplemented when the gateway does not hand out key pairs, ServiceUnavailable when it does not
 * answer
 */
export async function platformKeyPair(parts: KeyPairDeps, token: string): Promise<GatewayAccount | undefined> {
  const { status, bytes } = await ask(parts, token).catch((error: unknown) => {
    throw unavailable(error)
  })
  if (status === 401 || status === 403) return undefined
  if ([404, 405, 501].includes(status) || (status >= 300 && status < 400)) {
    throw new S3Error('NotImplemented', {
      message: 'The gateway of this server does not hand out key pairs to users of a task platform.',
    })
  }
  const data = status === 200 ? dataOf(bytes) : undefined
  const { access_key: accessKey, secret_key: secretKey } = data ?? {}
  if (typeof accessKey === 'string' && typeof secretKey === 'string' && accessKey !== '' && secretKey !== '') {
    return { accessKey, secretKey }
  }
  throw nonsense(`answered the request for a key pair with status ${status} and without one`)
}

interface Answered {
  readonly status: number
  /** Undefined for an answer that is too long. */
  readonly bytes: Buffer | undefined
}

/** A repeated request has the same effect, so that one lost connection is no failure. */
async function ask(parts: KeyPairDeps, token: string): Promise<Answered> {
  try {
    return await askOnce(parts, token)
  } catch (error) {
    if (!isLostConnection(error)) throw error
  }
  return askOnce(parts, token)
}

async function askOnce(parts: KeyPairDeps, token: string): Promise<Answered> {
  return watching(parts.watch, ['GET', 'key-pair'], (headers) => exchange(parts, token, headers))
}

async function exchange(
  { pool, basePath, names, timeoutMs }: KeyPairDeps,
  token: string,
  watched: WatchedCall['headers'],
): Promise<Answered> {
  const { statusCode, body } = await pool.request({
    method: 'GET',
    path: basePath + names.ownPath('').replace(/\/$/, ''),
    headers: { 'user-agent': USER_AGENT, authorization: `Bearer ${token}`, ...watched },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  return { status: statusCode, bytes: await readAtMost(body, MAX_ANSWER_BYTES) }
}

function dataOf(bytes: Buffer | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const answer: unknown = JSON.parse(bytes?.toString('utf8') ?? '')
    return isRecord(answer) && isRecord(answer.data) ? answer.data : undefined
  } catch {
    return undefined
  }
}
