import type { Ownership } from '../../access/decision/decide.js'
import { S3Error } from '../../common/errors/s3-error.js'

const OWNERSHIPS: readonly Ownership[] = ['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter']

/** Throws InvalidArgument for an unknown object ownership. */
export function readOwnership(text: string, code: 'InvalidArgument' | 'MalformedXML' = 'InvalidArgument'): Ownership {
  const ownership = OWNERSHIPS.find((one) => one === text)
  if (ownership) return ownership
  throw new S3Error(code, {
    message: 'Object ownership is BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter.',
    fields: { ArgumentName: 'ObjectOwnership', ArgumentValue: text.slice(0, 100) },
  })
}
