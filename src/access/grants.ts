import type { Access, Owned, RequireOwner } from '../api/access.js'
import type { Gateway, GatewayObject, ListQuery } from '../api/gateway.js'
import type { Credentials } from '../api/identity.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import { S3Error } from '../common/errors/s3-error.js'
import type { GatewayPool } from '../gateway/account/create-gateway.js'
import { type GatewayUse, wrapGateway } from '../gateway/wrap-gateway.js'
import { restrictGateway } from './restrict-gateway.js'
import type { Rights } from './rights.js'

/** An action that the documents of a bucket allow a caller who does not own it, on one resource. */
export interface Grant {
  /** In lower case. */
  readonly action: string
  readonly bucket: string
  /** Absent for an action on the bucket. */
  readonly key?: string
  /** Of a listing. */
  readonly prefix?: string
  /** The gateway, accessed with the account that owns the bucket. */
  readonly gateway: Gateway
  /** True if the decision holds for the object that the gateway shows. Absent: for any. */
  readonly holdsFor?: (object: GatewayObject) => Promise<boolean>
  /** Whether the caller may list the bucket, and so learn that a key does not exist. */
  readonly mayList: () => Promise<boolean>
  /** The operation may change data of the bucket that only this server keeps. */
  readonly asOwner: boolean
}

const READ = ['s3:getobject', 's3:getobjectversion']

/** Actions, in lower case, that replace or remove an object; the right to read it is another one. */
export const REPLACES: readonly string[] = [
  's3:putobject',
  's3:deleteobject',
  's3:deleteobjectversion',
  's3:bypassgovernanceretention',
  's3:putobjectretention',
  's3:putobjectlegalhold',
  's3:abortmultipartupload',
  's3:listmultipartuploadparts',
]

/** What one request was granted, beyond what the gateway grants its caller. */
export class Grants {
  readonly #grants: Grant[] = []

  get any(): boolean {
    return this.#grants.length > 0
  }

  add(grant: Grant): void {
    this.#grants.push(grant)
  }

  /** Withdraws what an earlier decision granted, because another one with more facts replaces it. */
  withdraw({ action, bucket, key }: Pick<Grant, 'action' | 'bucket'> & { readonly key?: string | undefined }): void {
    for (let i = this.#grants.length - 1; i >= 0; i--) {
      const one = this.#grants[i]
      if (one?.action === action && one.bucket === bucket && one.key === key) this.#grants.splice(i, 1)
    }
  }

  /** @param actions in lower case; absent for any */
  find(bucket: string, key: string | undefined, actions?: readonly string[]): Grant | undefined {
    return this.#grants.find(
      (one) => one.bucket === bucket && one.key === key && (actions === undefined || actions.includes(one.action)),
    )
  }

  /**
   * A grant by which the operation may look at an object. If it may also replace or remove the object, only a grant to
   * read counts: a copy must not read what its caller may only write.
   */
  toLookAt(bucket: string, key: string): Grant | undefined {
    const all = this.#grants.filter((one) => one.bucket === bucket && one.key === key)
    return all.some(({ action }) => REPLACES.includes(action))
      ? all.find(({ action }) => READ.includes(action))
      : all[0]
  }

  inBucket(bucket: string): Grant | undefined {
    return this.#grants.find((one) => one.bucket === bucket)
  }

  asOwner(bucket: string): boolean {
    return this.#grants.some((one) => one.bucket === bucket && one.asOwner)
  }

  /** A grant to remove an object below this folder. */
  removesBelow(bucket: string, folder: string): Grant | undefined {
    return this.#grants.find(
      ({ action, key, ...one }) =>
        one.bucket === bucket && action === 's3:deleteobject' && folder.endsWith('/') && key?.startsWith(folder),
    )
  }
}

/** Actions, in lower case, that look at an object. */
export const READS: readonly string[] = [
  's3:getobject',
  's3:getobjectversion',
  's3:getobjectattributes',
  's3:getobjectversionattributes',
  's3:getobjecttagging',
  's3:getobjectversiontagging',
  's3:getobjectacl',
  's3:getobjectversionacl',
  's3:getobjectretention',
  's3:getobjectlegalhold',
]

/** Throws AccessDenied for a missing object: whether a key exists is for those who may list. */
async function requireMayList({ action, mayList }: Grant): Promise<void> {
  if (READS.includes(action) && !(await mayList())) throw new S3Error('AccessDenied')
}

const LISTS = ['s3:listbucket', 's3:listbucketversions']
const WRITES = ['s3:putobject']

/** The granted actions, in lower case, by which a method is asked with the account of the owner; `any` for each. */
const GRANTED: { readonly [Name in keyof Gateway]?: readonly string[] | 'any' } = {
  bucketExists: 'any',
  deleteBucket: ['s3:deletebucket'],
  remove: ['s3:deleteobject'],
  keepRecord: ['s3:putobject', 's3:putobjectacl', 's3:putobjecttagging', 's3:deleteobjecttagging'],
  // The rules for everybody, which operations compare with what a client asks for.
  listPolicies: 'any',
  hiddenAccess: 'any',
  setPolicy: ['s3:putbucketpolicy', 's3:deletebucketpolicy', 's3:putbucketpublicaccessblock'],
}

interface GrantedOptions {
  /** The rights of the caller's key pair, which no grant to its account widens; absent for all rights. */
  readonly rights?: Rights | undefined
  /** The right that looking at a key needs: write for look-ups that precede a write or a removal. */
  readonly look: Access
}

/**
 * The gateway of a caller, with the account of the bucket's owner for exactly what the caller was granted. Everything
 * else is asked with the caller's own account: a link would outlive the policy, and a call may spend.
 */
export function grantedGateway(base: Gateway, grants: Grants, { rights, look }: GrantedOptions): Gateway {
  const gatewayOf = (grant: Grant) => (rights ? restrictGateway(grant.gateway, rights, look) : grant.gateway)
  const toLookAt = (bucket: string, key: string) =>
    look === 'write' ? grants.find(bucket, key) : grants.toLookAt(bucket, key)
  const listing = (bucket: string, { prefix, delimiter, limit }: ListQuery): Gateway => {
    const grant = grants.find(bucket, undefined, LISTS)
    if (grant && prefix.startsWith(grant.prefix ?? '')) return gatewayOf(grant)
    // A look-up of one key, or of what is left below a folder.
    const one = limit === 1 && delimiter === '' && (grants.find(bucket, prefix) ?? grants.removesBelow(bucket, prefix))
    return one ? gatewayOf(one) : base
  }
  const either = (grant: Grant | undefined) => (grant ? gatewayOf(grant) : base)
  const granted = ({ method, bucket = '', key }: GatewayUse): Gateway => {
    const by = GRANTED[method]
    if (by === undefined) return base
    return either(by === 'any' ? grants.inBucket(bucket) : grants.find(bucket, key, by))
  }

  return wrapGateway(granted, {
    list: (bucket, query) => listing(bucket, query).list(bucket, query),

    async stat(bucket, key) {
      const grant = toLookAt(bucket, key)
      if (!grant) return base.stat(bucket, key)
      const object = await gatewayOf(grant).stat(bucket, key)
      if (object && (await grant.holdsFor?.(object)) === false) throw new S3Error('AccessDenied')
      if (!object) await requireMayList(grant)
      return object
    },
    async download(bucket, key, range) {
      const grant = toLookAt(bucket, key)
      if (!grant) return base.download(bucket, key, range)
      const download = await gatewayOf(grant)
        .download(bucket, key, range)
        .catch(async (error) => {
          if (error instanceof S3Error && error.code === 'NoSuchKey') await requireMayList(grant)
          throw error
        })
      try {
        if ((await grant.holdsFor?.(download.object)) === false) throw new S3Error('AccessDenied')
        return download
      } catch (error) {
        download.discard()
        throw error
      }
    },
    upload(bucket, key, length, attributes) {
      const grant = grants.find(bucket, key, WRITES) ?? (length === 0 ? grants.removesBelow(bucket, key) : undefined)
      return either(grant).upload(bucket, key, length, attributes)
    },
  })
}

/** The checks of a caller's own rights. */
export interface Checks {
  readonly requireWholeBucket: (bucket: string, access: Access) => void
  readonly requireKey: (bucket: string, key: string, access: Access) => void
  readonly requireSome: (bucket: string, access: Access | 'any') => void
  readonly requireAction: (name: string) => void
  readonly requireOwner: RequireOwner
}

/**
 * The checks of a caller who was granted something. Rights of an identity keep restricting it: a grant replaces only
 * the refusal that every anonymous caller gets, and the question for the owner.
 */
export function grantedChecks(base: Checks, grants: Grants, signed: boolean): Checks {
  const unless = (granted: boolean, check: () => void) => {
    if (signed || !granted) check()
  }
  return {
    requireWholeBucket: (bucket, access) =>
      unless(grants.find(bucket, undefined) !== undefined, () => base.requireWholeBucket(bucket, access)),
    requireKey: (bucket, key, access) =>
      unless(grants.find(bucket, key) !== undefined, () => base.requireKey(bucket, key, access)),
    requireSome: (bucket, access) =>
      unless(grants.inBucket(bucket) !== undefined, () => base.requireSome(bucket, access)),
    requireAction: base.requireAction,
    async requireOwner(bucket, instead) {
      if (grants.asOwner(bucket)) return
      if (instead && grants.find(bucket, instead.key, [instead.action.toLowerCase()])) return
      return base.requireOwner(bucket)
    },
  }
}

/** Returns the gateway as the account that owns a bucket sees it; undefined if the server has no key pair of it. */
export type OwnerGateway = (owned: Owned) => Promise<Gateway | undefined>

/**
 * Finds accounts by their key pairs. A key pair that was removed, or acts as another account now, no longer counts: the
 * bucket is closed to others until a key pair of its owner stores its documents again.
 */
export function ownerGateway(own: Gateway, pool: Pick<GatewayPool, 'for'>, credentials: Credentials): OwnerGateway {
  return async ({ owner, by }) => {
    if (owner === OWN_ID) return own
    const identity = await credentials(by)
    return identity?.account && canonicalId(identity) === owner ? pool.for(identity.account) : undefined
  }
}
