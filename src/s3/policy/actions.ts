export { actionsOf, type KnownAction } from '../../access/decision/language/actions.js'

/** The S3 policy actions that a rule of the gateway grants. */
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
/** Granted by every rule of the gateway (minio-go pkg/policy/bucket-policy.go, `commonBucketActions`). */
export const LOCATION_ACTION = 's3:GetBucketLocation'

/** Actions that equal another action if objects have only one version. */
export const TWINS: Readonly<Record<string, string>> = {
  's3:GetObjectVersion': 's3:GetObject',
  's3:DeleteObjectVersion': 's3:DeleteObject',
  's3:ListBucketVersions': LIST_ACTION,
}
