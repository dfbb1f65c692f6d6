import { choice } from './kinds.js'

/** Object ownership of a bucket; BucketOwnerEnforced disables ACLs. */
export const ownership = choice('BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter')
