import { isIP } from 'node:net'

/** A block of addresses. IPv4 addresses are those of IPv6 that `::ffff:0:0/96` maps. */
export interface Cidr {
  readonly version: 4 | 6
  /** Length of the prefix in its own version: 0 to 32, or 0 to 128. */
  readonly length: number
  /** The first bits of each address of the block. */
  readonly network: bigint
}

const BITS = 128
const MAPPED = 0xffffn << 32n

/** Reads an IPv4 or IPv6 address as 128 bits; undefined for anything else. */
export function readAddress(text: string): { readonly version: 4 | 6; readonly bits: bigint } | undefined {
  const version = isIP(text)
  if (version === 4) return { version, bits: MAPPED | v4Bits(text) }
  if (version !== 6) return undefined
  const [address = ''] = text.split('%')
  const bits = v6Bits(address)
  return bits >> 32n === 0xffffn ? { version: 4, bits } : { version, bits }
}

/** Reads `address` or `address/length`; undefined for anything else. Bits behind the prefix are ignored. */
export function readCidr(text: string): Cidr | undefined {
  const [, address = '', digits] = /^([0-9a-fA-F.:]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  const read = readAddress(address)
  if (!read || (version !== 4 && version !== 6)) return undefined
  const size = version === 4 ? 32 : BITS
  const length = digits === undefined ? size : Number(digits)
  if (length > size) return undefined
  // 1.2.3.0/24 and ::ffff:1.2.3.0/120 are the same block.
  const whole = version === 4 ? length + 96 : length
  if (version === 6 && read.version === 4 && whole >= 96)
    return { version: 4, length: whole - 96, network: read.bits >> BigInt(BITS - whole) }
  return { version, length, network: read.bits >> BigInt(BITS - whole) }
}

/** True if the address is in the block. An IPv6 block contains no IPv4 address. */
export function contains(block: Cidr, address: string): boolean {
  const read = readAddress(address)
  if (!read || read.version !== block.version) return false
  const length = block.version === 4 ? block.length + 96 : block.length
  return read.bits >> BigInt(BITS - length) === block.network
}

/** True for blocks that AWS calls public: larger than /8 in IPv4, or than /32 in IPv6. */
export function isBroad({ version, length }: Cidr): boolean {
  return length < (version === 4 ? 8 : 32)
}

function v4Bits(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n)
}

function v6Bits(text: string): bigint {
  const [head = '', tail] = text.split('::')
  const left = groups(head)
  const right = tail === undefined ? [] : groups(tail)
  const zeros = new Array<bigint>(8 - left.length - right.length).fill(0n)
  return [...left, ...zeros, ...right].reduce((bits, group) => (bits << 16n) | group, 0n)
}

/** Returns the groups of 16 bits of a part of an address, which may end as an IPv4 address. */
function groups(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)]
    const bits = v4Bits(group)
    return [bits >> 16n, bits & 0xffffn]
  })
}
