import { z } from 'zod'
import { uriEncode } from '../../../common/sigv4.js'
import { isAllowed } from '../access/access.js'
import { MAX_EXPIRY, shareQuery } from '../access/share-link.js'
import { GatewayError } from '../errors.js'
import { defineSignedMethod } from './method.js'
import { text } from './params.js'

/**
 * Returns a link, without its scheme, that gives the account's read access to the object without credentials. Checks
 * neither the existence of the object nor the host.
 */
export const presignedGet = defineSignedMethod({
  name: 'web.PresignedGet',
  params: z.object({ host: text, bucket: text, object: text, expiry: z.int().nullish() }),
  run({ host, bucket, object, expiry }, { context, account }) {
    if (bucket === '' || object === '') throw new GatewayError('ShareNeedsNames')
    if (!isAllowed(context.policies, account, 'get', context.buckets.find(bucket), object)) {
      throw new GatewayError('ShareNotPermitted')
    }
    const plain = `/${bucket}/${object}`
    const path = uriEncode(context.quirks.has('strict-keys') ? clean(plain) : plain, true)
    const seconds = expiry != null && expiry > 0 && expiry < MAX_EXPIRY ? expiry : MAX_EXPIRY
    const query = shareQuery(context, account, { path, host, expires: seconds, now: new Date() })
    return { url: `${host}${path}?${query}` }
  },
})

/** As Go's path.Clean does with a path without dots. */
function clean(path: string): string {
  return path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
}
