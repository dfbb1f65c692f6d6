import { S3Error } from '../errors/s3-error.js'
import type { BucketSettings } from '../state/bucket-settings.js'

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_PublicAccessBlockConfiguration.html, in the order of its schema. */
export const BLOCKS = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets'] as const

export type PublicAccessBlock = Readonly<Record<(typeof BLOCKS)[number], boolean>>

declare module '../state/bucket-settings.js' {
  interface SettingTypes {
    publicAccessBlock: PublicAccessBlock
  }
}

/** Throws AccessDenied for an anonymous request where RestrictPublicBuckets is on, whatever the gateway would say. */
export async function refuseRestricted(
  settings: BucketSettings,
  { bucket }: { readonly bucket: string | undefined },
): Promise<void> {
  if (bucket === undefined) return
  const block = await settings.get(bucket, 'publicAccessBlock')
  if (block?.RestrictPublicBuckets) throw new S3Error('AccessDenied')
}

/**
 * Throws AccessDenied when the bucket is not to have a public policy, and every policy that can be stored is one. RestrictPublicBuckets says the same here: the
 * gateway itself would serve everybody what the policy grants, past this server.
 */
export async function requirePolicyAllowed(settings: BucketSettings, bucket: string): Promise<void> {
  const block = await settings.confirmed(bucket, 'publicAccessBlock')
  for (const name of ['BlockPublicPolicy', 'RestrictPublicBuckets'] as const) {
    if (!block?.[name]) continue
    throw new S3Error('AccessDenied', {
      message: `The bucket's public access block has ${name}: it may have no policy for everybody. Remove the block with DeletePublicAccessBlock first.`,
    })
  }
}
