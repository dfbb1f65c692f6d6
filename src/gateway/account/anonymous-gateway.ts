import { S3Error } from '../../../common/errors/s3-error.js'
import type { Gateway, Upload } from '../../api/gateway.js'
import type { GatewayClient } from '../client.js'
import { whyUnfit } from '../keys.js'
import { scanLevel } from '../listing/level-reader.js'
import { listPaged } from '../listing/listing.js'
import { download } from '../objects/download.js'
import { openUpload } from '../objects/open-upload.js'
import { remove } from '../objects/remove.js'
import { stat } from '../objects/stat.js'
import { wrapGateway } from '../wrap-gateway.js'
import { allows, type PublicAction } from './policies.js'
import { refusable } from './session.js'

/**
 * The gateway as a caller without a log-in sees it. This code never decides whether the caller may read, write or list:
 * it asks the gateway without a log-in. Where the gateway is not asked, or its answer is ambiguous, its list of
 * policies decides. An allowed request may need further lookups (a flat listing on a gateway that lists one level at a
 * time, or facts of an object that only a listing has); these use the account's log-in.
 * @param client with `account`
 */
export function anonymousGateway(client: GatewayClient, account: Gateway): Gateway {
  async function requireAllowed(bucket: string, action: PublicAction, name: string): Promise<void> {
    if (!allows(await account.listPolicies(bucket), action, name)) throw new S3Error('AccessDenied')
  }

  async function requireListing(bucket: string, prefix: string): Promise<void> {
    // The gateway answers with an empty list to a caller who may write but not list.
    if (!(await findsAny(bucket, prefix))) await requireAllowed(bucket, 'list', prefix)
  }

  async function findsAny(bucket: string, prefix: string): Promise<boolean> {
    if ((await account.features()).pagedListing) {
      const first = await listPaged(client.session, bucket, { prefix, delimiter: '', after: '', limit: 1 })
      return first.entries.length > 0
    }
    let any = false
    await scanLevel(client, bucket, prefix, () => {
      any = true
      return false
    })
    return any
  }

  const denied = (): never => {
    throw new S3Error('AccessDenied')
  }
  return wrapGateway(denied, {
    features: () => account.features(),
    refusesKey: (key) => account.refusesKey(key),
    ready: () => account.ready(),
    uploadQuota: async () => undefined,
    async bucketExists(bucket) {
      await requireListing(bucket, '')
      return true
    },
    async list(bucket, query) {
      await requireListing(bucket, query.prefix)
      return account.list(bucket, query)
    },
    stat: (bucket, key, ref, onMarker, known) =>
      refusable(async () => stat(client, await account.features(), bucket, key, ref, onMarker, known)),
    download: (bucket, key, range, ref, known) =>
      refusable(async () => download(client, await account.features(), bucket, key, range, ref, known)),
    upload: (bucket, key, length, attributes) => refusableUpload(openUpload(client, bucket, key, length, attributes)),
    async remove(bucket, key, order, version) {
      const features = await account.features()
      // `remove` may skip such a key without asking the gateway.
      if (key.endsWith('/') || (!features.anyKey && whyUnfit(key) !== undefined))
        await requireAllowed(bucket, 'delete', key)
      return refusable(() => remove(client, features, bucket, key, order, version))
    },
  })
}

function refusableUpload(upload: Upload): Upload {
  return {
    write(chunk, release) {
      const waiting = upload.write(chunk, release)
      return waiting && refusable(() => waiting)
    },
    commit: (order) => refusable(() => upload.commit(order)),
    get unsent() {
      return upload.unsent
    },
    abort: () => upload.abort(),
  }
}
