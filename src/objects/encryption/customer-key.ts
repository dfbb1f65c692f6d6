import { createHash } from 'node:crypto'
import type { CustomerKey } from '../../api/encryption.js'
import { bech32 } from './bech32.js'

/** Bytes of a key of a client. */
export const CUSTOMER_KEY_BYTES = 32

/** The identity of age that a key of a client is: any 32 bytes are one. */
export function identityOf({ key }: Pick<CustomerKey, 'key'>): string {
  return bech32('age-secret-key-', key).toUpperCase()
}

/**
 * A text that ties a header to all bits of the key: X25519 leaves five of them out. Only holders of the key of the file
 * see what it becomes there.
 */
export function traceOf({ key }: Pick<CustomerKey, 'key'>): string {
  return createHash('sha256').update(key).digest('hex')
}
