import { z } from 'zod'
import { uriEncode } from '../../../common/sigv4.js'
import { MAX_EXPIRY, shareQuery } from '../access/share-link.js'
import { GatewayError } from '../errors.js'
import { defineMethod } from './method.js'
import { text } from './params.js'

/** A link that anybody may read the object by, without its scheme. Neither the object's existence nor the host is looked at. */
export const presignedGet = defineMethod({
  name: 'web.PresignedGet',
  access: 'signed',
  params: z.object({ host: text, bucket: text, object: text, expiry: z.int().nullish() }),
  run({ host, bucket, object, expiry }, { context }) {
    if (bucket === '' || object === '') throw new GatewayError('ShareNeedsNames')
    const plain = `/${bucket}/${object}`
    const path = uriEncode(context.quirks.has('strict-keys') ? clean(plain) : plain, true)
    const seconds = expiry != null && expiry > 0 && expiry < MAX_EXPIRY ? expiry : MAX_EXPIRY
    return { url: `${host}${path}?${shareQuery(context, path, host, seconds, new Date())}` }
  },
})

/** As Go's path.Clean does to a path without dots. */
function clean(path: string): string {
  return path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
}
