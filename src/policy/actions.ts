/** What a rule of the gateway is made of, by the words of S3's policies. */
export const READ_ACTIONS = ['s3:GetObject'] as const
export const WRITE_ACTIONS = [
  's3:AbortMultipartUpload',
  's3:DeleteObject',
  's3:ListMultipartUploadParts',
  's3:PutObject',
] as const
export type ObjectAction = (typeof READ_ACTIONS)[number] | (typeof WRITE_ACTIONS)[number]
export const LIST_ACTION = 's3:ListBucket'
export const UPLOADS_ACTION = 's3:ListBucketMultipartUploads'
/** Goes with every rule of the gateway (minio-go pkg/policy/bucket-policy.go, `commonBucketActions`). */
export const LOCATION_ACTION = 's3:GetBucketLocation'

/** Actions that mean the same as another where no object has more than one version. */
export const TWINS: Readonly<Record<string, string>> = {
  's3:GetObjectVersion': 's3:GetObject',
  's3:DeleteObjectVersion': 's3:DeleteObject',
  's3:ListBucketVersions': LIST_ACTION,
}

const words = (text: string): string[] => text.trim().split(/\s+/)

/** https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html, those on objects and on buckets. */
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

export interface KnownAction {
  /** As S3 spells it, with `s3:`. */
  readonly name: string
  readonly on: 'object' | 'bucket'
}

const known: readonly KnownAction[] = [
  ...onObjects.map((name) => ({ name: `s3:${name}`, on: 'object' as const })),
  ...onBuckets.map((name) => ({ name: `s3:${name}`, on: 'bucket' as const })),
]

/** The actions that a word of a policy stands for, without regard to case; `*` is any text and `?` any character. None: there is no such action. */
export function actionsOf(word: string): readonly KnownAction[] {
  const pattern = word.toLowerCase()
  return known.filter(({ name }) => matches(pattern, name.toLowerCase()))
}

/** In a time of at most the product of the lengths, which a regular expression made of the pattern would not promise. */
function matches(pattern: string, text: string): boolean {
  let p = 0
  let at = 0
  let star = -1
  let resume = 0
  while (at < text.length) {
    if (pattern[p] === '*') {
      star = p++
      resume = at
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[at])) {
      p++
      at++
    } else if (star >= 0) {
      p = star + 1
      at = ++resume
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
