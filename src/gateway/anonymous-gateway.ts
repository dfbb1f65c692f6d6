import { S3Error } from '../errors/s3-error.js'
import type { Gateway, Upload } from './gateway.js'
import { whyUnfit } from './keys.js'
import { scanLevel } from './level-reader.js'
import { upload } from './object-upload.js'
import { listPaged } from './paged-listing.js'
import { allows, type PublicAction } from './policies.js'
import { remove } from './remove.js'
import { download } from './rest-download.js'
import { refusable } from './session.js'
import { stat } from './stat.js'
import type { Tools } from './tools.js'

/**
 * The gateway as somebody without log-in sees it. Whether he may read, write or list is never decided here: the gateway is asked without a log-in, and where
 * it is not asked at all, or its answer could mean both, its list of policies decides. What it lets him do may then need more to be done well (a flat
 * listing of a gateway that lists one level at a time, the facts of an object that only a listing tells): that is done with the account's log-in.
 * @param tools with `own`
 */
export function anonymousGateway(tools: Tools, account: Gateway): Gateway {
  const denied = () => Promise.reject(new S3Error('AccessDenied'))

  async function requireAllowed(bucket: string, action: PublicAction, name: string): Promise<void> {
    if (!allows(await account.listPolicies(bucket), action, name)) throw new S3Error('AccessDenied')
  }

  async function requireListing(bucket: string, prefix: string): Promise<void> {
    // To somebody who may write and not list, the gateway answers an empty list.
    if (!(await findsAny(bucket, prefix))) await requireAllowed(bucket, 'list', prefix)
  }

  async function findsAny(bucket: string, prefix: string): Promise<boolean> {
    if ((await account.features()).pagedListing) {
      const first = await listPaged(tools.session, bucket, { prefix, delimiter: '', after: '', limit: 1 })
      return first.length > 0
    }
    let any = false
    await scanLevel(tools, bucket, prefix, () => {
      any = true
      return false
    })
    return any
  }

  return {
    features: () => account.features(),
    refusesKey: (key) => account.refusesKey(key),
    ready: () => account.ready(),

    async bucketExists(bucket) {
      await requireListing(bucket, '')
      return true
    },
    async list(bucket, query) {
      await requireListing(bucket, query.prefix)
      return account.list(bucket, query)
    },
    stat: (bucket, key) => refusable(async () => stat(tools, await account.features(), bucket, key)),
    download: (bucket, key, range) =>
      refusable(async () => download(tools, await account.features(), bucket, key, range)),
    upload: (bucket, key, length, attributes) => refusableUpload(upload(tools, bucket, key, length, attributes)),
    async remove(bucket, key) {
      const features = await account.features()
      // Such a key may be passed over without the gateway being asked.
      if (key.endsWith('/') || (!features.anyKey && whyUnfit(key) !== undefined))
        await requireAllowed(bucket, 'delete', key)
      await refusable(() => remove(tools, features, bucket, key))
    },

    listBuckets: denied,
    makeBucket: denied,
    deleteBucket: denied,
    listPolicies: denied,
    setPolicy: denied,
    presignedGet: denied,
    call: denied,
  }
}

function refusableUpload(upload: Upload): Upload {
  return {
    write(chunk) {
      const waiting = upload.write(chunk)
      return waiting && refusable(() => waiting)
    },
    commit: () => refusable(() => upload.commit()),
    abort: () => upload.abort(),
  }
}
