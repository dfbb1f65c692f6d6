import { createHash } from 'node:crypto'
import type { CustomerKey } from '../../api/encryption.js'

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

const CHARACTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

/** https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki, in lower case, without its limit of length */
function bech32(prefix: string, bytes: Uint8Array): string {
  const values: number[] = []
  let held = 0
  let bits = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) values.push((held >> (bits - 5)) & 31)
    held &= (1 << bits) - 1
  }
  if (bits > 0) values.push((held << (5 - bits)) & 31)
  const letters = [...prefix].map((letter) => letter.charCodeAt(0))
  const head = [...letters.map((code) => code >> 5), 0, ...letters.map((code) => code & 31)]
  const check = checksum([...head, ...values, 0, 0, 0, 0, 0, 0]) ^ 1
  const all = [...values, ...[25, 20, 15, 10, 5, 0].map((shift) => (check >> shift) & 31)]
  return `${prefix}1${all.map((value) => CHARACTERS[value]).join('')}`
}

const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]

function checksum(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    for (const [i, generator] of GENERATORS.entries()) if ((top >> i) & 1) sum ^= generator
  }
  return sum
}
