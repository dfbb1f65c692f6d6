import type { Credentials } from '../auth/caller.js'
import { parseCredential } from '../auth/claim.js'
import { S3Error } from '../errors/s3-error.js'
import { type Brand, brandNames } from '../gateway/brand.js'
import type { GatewayPool } from '../gateway/create-gateway.js'
import { defineOperation } from '../registry/operation.js'
import type { Selected } from '../registry/table.js'
import type { RequestHead, S3Request } from '../request/s3-request.js'
import type { Reply } from '../response/reply.js'

export interface GatewayLinksOptions {
  /** The address that share links point at. Undefined: not at this server, and none is served. */
  readonly shareUrl: string | undefined
  readonly brand: Brand
  readonly pool: Pick<GatewayPool, 'openLink'>
  readonly credentials: Credentials
  readonly region: string
}

/** The operation for a request that came by one of the gateway's links; undefined for any other request. */
export type GatewayLinks = (head: RequestHead) => Promise<Selected | undefined>

/**
 * Links that the gateway has signed (web.PresignedGet) and that point at this server. They are told from those of our own key pairs by their scope: another region,
 * which is empty on public gateways, or a key that is not ours. The signature is the gateway's to check: the request goes on to it, for the host that
 * links are made for and no other, and never with a log-in.
 */
export function gatewayLinks(options: GatewayLinksOptions): GatewayLinks {
  const { shareUrl, brand, pool, credentials, region } = options
  if (shareUrl === undefined) return async () => undefined
  const { host } = new URL(shareUrl)
  const names = brandNames(brand)

  async function isForeign(credential: string): Promise<boolean> {
    try {
      const { accessKeyId, scope } = parseCredential(
        credential,
        (message) => new S3Error('InvalidArgument', { message }),
      )
      return scope.region !== region || (await credentials(accessKeyId)) === undefined
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
      on: { method: 'GET', resource: 'object' },
      run: follow,
    }),
    HEAD: defineOperation({
      name: 'HeadSharedObject',
      source,
      access: 'public',
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

/** Below its own path the gateway has other things than objects, and a path with `..` may lead there. */
function refuseOwnPaths(bucket: string, key: string, brand: Brand): void {
  const climbs = key.split(/[/\\]/).some((element) => element === '.' || element === '..')
  if (bucket === brand.path || climbs || !/^[a-z0-9][a-z0-9.-]+$/.test(bucket)) {
    throw new S3Error('AccessDenied', { message: 'A share link cannot lead there.' })
  }
}
