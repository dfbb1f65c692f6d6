import { S3Error } from '../errors/s3-error.js'

/** Throws NotImplemented for the settings under which ACLs count, InvalidArgument for what is no setting. */
export function requireOwnerEnforced(ownership: string): void {
  if (ownership === 'BucketOwnerEnforced') return
  if (ownership === 'BucketOwnerPreferred' || ownership === 'ObjectWriter') {
    throw new S3Error('NotImplemented', {
      message: `Object ownership ${ownership} lets ACLs count, which the gateway does not have. It is always BucketOwnerEnforced.`,
      fields: { ArgumentName: 'ObjectOwnership' },
    })
  }
  throw new S3Error('InvalidArgument', {
    message: 'Object ownership is BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter.',
    fields: { ArgumentName: 'ObjectOwnership', ArgumentValue: ownership.slice(0, 100) },
  })
}
