import { createHash } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { CustomerKey, Encrypted } from '../../api/encryption.js'
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
function traceOf({ key }: Pick<CustomerKey, 'key'>): string {
  return createHash('sha256').update(key).digest('hex')
}

/** Where an object is: a header opens only there. */
export interface ObjectName {
  readonly bucket: string
  readonly key: string
}

/** The text that a header is made for: the place of the object, and the key of the client. */
export function textOf({ bucket, key }: ObjectName, customer?: CustomerKey): string {
  // Bucket names have no line breaks.
  return customer ? `${traceOf(customer)}\n${bucket}\n${key}` : `${bucket}\n${key}`
}

/** Throws S3Error if a request has a key of a client for an object without one, or the other way round. */
export function requireApplicable(encrypted: Encrypted | undefined, customer: CustomerKey | undefined): void {
  const needs = encrypted?.algorithm === 'SSE-C'
  if (needs !== (customer !== undefined))
    throw new S3Error('InvalidRequest', { message: needs ? KEY_NEEDED : NOT_APPLICABLE })
}

const KEY_NEEDED =
  'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.'
/** Message about a key of a client for an object that is not encrypted with one. */
export const NOT_APPLICABLE = 'The encryption parameters are not applicable to this object.'
