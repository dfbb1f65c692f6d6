import { randomBytes } from 'node:crypto'
import { compareUtf8 } from '../../../common/byte-order.js'
import { unless } from '../../../common/errors/s3-error.js'
import { isRecord } from '../../../common/json.js'
import type { HiddenAccess, PolicyEntry, PublicPolicy } from '../../api/gateway.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'
import { listLevel, scanLevel } from '../listing/level-reader.js'
import { isReadable } from '../objects/request-object.js'
import type { Session } from './session.js'

/** An action that a policy decides: `list` applies to a prefix, the others to a key. */
export type PublicAction = 'list' | 'get' | 'put' | 'delete'

const grants: Readonly<Record<PublicPolicy, readonly PublicAction[]>> = {
  readonly: ['list', 'get'],
  writeonly: ['put', 'delete'],
  readwrite: ['list', 'get', 'put', 'delete'],
}

/**
 * True when these rules allow everyone this action. A rule applies to every key that begins with its prefix; for
 * listing it applies only to exactly that prefix, or to any prefix where its own is empty (minio-go
 * pkg/policy/bucket-policy.go).
 */
export function allows(entries: readonly PolicyEntry[], action: PublicAction, name: string): boolean {
  return entries.some(({ prefix, policy }) => {
    if (!grants[policy].includes(action)) return false
    return action === 'list' ? prefix === '' || prefix === name : name.startsWith(prefix)
  })
}

/** See Gateway.listPolicies. Sorts the rules, because the gateway lists them in the order of a hash table. */
export async function listPolicies(session: Session, bucket: string): Promise<PolicyEntry[]> {
  const result = await session.call({
    method: 'web.ListAllBucketPolicies',
    params: { bucketName: bucket },
    subject: { bucket },
    repeatable: true,
  })
  // Go writes an empty list as `null`.
  const list = result.policies ?? []
  if (!Array.isArray(list)) throw nonsense('answered web.ListAllBucketPolicies without a list')
  return list.flatMap((entry: unknown) => readEntry(entry, bucket)).sort((a, b) => compareUtf8(a.prefix, b.prefix))
}

/** See Gateway.setPolicy. */
export async function setPolicy(
  session: Session,
  bucket: string,
  prefix: string,
  policy: PublicPolicy | 'none',
): Promise<void> {
  await session.call({
    method: 'web.SetBucketPolicy',
    params: { bucketName: bucket, prefix, policy },
    subject: { bucket },
    repeatable: true,
  })
}

function readEntry(entry: unknown, bucket: string): PolicyEntry[] {
  if (!isRecord(entry) || typeof entry.prefix !== 'string' || typeof entry.policy !== 'string') {
    throw nonsense('answered web.ListAllBucketPolicies with a rule that has no prefix or policy')
  }
  if (entry.policy === 'none') return []
  if (!isPolicy(entry.policy)) throw nonsense(`has a bucket policy of an unknown kind, "${entry.policy}"`)
  return [{ prefix: plainPrefix(entry.prefix, bucket), policy: entry.policy }]
}

/** Some versions answer with the resource of the rule, `bucket/prefix*`, instead of the prefix. */
function plainPrefix(prefix: string, bucket: string): string {
  if (!prefix.endsWith('*')) return prefix
  const name = prefix.slice(0, -1)
  return name.startsWith(`${bucket}/`) ? name.slice(bucket.length + 1) : name
}

function isPolicy(word: string): word is PublicPolicy {
  return Object.hasOwn(grants, word)
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
function isPermitted(ask: () => Promise<void>): Promise<boolean> {
  return unless(
    'AccessDenied',
    ask().then(() => true),
    false,
  )
}
