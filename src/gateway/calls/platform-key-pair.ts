import { S3Error } from '../../../common/errors/s3-error.js'
import { isRecord, parseObject } from '../../../common/json.js'
import type { GatewayAccount } from '../../api/identity.js'
import type { BrandNames } from '../brand.js'
import { nonsense } from '../errors.js'
import { getPath, type PathDeps } from './rest-call.js'

/**
 * Asks the gateway for the key pair of a user of the task platform: `GET /gateway`. Resolves undefined when the gateway
 * refuses the token.
 * @param token JWT of the platform, in the alphabet of a JWT
 * @throws S3Error NotImplemented when the gateway does not hand out key pairs, ServiceUnavailable when it does not
 * answer
 */
export async function platformKeyPair(
  gateway: PathDeps & { readonly names: BrandNames },
  token: string,
): Promise<GatewayAccount | undefined> {
  const path = gateway.names.ownPath('').replace(/\/$/, '')
  const { status, bytes } = await getPath(gateway, { name: 'key-pair', path, token })
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

function dataOf(bytes: Buffer | undefined): Readonly<Record<string, unknown>> | undefined {
  const data = parseObject(bytes?.toString('utf8') ?? '')?.data
  return isRecord(data) ? data : undefined
}
