import { S3Error } from '../../common/errors/s3-error.js'
import type { Access, BucketOwner, RequireOwner } from '../api/access.js'
import type { Gateway, GatewayObject, ListQuery } from '../api/gateway.js'
import type { Credentials } from '../api/identity.js'
import type { VersionRef } from '../api/versions.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
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
  /** The one version that the grant is about; absent for the current one. */
  readonly versionId?: string
  /** The prefix of a listing. */
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
  /** The versions, by id, as which a grant has looked at an object; undefined for the current one. */
  readonly #seen = new Map<string, Set<string | undefined>>()

  get any(): boolean {
    return this.#grants.length > 0
  }

  add(grant: Grant): void {
    this.#grants.push(grant)
  }

  /** Withdraws what an earlier decision granted, because another one with more facts replaces it. */
  withdraw({ action, bucket, key, versionId }: Withdrawn): void {
    for (let i = this.#grants.length - 1; i >= 0; i--) {
      const one = this.#grants[i]
      if (one?.action === action && isAbout(one, bucket, key, versionId)) this.#grants.splice(i, 1)
    }
  }

  /**
   * @param actions in lower case; absent for any
   * @param versionId absent for the current version
   */
  find(
    bucket: string,
    key: string | undefined,
    actions?: readonly string[],
    versionId?: string | undefined,
  ): Grant | undefined {
    return this.#grants.find(
      (one) => isAbout(one, bucket, key, versionId) && (actions === undefined || actions.includes(one.action)),
    )
  }

  /** True if something was granted on the key, or on a version of it. */
  onKey(bucket: string, key: string): boolean {
    return this.#grants.some((one) => one.bucket === bucket && one.key === key)
  }

  /** Records that a grant has let the operation look at the object of this revision. */
  see(revision: string, { versionId }: Grant): void {
    const seen = this.#seen.get(revision) ?? new Set()
    this.#seen.set(revision, seen.add(versionId))
  }

  /** A grant for an object that the operation has looked at before. */
  ofSeen(revision: string, find: (versionId: string | undefined) => Grant | undefined): Grant | undefined {
    for (const versionId of this.#seen.get(revision) ?? []) {
      const grant = find(versionId)
      if (grant) return grant
    }
    return undefined
  }

  /**
   * A grant by which the operation may look at an object. If it may also replace or remove the object, only a grant to
   * read counts: a copy must not read what its caller may only write.
   */
  toLookAt(bucket: string, key: string, versionId?: string): Grant | undefined {
    const all = this.#grants.filter((one) => isAbout(one, bucket, key, versionId))
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

type Withdrawn = Pick<Grant, 'action' | 'bucket'> & {
  readonly key: string | undefined
  readonly versionId: string | undefined
}

function isAbout(one: Grant, bucket: string, key: string | undefined, versionId: string | undefined): boolean {
  return one.bucket === bucket && one.key === key && one.versionId === versionId
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
const REMOVES = ['s3:deleteobject']
const REMOVES_VERSION = ['s3:deleteobjectversion']
const BYPASSES = ['s3:bypassgovernanceretention']
const KEEPS = [
  ...['s3:putobject', 's3:putobjectacl', 's3:putobjecttagging', 's3:deleteobjecttagging'],
  ...['s3:putobjectversionacl', 's3:putobjectversiontagging', 's3:deleteobjectversiontagging'],
]

/** The granted actions, in lower case, by which a method is asked with the account of the owner; `any` for each. */
const GRANTED: { readonly [Name in keyof Gateway]?: readonly string[] | 'any' } = {
  bucketExists: 'any',
  deleteBucket: ['s3:deletebucket'],
  versioning: 'any',
  bucketQuota: 'any',
  setBucketQuota: ['quota:setbucketquota'],
  setVersioning: ['s3:putbucketversioning'],
  setLockRule: ['s3:putbucketobjectlockconfiguration'],
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
  const toLookAt = (bucket: string, key: string, ref: VersionRef | undefined) => {
    const ofVersion = (versionId: string | undefined) =>
      look === 'write' ? grants.find(bucket, key, undefined, versionId) : grants.toLookAt(bucket, key, versionId)
    if (ref) return 'id' in ref ? ofVersion(ref.id) : grants.ofSeen(ref.revision, ofVersion)
    return ofVersion(undefined) ?? onlyVersion(ofVersion(NULL))
  }
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
    listVersions(bucket, query) {
      const grant = grants.find(bucket, undefined, ['s3:listbucketversions'])
      return either(grant && query.prefix.startsWith(grant.prefix ?? '') ? grant : undefined).listVersions(
        bucket,
        query,
      )
    },

    async stat(bucket, key, ref, onMarker, known) {
      const grant = await toLookAt(bucket, key, ref)
      if (!grant) return base.stat(bucket, key, ref, onMarker, known)
      const object = await gatewayOf(grant)
        .stat(bucket, key, ref, onMarker, known)
        .catch((error) => hidden(error, grant))
      if (object && (await grant.holdsFor?.(object)) === false) throw new S3Error('AccessDenied')
      if (object) grants.see(object.revision, grant)
      else await requireMayList(grant)
      return object
    },
    async download(bucket, key, range, ref, known) {
      const grant = await toLookAt(bucket, key, ref)
      if (!grant) return base.download(bucket, key, range, ref, known)
      const download = await gatewayOf(grant)
        .download(bucket, key, range, ref, known)
        .catch((error) => hidden(error, grant))
      try {
        if ((await grant.holdsFor?.(download.object)) === false) throw new S3Error('AccessDenied')
        grants.see(download.object.revision, grant)
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
    requireLockable: (bucket, key) => either(grants.find(bucket, key, WRITES)).requireLockable(bucket, key),
    async remove(bucket, key, order, version) {
      if (!version) {
        const grant =
          grants.find(bucket, key, REMOVES) ?? (await onlyVersion(grants.find(bucket, key, REMOVES_VERSION, NULL)))
        return either(grant).remove(bucket, key, order)
      }
      const { id, bypass } = version
      const grant = grants.find(bucket, key, REMOVES_VERSION, id)
      const passes = bypass && grants.find(bucket, key, BYPASSES, id) !== undefined
      return either(grant).remove(bucket, key, order, grant ? { id, bypass: passes } : version)
    },
    async keepRecord(bucket, key, record) {
      const find = (versionId: string | undefined) => grants.find(bucket, key, KEEPS, versionId)
      return either(find(undefined) ?? grants.ofSeen(record.revision, find)).keepRecord(bucket, key, record)
    },
    async setLock(bucket, key, ref, change, bypass) {
      const versionId = ref && ('id' in ref ? ref.id : undefined)
      const needed = [
        ...(change.retention === undefined ? [] : ['s3:putobjectretention']),
        ...(change.hold === undefined ? [] : ['s3:putobjectlegalhold']),
        ...(bypass ? BYPASSES : []),
      ]
      const found = needed.map((action) => grants.find(bucket, key, [action], versionId))
      const grant = found.every((one) => one !== undefined) ? found[0] : undefined
      return either(grant).setLock(bucket, key, ref, change, bypass)
    },
  })
}

/** The id of the version of a bucket that was never versioned. */
const NULL = 'null'

/** A grant for the version `null` is one for the object where the gateway has no other version of it. */
async function onlyVersion(grant: Grant | undefined): Promise<Grant | undefined> {
  return grant && !(await grant.gateway.features()).versions ? grant : undefined
}

/** Throws the error, or AccessDenied where it would tell a caller who may not list what is there. */
async function hidden(error: unknown, grant: Grant): Promise<never> {
  if (error instanceof S3Error && MISSING.includes(error.code)) await requireMayList(grant)
  throw error
}

const MISSING: readonly string[] = ['NoSuchKey', 'NoSuchVersion']

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
    requireKey: (bucket, key, access) => unless(grants.onKey(bucket, key), () => base.requireKey(bucket, key, access)),
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
export type OwnerGateway = (owned: BucketOwner) => Promise<Gateway | undefined>

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
