import type { Policy } from '../../access/policy.js'
import type { Context } from '../../api/context.js'
import type { PolicyEntry } from '../../api/gateway.js'
import { fromAccess } from './policy-entries.js'
import {
  confirmedBlock,
  isPublicBucket,
  notRemovable,
  type PublicAccess,
  readPublicAccess,
  requirePolicyAllowed,
} from './public-access-block.js'

/**
 * Returns the policy of the bucket; undefined if it has none. Where the gateway has the rules of the document, the
 * rules are authoritative: if other programs have changed them, the document is derived from them. A document that the
 * gateway cannot express is decided on here; what the gateway opens in addition is added to it.
 */
export async function readPolicy(context: Context, bucket: string): Promise<string | undefined> {
  const present = await readPublicAccess(context, bucket)
  const record = await context.settings.confirmed(bucket, 'policy')
  if (record && record.entries.length === 0) return withRules(record.document, present, bucket)
  if (!isPublicBucket(present)) return undefined
  const isRecorded = present.hidden.length === 0 && record && isSame(record.entries, present.entries)
  return isRecorded ? record.document : fromAccess(present, bucket)
}

function withRules(document: string, present: PublicAccess, bucket: string): string {
  if (!isPublicBucket(present)) return document
  const policy = JSON.parse(document) as { Statement: unknown }
  const { Statement } = JSON.parse(fromAccess(present, bucket)) as { Statement: unknown[] }
  return JSON.stringify({ ...policy, Statement: [policy.Statement, Statement].flat() })
}

/** A policy to store. */
interface NewPolicy {
  readonly document: string
  readonly parsed: Policy
  /** Rules of the gateway that grant exactly the same; empty where none do. */
  readonly entries: readonly PolicyEntry[]
}

/**
 * Replaces the policy of the bucket, and the rules of the gateway for everybody. New rules are set first, then old ones
 * are removed, so that at no moment more is allowed than by the old and new rules together. Throws NotImplemented,
 * naming them, if other rules remain: some gateways report that a rule was removed, but keep it.
 * @param policy undefined to remove it
 */
export async function replacePolicy(context: Context, bucket: string, policy: NewPolicy | undefined): Promise<void> {
  const { gateway, settings, state, authorizer } = context
  const run = async () => {
    let entries = policy?.entries ?? []
    if (policy) {
      const block = await confirmedBlock(context, bucket)
      requirePolicyAllowed(block, policy.parsed)
      // The gateway itself would serve everybody what the policy grants.
      if (block?.RestrictPublicBuckets) entries = []
    }
    const old = await gateway.listPolicies(bucket)
    for (const entry of entries) {
      if (!old.some((one) => isEqual(one, entry))) await gateway.setPolicy(bucket, entry.prefix, entry.policy)
    }
    const left = await removeOthers(context, bucket, entries, old)
    if (policy)
      await settings.set(bucket, 'policy', {
        document: policy.document,
        entries,
        ...(await authorizer.ownerOf(bucket)),
      })
    else await settings.delete(bucket, 'policy')
    if (isPublicBucket(left)) throw notRemovable(left)
  }
  await state.locks.withName(`bucket-policy/${bucket}`, run, { logger: context })
}

/** Removes the rules other than `wanted`. Resolves with those that remain nevertheless. */
async function removeOthers(
  { gateway }: Pick<Context, 'gateway'>,
  bucket: string,
  wanted: readonly PolicyEntry[],
  old: readonly PolicyEntry[],
): Promise<PublicAccess> {
  const isWanted = (prefix: string) => wanted.some((entry) => entry.prefix === prefix)
  const remove = async (prefixes: readonly string[]) => {
    for (const prefix of new Set(prefixes)) if (!isWanted(prefix)) await gateway.setPolicy(bucket, prefix, 'none')
  }
  const look = async (): Promise<PublicAccess> => {
    const entries = await gateway.listPolicies(bucket)
    const others = entries.filter((one) => !wanted.some((entry) => isEqual(entry, one)))
    return { entries: others, hidden: await gateway.hiddenAccess(bucket, entries) }
  }
  await remove(old.map(({ prefix }) => prefix))
  const left = await look()
  if (!isPublicBucket(left)) return left
  // A gateway may list the prefix of a rule without its final `*`, but accept only the prefix with it.
  const starred = left.entries.filter(({ prefix }) => !isWanted(prefix)).map(({ prefix }) => `${prefix}*`)
  await remove([...starred, ...left.hidden.map(({ prefix }) => prefix)])
  return look()
}

/** Compares two lists that are sorted by the bytes of the prefix. */
function isSame(one: readonly PolicyEntry[], other: readonly PolicyEntry[]): boolean {
  return one.length === other.length && one.every((entry, i) => isEqual(entry, other[i]))
}

function isEqual(one: PolicyEntry, other: PolicyEntry | undefined): boolean {
  return one.prefix === other?.prefix && one.policy === other.policy
}
