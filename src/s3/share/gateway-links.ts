import { parseCredential } from '../../auth/signatures/parsed-signature.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import { type Brand, brandNames } from '../../gateway/brand.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import type { Selected } from '../../plugins/table/table.js'
import type { RequestHead, S3Request } from '../../request/s3-request.js'
import type { Reply } from '../../response/reply.js'

export interface GatewayLinksOptions {
  /** The address that share links point to. Undefined if it is not this server, which then serves no links. */
  readonly shareUrl: string | undefined
  readonly brand: Brand
  readonly pool: Pick<GatewayPool, 'openLink'>
  /** True for the access key ids of this server. */
  readonly isOwnKey: (accessKeyId: string) => boolean | Promise<boolean>
  readonly region: string
}

/** Returns the operation for a request by a link of the gateway; undefined for any other request. */
export type GatewayLinks = (head: RequestHead) => Promise<Selected | undefined>

/**
 * Serves links that the gateway has signed (web.PresignedGet) and that point to this server. Their scope distinguishes
 * them from presigned URLs of our own key pairs: another region, which is empty on public gateways, or an unknown key.
 * The gateway verifies the signature: the request is forwarded to it, only for the host that links are made for, and
 * never with a log-in.
 */
export function gatewayLinks(options: GatewayLinksOptions): GatewayLinks {
  const { shareUrl, brand, pool, isOwnKey, region } = options
  if (shareUrl === undefined) return async () => undefined
  const { host } = new URL(shareUrl)
  const names = brandNames(brand)

  async function isForeign(credential: string): Promise<boolean> {
    try {
      const { accessKeyId, scope } = parseCredential(
        credential,
        (message) => new S3Error('InvalidArgument', { message }),
      )
      return scope.region !== region || !(await isOwnKey(accessKeyId))
    } catch (error) {
      if (error instanceof S3Error && error.code === 'InvalidArgument') return false
      throw error
    }
  }

  async function follow(request: S3Request<'object'>): Promise<Reply> {
    const { bucket, key, rawQuery, headers } = request
    refuseOwnPaths(bucket, key, brand)
    const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
    const answer = await pool.openLink({ method, bucket, key, rawQuery, host, headers })
    return { status: answer.status, headers: answer.headers, body: answer.transfer && { download: answer.transfer } }
  }

  const source = 'docs/access.md#share-links'
  const byMethod = {
    GET: defineOperation({
      name: 'GetSharedObject',
      source,
      access: 'public',
      action: 'none',
      on: { method: 'GET', resource: 'object' },
      run: follow,
    }),
    HEAD: defineOperation({
      name: 'HeadSharedObject',
      source,
      access: 'public',
      action: 'none',
      on: { method: 'HEAD', resource: 'object' },
      run: follow,
    }),
  }

  return async (head) => {
    if (head.resource !== 'object' || (head.method !== 'GET' && head.method !== 'HEAD')) return undefined
    if (head.host.toLowerCase() !== host || head.headers.authorization !== undefined) return undefined
    const credential = head.query.get(names.query('Credential'))
    if (credential === undefined || !head.query.has(names.query('Signature'))) return undefined
    if (!(await isForeign(credential))) return undefined
    return { plugin: 's3', operation: byMethod[head.method], params: {} }
  }
}

/**
 * Throws AccessDenied for the gateway's own path, which does not hold objects, and for paths with `..`, which may lead
 * there.
 */
function refuseOwnPaths(bucket: string, key: string, brand: Brand): void {
  const climbs = key.split(/[/\\]/).some((element) => element === '.' || element === '..')
  if (bucket === brand.path || climbs || !/^[a-z0-9][a-z0-9.-]+$/.test(bucket)) {
    throw new S3Error('AccessDenied', { message: 'A share link cannot point to this path.' })
  }
}
