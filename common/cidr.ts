import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** What is used of an address of the library, whose types for the two versions have no common one. */
interface Address {
  kind(): 'ipv4' | 'ipv6'
  match(network: Address, length: number): boolean
}

/** A block of addresses. IPv4 addresses are those of IPv6 that `::ffff:0:0/96` maps. */
export interface Cidr {
  readonly version: 4 | 6
  /** Length of the prefix in its own version: 0 to 32, or 0 to 128. */
  readonly length: number
  readonly network: Address
}

const TAIL = /:(\d+)\.(\d+)\.(\d+)\.(\d+)$/

/** Writes an IPv4 address at the end of one of IPv6 as two groups: the library cannot read it right behind `::`. */
function inGroups(address: string): string {
  const group = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16)
  return address.replace(TAIL, (_, a: string, b: string, c: string, d: string) => `:${group(a, b)}:${group(c, d)}`)
}

/**
 * Reads an IPv4 or IPv6 address, without its zone; undefined for anything else. The library would also read octal,
 * hexadecimal and short forms, which Node does not take for addresses.
 */
function read(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(inGroups(text.split('%')[0] ?? ''))
}

/** Reads an IPv4 or IPv6 address, without its zone; undefined for anything else. */
export function readAddress(text: string): Address | undefined {
  return read(text)
}

/** An IPv4 address in dotted form also if a dual-stack socket states it; other texts unchanged. */
export function plainAddress(text: string): string {
  return text.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** True for an address of this machine, also as a dual-stack socket states it. */
export function isLoopback(text: string): boolean {
  return read(text)?.range() === 'loopback'
}

/**
 * The block of addresses that one client controls: an IPv4 address itself, the /64 block of an IPv6 address, in which a
 * host has 2^64 (https://www.rfc-editor.org/rfc/rfc4291#section-2.5.4); `unknown` for anything else. IPv4 does not go
 * through the library, which takes 8 to 23 us for an address: several bounds ask for each request.
 */
export function networkOf(text: string): string {
  const plain = plainAddress(text)
  if (isIPv4(plain)) return plain
  const address = read(plain)
  if (address === undefined) return 'unknown'
  if (!('parts' in address)) return address.toString()
  const groups = address.parts.slice(0, 4).map((group) => group.toString(16))
  return `${groups.join(':')}::/64`
}

/** Reads `address` or `address/length`; undefined for anything else. Bits behind the prefix are ignored. */
export function readCidr(text: string): Cidr | undefined {
  const [, address = '', digits] = /^([0-9a-fA-F.:]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? []
  const stated = isIP(address)
  if (stated !== 4 && stated !== 6) return undefined
  const size = stated === 4 ? 32 : 128
  const length = digits === undefined ? size : Number(digits)
  if (length > size) return undefined
  const groups = inGroups(address)
  const network = ipaddr.process(groups)
  // 1.2.3.0/24 and ::ffff:1.2.3.0/120 are the same block.
  if (stated === 6 && network.kind() === 'ipv4' && length >= 96) return { version: 4, length: length - 96, network }
  return { version: stated, length, network: ipaddr.parse(groups) }
}

/** True if the address is in the block. An IPv6 block contains no IPv4 address. */
export function contains({ version, length, network }: Cidr, address: string): boolean {
  const found = readAddress(address)
  return found !== undefined && found.kind() === `ipv${version}` && found.match(network, length)
}

/** True for blocks that AWS calls public: larger than /8 in IPv4, or than /32 in IPv6. */
export function isBroad({ version, length }: Cidr): boolean {
  return length < (version === 4 ? 8 : 32)
}
