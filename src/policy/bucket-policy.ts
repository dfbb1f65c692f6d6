import type { Context } from '../context.js'
import type { PolicyEntry } from '../gateway/gateway.js'
import { requireBucket } from '../operations/common/buckets.js'
import { fromEntries } from './from-entries.js'
import { requirePolicyAllowed } from './public-access-block.js'

/** The document as it was put, with the rules it became: good for as long as the gateway has those. */
export interface PolicyRecord {
  readonly document: string
  readonly entries: readonly PolicyEntry[]
}

declare module '../state/bucket-settings.js' {
  interface SettingTypes {
    policy: PolicyRecord
  }
}

/** The policy of the bucket; undefined when it has none. The gateway's rules are what counts: where somebody else has changed them, the document is made from them. */
export async function readPolicy(context: Context, bucket: string): Promise<string | undefined> {
  const entries = await context.gateway.listPolicies(bucket)
  if (entries.length === 0) {
    await requireBucket(context, bucket)
    return undefined
  }
  const record = await context.settings.confirmed(bucket, 'policy')
  return record && isSame(record.entries, entries) ? record.document : fromEntries(entries, bucket)
}

/**
 * Makes these the rules of the bucket. At no moment is more allowed than by the old and the new ones together: new rules first, then those that are gone are taken away.
 * @param document what GetBucketPolicy is to answer; undefined when there will be no rules
 */
export async function replacePolicy(
  context: Context,
  bucket: string,
  entries: readonly PolicyEntry[],
  document: string | undefined,
): Promise<void> {
  const { gateway, settings, state } = context
  await state.locks.withName(`bucket-policy/${bucket}`, async () => {
    if (entries.length > 0) await requirePolicyAllowed(settings, bucket)
    const old = await gateway.listPolicies(bucket)
    for (const entry of entries) {
      if (!old.some((one) => one.prefix === entry.prefix && one.policy === entry.policy))
        await gateway.setPolicy(bucket, entry.prefix, entry.policy)
    }
    for (const { prefix } of old) {
      if (!entries.some((entry) => entry.prefix === prefix)) await gateway.setPolicy(bucket, prefix, 'none')
    }
    if (document === undefined) await settings.delete(bucket, 'policy')
    else await settings.set(bucket, 'policy', { document, entries })
  })
}

/** Both in byte order of the prefix. */
function isSame(one: readonly PolicyEntry[], other: readonly PolicyEntry[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ prefix, policy }, i) => other[i]?.prefix === prefix && other[i]?.policy === policy)
  )
}
