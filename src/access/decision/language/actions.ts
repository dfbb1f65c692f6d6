import { matchesTokens, tokensOf } from './wildcard.js'

const words = (text: string): string[] => text.trim().split(/\s+/)

/**
 * Actions on objects, on buckets and on neither:
 * https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
 */
const onObjects = words(`
  AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion DeleteObjectVersionTagging GetObject GetObjectAcl
  GetObjectAttributes GetObjectLegalHold GetObjectRetention GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl
  GetObjectVersionAttributes GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
  ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold PutObjectRetention PutObjectTagging
  PutObjectVersionAcl PutObjectVersionTagging ReplicateDelete ReplicateObject ReplicateTags RestoreObject UpdateObjectEncryption
`)
const onBuckets = words(`
  CreateBucket CreateBucketMetadataTableConfiguration DeleteBucket DeleteBucketMetadataTableConfiguration DeleteBucketPolicy DeleteBucketWebsite
  GetAccelerateConfiguration GetAnalyticsConfiguration GetBucketAbac GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging
  GetBucketMetadataTableConfiguration GetBucketNotification GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPolicy
  GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging GetBucketVersioning GetBucketWebsite
  GetEncryptionConfiguration GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration GetMetricsConfiguration
  GetReplicationConfiguration ListBucket ListBucketMultipartUploads ListBucketVersions PutAccelerateConfiguration PutAnalyticsConfiguration PutBucketAbac
  PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy
  PutBucketPublicAccessBlock PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
  PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration PutMetricsConfiguration PutReplicationConfiguration
`)
const onNothing = ['ListAllMyBuckets']

export interface KnownAction {
  /** Name as S3 spells it, with `s3:`. */
  readonly name: string
  readonly on: 'object' | 'bucket' | 'service'
}

const known: readonly KnownAction[] = [
  ...onObjects.map((name) => ({ name: `s3:${name}`, on: 'object' as const })),
  ...onBuckets.map((name) => ({ name: `s3:${name}`, on: 'bucket' as const })),
  ...onNothing.map((name) => ({ name: `s3:${name}`, on: 'service' as const })),
]

/** By their names in lower case. */
const byName: ReadonlyMap<string, KnownAction> = new Map(known.map((action) => [action.name.toLowerCase(), action]))

/**
 * Returns the actions of S3 that a pattern of a policy matches, ignoring case; `*` matches any text and `?` any
 * character. Empty for an unknown action.
 */
export function actionsOf(word: string): readonly KnownAction[] {
  const pattern = word.toLowerCase()
  if (!/[*?]/.test(pattern)) return [byName.get(pattern) ?? []].flat()
  const tokens = tokensOf(pattern)
  return [...byName].filter(([name]) => matchesTokens(tokens, name)).map(([, action]) => action)
}
