import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'

/** Bytes of the hash of a public key in an address. */
const HASH = 20

/**
 * A wallet address, `0x` and 40 hexadecimal digits, in lower case; undefined for any other text. The case is ignored:
 * some clients send the checksum of EIP-55 in it, others do not.
 */
export function parseAddress(text: string): string | undefined {
  return /^0x[0-9a-f]{40}$/i.test(text) ? text.toLowerCase() : undefined
}

/** @param publicKey uncompressed, 65 bytes */
export function addressOfKey(publicKey: Uint8Array): string {
  return `0x${Buffer.from(keccak_256(publicKey.subarray(1)).subarray(-HASH)).toString('hex')}`
}

/** An address that no key has, by a name: that of an account of the ledger. */
function addressOfName(name: string): string {
  return `0x${Buffer.from(keccak_256(Buffer.from(name)).subarray(-HASH)).toString('hex')}`
}

/** The address with the checksum of EIP-55 in the case of its letters (https://eips.ethereum.org/EIPS/eip-55). */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase()
  const hash = Buffer.from(keccak_256(Buffer.from(digits))).toString('hex')
  const cased = [...digits].map((digit, at) =>
    Number.parseInt(hash[at] ?? '0', 16) >= 8 ? digit.toUpperCase() : digit,
  )
  return `0x${cased.join('')}`
}

/** Addresses of the contract that holds locked payments, of what is earned, and of the stable coin. */
export interface PaymentAddresses {
  readonly payment: string
  readonly recipient: string
  readonly stable: string
}

/**
 * Addresses of the ledger's own accounts, which no key has: locked payments, earnings, and the stable coin.
 * @param id of the service
 */
export function addressesOf(id: string): PaymentAddresses {
  const of = (name: string): string => checksummed(addressOfName(`${id} ${name}`))
  return { payment: of('payment'), recipient: of('recipient'), stable: of('stable') }
}

/** Length of r and s together, bytes. */
const RS = 64

/** Hash of a personal message of EIP-191 (https://eips.ethereum.org/EIPS/eip-191). */
function personalHash(text: string): Uint8Array {
  const message = Buffer.from(text, 'utf8')
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`)
  return keccak_256(Buffer.concat([prefix, message]))
}

/**
 * Address of the wallet that signed the text by `personal_sign`, in lower case; undefined when the signature is
 * invalid. A signature whose s is in the upper half is invalid: anyone can make one from the signature of another
 * (EIP-2).
 * @param signature r, s and v, 65 bytes in hexadecimal; v is 27 or 28, or, from some wallets, 0 or 1
 */
export function signerOfText(text: string, signature: string): string | undefined {
  const hex = /^0x([0-9a-f]{130})$/i.exec(signature)?.[1]
  if (hex === undefined) return undefined
  const bytes = Buffer.from(hex, 'hex')
  const v = bytes[RS] as number
  const recovery = v >= 27 ? v - 27 : v
  if (recovery > 1) return undefined
  try {
    if (secp256k1.Signature.fromBytes(bytes.subarray(0, RS), 'compact').hasHighS()) return undefined
    const recovered = Uint8Array.of(recovery, ...bytes.subarray(0, RS))
    const compressed = secp256k1.recoverPublicKey(recovered, personalHash(text), { prehash: false })
    return addressOfKey(secp256k1.Point.fromBytes(compressed).toBytes(false))
  } catch {
    return undefined
  }
}

/** Signs as `personal_sign` does: `0x` and r, s and v (27 or 28) in hexadecimal. */
export function signText(text: string, secretKey: Uint8Array): string {
  const signature = secp256k1.sign(personalHash(text), secretKey, { prehash: false, format: 'recovered' })
  const v = 27 + (signature[0] as number)
  return `0x${Buffer.from(signature.subarray(1)).toString('hex')}${v.toString(16)}`
}
