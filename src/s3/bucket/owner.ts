import { S3Error } from '../../../common/errors/s3-error.js'
import { element } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { UploadRecord } from '../../api/uploads.js'
import { canonicalId, idOf, OWN_ID } from '../../auth/credentials.js'

/**
 * Returns the canonical user id of the owner of the caller's buckets, in AWS's form (64 hex digits): one per gateway
 * account, shared by all its key pairs. It is stable and reveals no secret.
 */
export function ownerId(context: Pick<Context, 'caller'>): string {
  return context.caller ? canonicalId(context.caller.identity) : OWN_ID
}

/** @param id canonical id; default the caller's */
export function ownerElement(context: Pick<Context, 'caller' | 'server'>, id = ownerId(context)): string {
  return person('Owner', id, context.server.accountName(id))
}

/** The owner of a bucket. Without documents, only its account can list it, or everybody by rules of the gateway. */
export async function bucketOwnerElement(context: Context, bucket: string): Promise<string> {
  return ownerElement(context, (await context.authorizer.documents(bucket))?.owner)
}

/** Initiator and owner of a multipart upload. The initiator is an account, or the key pair that is a user of it. */
export async function uploadOwners(upload: UploadRecord, context: Context): Promise<string> {
  const { accessKeyId, account, byUser, acl, bucket } = upload
  const initiator =
    account !== undefined && !byUser
      ? person('Initiator', account, context.server.accountName(account))
      : person('Initiator', idOf(accessKeyId || 'anonymous'), accessKeyId || 'anonymous')
  return initiator + (acl ? ownerElement(context, acl.owner) : await bucketOwnerElement(context, bucket))
}

function names(id: string, displayName: string | undefined): string {
  return element('ID', id) + element('DisplayName', displayName)
}

function person(name: string, id: string, displayName: string | undefined): string {
  return `<${name}>${names(id, displayName)}</${name}>`
}

/** Throws NoSuchBucket. */
export async function requireBucket(context: Context, bucket: string): Promise<void> {
  if (!(await context.gateway.bucketExists(bucket)))
    throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html. Throws InvalidBucketName. */
export function requireBucketName(bucket: string): void {
  const legal =
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) &&
    !/\.\.|\.-|-\./.test(bucket) &&
    !/^\d+\.\d+\.\d+\.\d+$/.test(bucket)
  if (legal) return
  throw new S3Error('InvalidBucketName', {
    message:
      'A bucket name has 3 to 63 lower-case letters, digits, dots and hyphens, begins and ends with a letter or digit, and is not an IP address.',
    fields: { BucketName: bucket },
  })
}

/**
 * Throws InvalidBucketName for a name that S3 keeps for itself, such as that of an access point: clients rewrite
 * requests to such a name. One that exists stays in use.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
export async function requireFreeName(bucket: string, { gateway }: Pick<Context, 'gateway'>): Promise<void> {
  const start = RESERVED_STARTS.find((text) => bucket.startsWith(text))
  const end = start ?? RESERVED_ENDS.find((text) => bucket.endsWith(text))
  if (end === undefined || (await gateway.bucketExists(bucket))) return
  throw new S3Error('InvalidBucketName', {
    message: `The name of a new bucket must not ${start === undefined ? 'end' : 'begin'} with ${end}, which S3 reserves.`,
    fields: { BucketName: bucket },
  })
}

const RESERVED_STARTS = ['xn--', 'sthree-', 'amzn-s3-demo-']
const RESERVED_ENDS = ['-s3alias', '--ol-s3', '.mrap', '--x-s3', '--table-s3']
