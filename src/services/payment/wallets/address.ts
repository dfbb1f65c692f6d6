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
export function addressOfName(name: string): string {
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
