import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** The client of a request, as far as its connection identifies it. */
export interface ClientAddress {
  /** An IPv4 address, or the first 64 bits of an IPv6 address, which is the block that one client controls. */
  readonly network: string
  /** True for a program on this machine that does not forward requests of other clients. */
  readonly local: boolean
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * Returns the peer of the connection, or, behind a proxy on this machine, the address that the proxy appended to
 * X-Forwarded-For. From other peers that header is ignored, because a client could send another address with each
 * request.
 */
export function clientOf({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): ClientAddress {
  const peer = plain(socket.remoteAddress ?? '')
  if (!isLoopback(peer)) return { network: networkOf(peer), local: false }
  const forwarded = headers['x-forwarded-for']
  if (forwarded === undefined) return { network: peer, local: true }
  const last = String(forwarded).split(',').at(-1)?.trim() ?? ''
  return { network: `forwarded ${networkOf(plain(last))}`, local: false }
}

/** IPv4 addresses in dotted form, also from a dual-stack socket. */
function plain(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  return mapped?.[1] ?? address
}

/** True for an address of this machine, also as a dual-stack socket has it. */
export function isLoopback(remoteAddress: string): boolean {
  const address = plain(remoteAddress)
  if (isIPv4(address)) return loopback.check(address, 'ipv4')
  return isIPv6(address) && loopback.check(address, 'ipv6')
}

function networkOf(address: string): string {
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return 'unknown'
  const [head = '', tail] = (address.split('%')[0] as string).toLowerCase().split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
