import { randomBytes } from 'node:crypto'
import { S3Error } from '../../common/errors/s3-error.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'
import type { HiddenAccess, PolicyEntry } from '../gateway.js'
import { listLevel, scanLevel } from '../listing/level-reader.js'
import { isReadable } from '../objects/download/request-object.js'
import { allows } from './policies.js'

/** Most folders at the root of a bucket that are tried. */
const MAX_FOLDERS = 20
/** Most entries at the root of a bucket that are read to find these folders. */
const MAX_ENTRIES = 10_000

/**
 * See Gateway.hiddenAccess. Asks the gateway without a log-in to list each place and to read a key that no object has:
 * a caller who may read is told that the object does not exist, any other caller is refused.
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
  return isLetIn(() => scanLevel(anonymous, bucket, prefix, () => false))
}

function reads(anonymous: GatewayClient, bucket: string, key: string): Promise<boolean> {
  return isLetIn(async () => {
    if (await isReadable(anonymous, bucket, key)) throw nonsense('served an object that cannot exist')
  })
}

/** False when the gateway refuses a caller without a log-in. Throws S3Error when the answer is inconclusive. */
async function isLetIn(ask: () => Promise<void>): Promise<boolean> {
  try {
    await ask()
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}
