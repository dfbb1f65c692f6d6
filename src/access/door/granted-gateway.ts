import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway, ListQuery } from '../../gateway/gateway.js'
import { restrictGateway } from '../restrict-gateway.js'
import type { Access, Rights } from '../rights.js'
import { type Grant, type Grants, isAbout, requireMayList } from './grants.js'

const LISTS = ['s3:listbucket', 's3:listbucketversions']
const CHANGES_RULES = ['s3:putbucketpolicy', 's3:deletebucketpolicy', 's3:putbucketpublicaccessblock']
const WRITES = ['s3:putobject']
const REMOVES = ['s3:deleteobject']

export interface GrantedOptions {
  /** The rights of the caller's key pair, which no grant to its account widens; absent for all rights. */
  readonly rights?: Rights | undefined
  /** The right that looking at a key needs: write for look-ups that precede a write or a removal. */
  readonly look: Access
}

/**
 * The gateway of a caller, with the account of the bucket's owner for exactly what the caller was granted. Everything
 * else is asked with the caller's own account. Every method is listed by name, so that a method added to Gateway does
 * not compile until it is decided.
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
  const ofBucket = (bucket: string, actions?: readonly string[]) =>
    either(actions ? grants.find(bucket, undefined, actions) : grants.inBucket(bucket))

  return {
    features: () => base.features(),
    refusesKey: (key) => base.refusesKey(key),
    ready: () => base.ready(),
    listBuckets: () => base.listBuckets(),
    makeBucket: (bucket) => base.makeBucket(bucket),
    bucketExists: (bucket) => ofBucket(bucket).bucketExists(bucket),
    deleteBucket: (bucket) => ofBucket(bucket, ['s3:deletebucket']).deleteBucket(bucket),
    list: (bucket, query) => listing(bucket, query).list(bucket, query),

    async stat(bucket, key) {
      const grant = toLookAt(bucket, key)
      if (!grant) return base.stat(bucket, key)
      const object = await gatewayOf(grant).stat(bucket, key)
      if (object && !isAbout(grant, object)) throw new S3Error('AccessDenied')
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
      if (isAbout(grant, download.object)) return download
      download.discard()
      throw new S3Error('AccessDenied')
    },
    upload(bucket, key, length, attributes) {
      const grant = grants.find(bucket, key, WRITES) ?? (length === 0 ? grants.removesBelow(bucket, key) : undefined)
      return either(grant).upload(bucket, key, length, attributes)
    },
    remove: (bucket, key, order) => either(grants.find(bucket, key, REMOVES)).remove(bucket, key, order),

    // The rules for everybody, which operations compare with what a client asks for.
    listPolicies: (bucket) => ofBucket(bucket).listPolicies(bucket),
    hiddenAccess: (bucket, entries, places) => ofBucket(bucket).hiddenAccess(bucket, entries, places),
    setPolicy: (bucket, prefix, policy) => ofBucket(bucket, CHANGES_RULES).setPolicy(bucket, prefix, policy),
    // A link would outlive the policy, and a call may spend: both are for the account itself.
    uploadQuota: () => base.uploadQuota(),
    presignedGet: (bucket, key, expirySeconds, host) => base.presignedGet(bucket, key, expirySeconds, host),
    call: (call) => base.call(call),
  }
}
