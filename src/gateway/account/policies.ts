import type { PolicyEntry, PublicPolicy } from '../../api/gateway.js'
import { compareUtf8 } from '../../common/byte-order.js'
import { isRecord } from '../../common/json.js'
import { nonsense } from '../errors.js'
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
