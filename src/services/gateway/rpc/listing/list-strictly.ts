import { GatewayError } from '../../errors.js'

/**
 * How a file system treats a prefix (MinIO cmd/object-api-input-checks.go). Throws GatewayError when the prefix is not
 * a path.
 */
export function listStrictly(bucket: string, prefix: string): 'nothing' | 'level' {
  if (prefix === '/') return 'nothing'
  const bad = prefix
    .split('/')
    .some((element, index, all) => element === '.' || element === '..' || (element === '' && index < all.length - 1))
  if (bad || prefix.includes('\\')) throw new GatewayError('InvalidListPrefix', { bucket, value: prefix })
  return 'level'
}
