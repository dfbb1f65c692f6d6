import { isPublic, type Policy } from '../../access/decision/policy.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { BucketSettings } from '../../state/records/bucket-settings.js'
import type { State } from '../../state/state.js'

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PublicAccessBlockConfiguration.html, in the order of its schema.
 */
export const BLOCKS = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets'] as const

export type PublicAccessBlock = Readonly<Record<(typeof BLOCKS)[number], boolean>>

declare module '../../state/records/setting-types.js' {
  interface SettingTypes {
    publicAccessBlock: PublicAccessBlock
  }
}

/** Throws AccessDenied for an anonymous request if RestrictPublicBuckets is on, even if the gateway would allow it. */
export async function refuseRestricted(
  settings: BucketSettings,
  { bucket }: { readonly bucket: string | undefined },
): Promise<void> {
  if (bucket === undefined) return
  const block = await settings.latest(bucket, 'publicAccessBlock')
  if (block?.RestrictPublicBuckets) throw new S3Error('AccessDenied')
}

/**
 * The block of the bucket, for checks before a policy or an ACL is stored. Throws S3Error ServiceUnavailable where the
 * store may have lost it. The store is examined after the read: one that loses its records in between would show no
 * block.
 */
export async function confirmedBlock(
  { settings, state }: { readonly settings: BucketSettings; readonly state: Pick<State, 'requireIntact'> },
  bucket: string,
): Promise<PublicAccessBlock | undefined> {
  const block = await settings.confirmed(bucket, 'publicAccessBlock')
  await state.requireIntact()
  return block
}

/** Throws AccessDenied while BlockPublicAcls forbids public ACLs. For ACLs that are public. */
export async function refusePublicAcl(context: Parameters<typeof confirmedBlock>[0], bucket: string): Promise<void> {
  const block = await confirmedBlock(context, bucket)
  if (!block?.BlockPublicAcls) return
  throw new S3Error('AccessDenied', {
    message: "The bucket's public access block has BlockPublicAcls: public ACLs are refused.",
  })
}

/** Throws AccessDenied for a public policy while BlockPublicPolicy forbids one. */
export function requirePolicyAllowed(block: PublicAccessBlock | undefined, policy: Policy): void {
  if (!block?.BlockPublicPolicy || !isPublic(policy)) return
  throw new S3Error('AccessDenied', {
    message:
      "The bucket's public access block has BlockPublicPolicy, which forbids policies for everybody. Remove the block with DeletePublicAccessBlock first.",
  })
}
