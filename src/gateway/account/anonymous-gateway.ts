import { randomBytes } from 'node:crypto'
import type { Gateway, HiddenAccess, PolicyEntry, Upload } from '../../api/gateway.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'
import { whyUnfit } from '../keys.js'
import { listLevel, scanLevel } from '../listing/level-reader.js'
import { listPaged } from '../listing/listing.js'
import { stat } from '../listing/look-up.js'
import { download } from '../objects/download.js'
import { isReadable } from '../objects/object-request.js'
import { remove } from '../objects/remove.js'
import { upload } from '../objects/upload.js'
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
      return first.length > 0
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
    stat: (bucket, key) => refusable(async () => stat(client, await account.features(), bucket, key)),
    download: (bucket, key, range) =>
      refusable(async () => download(client, await account.features(), bucket, key, range)),
    upload: (bucket, key, length, attributes) => refusableUpload(upload(client, bucket, key, length, attributes)),
    async remove(bucket, key, order) {
      const features = await account.features()
      // `remove` may skip such a key without asking the gateway.
      if (key.endsWith('/') || (!features.anyKey && whyUnfit(key) !== undefined))
        await requireAllowed(bucket, 'delete', key)
      await refusable(() => remove(client, features, bucket, key, order))
    },
  })
}

function refusableUpload(upload: Upload): Upload {
  return {
    write(chunk) {
      const waiting = upload.write(chunk)
      return waiting && refusable(() => waiting)
    },
    commit: (order) => refusable(() => upload.commit(order)),
    get unsent() {
      return upload.unsent
    },
    abort: () => upload.abort(),
  }
}

/** Most folders at the root of a bucket that are tried. */
const MAX_FOLDERS = 20

/** Most entries at the root of a bucket that are read to find these folders. */
const MAX_ENTRIES = 10_000

/**
 * See Gateway.hiddenAccess. Asks the gateway without a log-in to list each place and to read a key that no object has:
 * a caller who may read gets the answer that the object does not exist, any other caller is refused.
 * @param client with the account's log-in
 * @param anonymous without a log-in
 */
export async function hiddenAccess(
  client: GatewayClient,
  anonymous: GatewayClient,
  bucket: string,
  entries: readonly PolicyEntry[],
  places?: readonly string[],
): Promise<HiddenAccess[]> {
  const found: HiddenAccess[] = []
  for (const prefix of places ?? ['', ...(await foldersOf(client, bucket))]) {
    const isListed = allows(entries, 'list', prefix) || allows(entries, 'put', `${prefix}/`)
    if (!isListed && (await lists(anonymous, bucket, prefix))) found.push({ prefix, action: 'list' })
    const key = `${prefix}~dealgate-${randomBytes(8).toString('hex')}`
    if (!allows(entries, 'get', key) && (await reads(anonymous, bucket, key))) found.push({ prefix, action: 'get' })
  }
  return found
}

async function foldersOf(client: GatewayClient, bucket: string): Promise<string[]> {
  const folders: string[] = []
  let seen = 0
  await listLevel(client, bucket, '', ({ name, isPrefix }) => {
    if (isPrefix) folders.push(name)
    return ++seen < MAX_ENTRIES && folders.length < MAX_FOLDERS
  })
  return folders
}

function lists(anonymous: GatewayClient, bucket: string, prefix: string): Promise<boolean> {
  return isPermitted(() => scanLevel(anonymous, bucket, prefix, () => false))
}

function reads(anonymous: GatewayClient, bucket: string, key: string): Promise<boolean> {
  return isPermitted(async () => {
    if (await isReadable(anonymous, bucket, key)) throw nonsense('served an object that cannot exist')
  })
}

/** False when the gateway refuses a caller without a log-in. Throws S3Error when the answer is inconclusive. */
async function isPermitted(ask: () => Promise<void>): Promise<boolean> {
  try {
    await ask()
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}
