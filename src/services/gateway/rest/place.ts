import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { decode, splitFirst } from '../http/target.js'

/** Bucket and key from a path. */
export interface Place {
  readonly bucket: string
  readonly key: Buffer
}

/**
 * Parses `<bucket>/<key>`, percent-encoded. Decodes the key once and does not change it otherwise. Throws GatewayError
 * unless the key is UTF-8 of 1 to 1024 bytes.
 */
export function parsePlace({ limits }: GatewayContext, path: string): Place {
  const [bucket, rest] = splitFirst(path)
  const key = decode(rest)
  if (key.length === 0) throw new GatewayError('InvalidArguments')
  if (key.length > limits.maxKeyBytes) throw new GatewayError('KeyTooLong')
  return { bucket: decode(bucket).toString(), key }
}
