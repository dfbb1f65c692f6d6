import { z } from 'zod'
import { S3Error } from '../../common/errors/s3-error.js'
import type { MaybePromise } from '../../common/maybe-promise.js'
import type { Session } from '../api/identity.js'
import type { Reply, RequestHead, S3Request } from '../api/request.js'
import { parseCredential } from '../auth/signatures/parsed-signature.js'
import type { GatewayPool } from '../gateway/account/create-gateway.js'
import { type Brand, brandNames } from '../gateway/brand.js'
import { defineCall } from '../plugins/calls/define-call.js'
import { defineOperation } from '../plugins/define-plugin.js'
import type { Selected } from '../plugins/table.js'

/** Longest lifetime of a link, seconds; the gateway silently shortens longer ones. */
const MAX_EXPIRY_S = 604_800
const DEFAULT_EXPIRY_S = 3600

const seconds = z.number().int().min(1).max(MAX_EXPIRY_S)
const querySeconds = z.coerce.number<string>().int().min(1).max(MAX_EXPIRY_S)
const life = 'Lifetime of the link, seconds: at most 604800 (seven days), by default 3600.'

/** Creates a link signed by the gateway. Anyone with the link may read the object until it expires. */
export const shareObject = defineCall({
  name: 'ShareObject',
  source: 'docs/access.md#share-links',
  summary: 'Creates a link, signed by the gateway, by which anyone can read the object until it expires.',
  access: 'signed',
  action: 's3:GetObject',
  on: { method: 'POST', resource: 'object', subresource: 'x-share' },
  // It is a read that a presigned URL could have done, so it takes no action of its own, nor the owner of the bucket.
  ownRules: true,
  needs: { key: 'read' },
  query: z.strictObject({ expiry: querySeconds.optional().describe(life) }),
  body: z.strictObject({ Expiry: seconds.optional().describe(life) }),
  result: z.object({ Url: z.string(), Expiry: seconds }),
  root: 'ShareLink',
  async answer({ request: { bucket, key }, query, body }, context) {
    if (query.expiry !== undefined && body.Expiry !== undefined)
      throw new S3Error('InvalidRequest', { message: 'Expiry is given in the query or in the body, not in both.' })
    const Expiry = lifetime(query.expiry ?? body.Expiry, context.caller?.identity.session)
    await context.authorizer.requireLasting({ action: 's3:GetObject', bucket, key })
    if ((await context.store.head(bucket, key)).encrypted)
      throw new S3Error('InvalidRequest', {
        message: 'The object is encrypted, and the gateway would serve it so: use a presigned URL of this server.',
      })
    const { protocol, host } = new URL(context.server.shareUrl)
    const link = await context.gateway.presignedGet(bucket, key, Expiry, host)
    return { Url: `${protocol}//${link}`, Expiry }
  },
})

/**
 * Returns the lifetime of a link, which must not outlive the session that asks for it. Throws InvalidArgument, and
 * ExpiredToken in the last second of the session.
 */
function lifetime(asked: number | undefined, session: Session | undefined): number {
  const left = Math.floor(((session?.expires ?? Number.POSITIVE_INFINITY) - Date.now()) / 1000)
  if (left < 1) throw new S3Error('ExpiredToken')
  if (asked !== undefined && asked > left)
    throw new S3Error('InvalidArgument', {
      message: `The link would outlive the session that asks for it: Expiry is at most ${left} seconds.`,
    })
  return asked ?? Math.min(DEFAULT_EXPIRY_S, left)
}

interface GatewayLinksOptions {
  /** The address that share links point to. Undefined if it is not this server, which then serves no links. */
  readonly shareUrl: string | undefined
  readonly brand: Brand
  readonly pool: Pick<GatewayPool, 'openLink'>
  /** True for the access key ids of this server. */
  readonly isOwnKey: (accessKeyId: string) => boolean | Promise<boolean>
  readonly region: string
}

/** Returns the operation for a request by a link of the gateway; undefined for any other request. */
export type GatewayLinks = (head: RequestHead) => MaybePromise<Selected | undefined>

/**
 * Serves links that the gateway has signed (web.PresignedGet) and that point to this server. Their scope distinguishes
 * them from presigned URLs of our own key pairs: another region, which is empty on public gateways, or an unknown key.
 * The gateway verifies the signature: the request is forwarded to it, only for the host that links are made for, and
 * never with a log-in.
 */
export function gatewayLinks(options: GatewayLinksOptions): GatewayLinks {
  const { shareUrl, brand, pool, isOwnKey, region } = options
  if (shareUrl === undefined) return () => undefined
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

/**
 * Returns the origin of the address that share links are made for. Throws TypeError if the address has more than a
 * scheme and a host.
 */
export function shareAddress(url: string): string {
  const { protocol, origin, pathname, search, hash, username, password } = new URL(url)
  const more = username + password + search + hash !== '' || pathname !== '/'
  if (more || !/^https?:$/.test(protocol))
    throw new TypeError('the share address must be http or https, a host, and nothing else')
  return origin
}
