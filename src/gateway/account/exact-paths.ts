import { randomBytes } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import { httpFailure } from '../calls/rest-call.js'
import type { GatewayClient } from '../client.js'
import { translate } from '../errors.js'
import { openPut } from '../objects/open-put.js'
import { request } from '../objects/request-object.js'
import { CachedAnswer } from './cached-answer.js'

export const PATHS_CHANGED =
  'The object gateway, or a proxy before it, resolves "." and ".." or joins "//" in paths, so that a key with them would reach another object: such keys are refused.'

/** Time for which a finding is cached, ms: proxies are replaced without a restart of this server. */
const VALID_MS = 5 * 60_000

/** Longest key of a gateway that has the feature `any-key`, bytes. */
const MAX_KEY_BYTES = 1024

/** One byte too long for the gateway, and short enough for it once anything has cleaned the path. */
const PROBE_END = '/./y/..//z'
const PROBE = 'x'.repeat(MAX_KEY_BYTES + 1 - PROBE_END.length) + PROBE_END

/**
 * Finds out whether paths reach the gateway as they are sent: asks to download and to upload a key that is too long for
 * the gateway, and not so if something on the way has resolved its elements `.`, `..` and `//`. Nothing can be stored:
 * no gateway has the bucket.
 */
export class ExactPaths {
  readonly #log: Logger
  readonly #cached: CachedAnswer<boolean>

  constructor(log: Logger, now: () => number) {
    this.#log = log
    this.#cached = new CachedAnswer(VALID_MS, now)
  }

  /** Throws S3Error when the gateway does not answer. */
  has(client: GatewayClient): Promise<boolean> {
    return this.#cached.get(() => this.#ask(client))
  }

  async #ask(client: GatewayClient): Promise<boolean> {
    const bucket = `dealgate-${randomBytes(8).toString('hex')}`
    const exact = (await downloads(client, bucket)) && (await uploads(client, bucket))
    const before = this.#cached.last
    if (!exact && before !== false) this.#log.warn(PATHS_CHANGED)
    if (exact && before === false) this.#log.info('paths reach the object gateway as they are sent again')
    return exact
  }
}

async function downloads(client: GatewayClient, bucket: string): Promise<boolean> {
  try {
    const response = await request(client, 'GET', { bucket, key: PROBE })
    response.destroy()
    return false
  } catch (error) {
    return isTooLong(error)
  }
}

function uploads({ rest, names, session }: GatewayClient, bucket: string): Promise<boolean> {
  return session.withLogin(async (token) => {
    const headers = { 'content-length': 0, ...(token !== undefined && { authorization: `Bearer ${token}` }) }
    const put = openPut(rest, names.uploadPath(bucket, PROBE), headers, true)
    put.end()
    const answer = await put.answered(rest.timeoutMs).catch((error: unknown) => {
      throw translate({ kind: 'transport', error }, {})
    })
    return answer.status >= 300 && isTooLong(translate(httpFailure(names, answer), { bucket, key: PROBE }))
  })
}

/** Throws an error that says nothing about the path. */
function isTooLong(error: unknown): boolean {
  if (!(error instanceof S3Error) || error.status >= 500) throw error
  return error.code === 'KeyTooLongError'
}
