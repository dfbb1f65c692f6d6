import { blake2b } from '@noble/hashes/blake2.js'
import { base32 } from 'multiformats/bases/base32'

/** Addresses as Filecoin has them, in its test networks' form, which starts with `t` (https://spec.filecoin.io/#section-appendix.address). */

const ID = 0
const SECP256K1 = 1

/** Bytes of the hash of a public key, and of the checksum behind it in the text. */
const KEY_HASH = 20
const CHECKSUM = 4

/** Largest number that an actor can have. */
const MAX_ID = 2n ** 63n - 1n

/** Bytes of the address that belongs to an uncompressed public key, 65 bytes. */
export function addressOfKey(publicKey: Uint8Array): Uint8Array {
  return Uint8Array.of(SECP256K1, ...blake2b(publicKey, { dkLen: KEY_HASH }))
}

/** Bytes of the address of a storage provider, such as `t01000`. Throws RangeError when the text is none. */
export function addressOfMiner(minerId: string): Uint8Array {
  const digits = /^t0(0|[1-9]\d{0,18})$/.exec(minerId)?.[1]
  if (digits === undefined || BigInt(digits) > MAX_ID) {
    throw new RangeError(`"${minerId}" is not the id of a storage provider, such as t01000.`)
  }
  return Uint8Array.of(ID, ...leb128(BigInt(digits)))
}

/** Text of an address that one of the other two functions made. Throws RangeError when the bytes are no such address. */
export function addressText(address: Uint8Array): string {
  const [protocol] = address
  const payload = address.subarray(1)
  if (protocol === ID && payload.length > 0) return `t0${fromLeb128(payload)}`
  if (protocol === SECP256K1 && payload.length === KEY_HASH) {
    return `t1${base32.baseEncode(Uint8Array.of(...payload, ...blake2b(address, { dkLen: CHECKSUM })))}`
  }
  throw new RangeError('These bytes are neither the address of a secp256k1 key nor that of an actor.')
}

function leb128(value: bigint): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return bytes
}

function fromLeb128(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 7n) | BigInt(byte & 0x7f), 0n)
}
