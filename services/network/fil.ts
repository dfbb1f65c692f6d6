import { blake2b } from '@noble/hashes/blake2.js'
import { base32 } from 'multiformats/bases/base32'
import { base58btc } from 'multiformats/bases/base58'
import { formatDecimal } from '../../common/decimal.js'

/** Amounts in attoFIL, 10^-18 FIL, and their texts. */

const DECIMALS = 18
const GIB = 2n ** 30n

/** The total supply of FIL has no more digits (https://spec.filecoin.io/#section-systems.filecoin_token: 2 * 10^9). */
const DECIMAL = /^\d{1,10}(?:\.(\d{1,18}))?$/

export function parseFil(text: string): bigint | undefined {
  const match = DECIMAL.exec(text)
  if (match === null) return undefined
  const [whole = ''] = text.split('.')
  return BigInt(whole + (match[1] ?? '').padEnd(DECIMALS, '0'))
}

/** Formats attoFIL as the shortest decimal text in FIL. */
export function formatFil(attoFil: bigint): string {
  return formatDecimal(attoFil, DECIMALS)
}

/** Price of a piece per epoch at a price per GiB and epoch, rounded up. Prices in attoFIL, size in bytes. */
export function priceOfPiece(pricePerGiB: bigint, pieceSize: number): bigint {
  return (pricePerGiB * BigInt(pieceSize) + GIB - 1n) / GIB
}

/**
 * Encodes Filecoin's `BigInt`: empty for zero, else a zero byte as the sign and the big-endian magnitude
 * (https://spec.filecoin.io/#section-appendix.data_structures).
 */
export function tokenBytes(amount: bigint): Uint8Array {
  if (amount < 0n) throw new RangeError('An amount in a deal is never negative.')
  if (amount === 0n) return new Uint8Array()
  const hex = amount.toString(16)
  return Uint8Array.of(0, ...Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex'))
}

/**
 * Filecoin addresses in the form of its test networks, which starts with `t`
 * (https://spec.filecoin.io/#section-appendix.address).
 */

const ID = 0
const SECP256K1 = 1
const ACTOR = 2

/**
 * A libp2p peer id in base58: an Ed25519 or secp256k1 key itself, or the SHA-256 of another key
 * (https://github.com/libp2p/specs/blob/master/peer-ids/peer-ids.md).
 */
const PEER_ID = /^(?:12D3Koo|16Uiu2|Qm)[1-9A-HJ-NP-Za-km-z]{40,50}$/

/** Bytes of the hash in an address, and of the checksum behind it in the text. */
const HASH = 20
const CHECKSUM = 4

/** The largest id of an actor. */
const MAX_ID = 2n ** 63n - 1n

/** Address bytes of an uncompressed public key of 65 bytes. */
export function addressOfKey(publicKey: Uint8Array): Uint8Array {
  return Uint8Array.of(SECP256K1, ...blake2b(publicKey, { dkLen: HASH }))
}

/**
 * Address bytes of a storage provider, such as `t01000`. A libp2p peer that is not an actor, such as `12D3Koo...`, gets
 * an address in the form of an actor's, which is a hash: here that of the bytes of its peer id. Throws RangeError when
 * the text is neither.
 */
export function addressOfMiner(minerId: string): Uint8Array {
  if (PEER_ID.test(minerId)) return Uint8Array.of(ACTOR, ...blake2b(base58btc.baseDecode(minerId), { dkLen: HASH }))
  const digits = /^t0(0|[1-9]\d{0,18})$/.exec(minerId)?.[1]
  if (digits === undefined || BigInt(digits) > MAX_ID) {
    throw new RangeError(`"${minerId}" is not the id of a storage provider, such as t01000.`)
  }
  return Uint8Array.of(ID, ...leb128(BigInt(digits)))
}

/**
 * Text of an address that one of the other two functions returned. Throws RangeError when the bytes are not such an
 * address.
 */
export function addressText(address: Uint8Array): string {
  const [protocol] = address
  const payload = address.subarray(1)
  if (protocol === ID && payload.length > 0) return `t0${fromLeb128(payload)}`
  if ((protocol === SECP256K1 || protocol === ACTOR) && payload.length === HASH) {
    return `t${protocol}${base32.baseEncode(Uint8Array.of(...payload, ...blake2b(address, { dkLen: CHECKSUM })))}`
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
