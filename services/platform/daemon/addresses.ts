import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type Cidr, contains, isLoopback, readCidr } from '../../../common/cidr.js'

/**
 * This network, link-local, multicast, reserved and obsolete addresses, and those at which clouds answer with the
 * secrets of a machine: no CAR comes from there.
 */
const NEVER = blocks(
  ...['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
  ...['::/96', 'fe80::/10', 'ff00::/8', 'fd00:ec2::254'],
)

/** Addresses of private networks, and those that stand for IPv4 addresses. */
const PRIVATE = blocks(
  ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['fc00::/7', 'fec0::/10', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16', '::ffff:0:0:0/96'],
)

/** Servers from which CARs may come, besides those with public addresses. */
export interface CarServers {
  /** Blocks of private addresses, and of addresses of this machine, that the operator allows. */
  readonly allowed: readonly Cidr[]
  /**
   * Servers of this machine that hand out CARs: the URLs on which they listen, and those by which others reach them.
   * Every user may post a URL, and only servers that everyone reaches anyway may get a request because of it.
   */
  readonly own: readonly URL[]
}

/** True if a CAR may come from this address for that URL. */
export function mayFetchFrom(address: string, url: URL, { allowed, own }: CarServers): boolean {
  const here = isOfThisMachine(address)
  if (!here && NEVER.some((block) => contains(block, address))) return false
  if (allowed.some((block) => contains(block, address))) return true
  if (here) return own.some((server) => isServer(server, address, url))
  return !PRIVATE.some((block) => contains(block, address))
}

/** True if the server listens at this address, or if others reach it by the name in the URL. */
function isServer(server: URL, address: string, url: URL): boolean {
  if (portOf(server) !== portOf(url)) return false
  const host = bare(server.hostname)
  if (isIP(host) === 0) return server.hostname === url.hostname
  const exact = readCidr(host)
  return host === '0.0.0.0' || host === '::' || (exact !== undefined && contains(exact, address))
}

function portOf({ port, protocol }: URL): string {
  return port === '' ? (protocol === 'https:' ? '443' : '80') : port
}

/** A host of a URL without the brackets of IPv6. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function isOfThisMachine(address: string): boolean {
  if (isLoopback(address)) return true
  const own = readCidr(address)
  return (
    own !== undefined &&
    Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => contains(own, entry.address)))
  )
}

/** Throws for a URL whose host is an address from which no CAR may come: `lookupOf` is not asked for it. */
export function requireAddress(url: URL, servers: CarServers): void {
  const address = bare(url.hostname)
  if (isIP(address) !== 0 && !mayFetchFrom(address, url, servers)) throw refusal(url.hostname)
}

/** Finds the addresses of a URL from which CARs may come; the connection uses these and asks nothing again. */
export function lookupOf(url: URL, servers: CarServers): LookupFunction {
  return (host, options, callback) => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '')
      const [first, ...others] = addresses.filter(({ address }) => mayFetchFrom(address, url, servers))
      if (first === undefined) return callback(refusal(host), '')
      if (options.all === true) return callback(null, [first, ...others])
      return callback(null, first.address, first.family)
    })
  }
}

/** Reads blocks of addresses. Throws RangeError for anything else. */
export function blocks(...texts: readonly string[]): Cidr[] {
  return texts.map((text) => {
    const block = readCidr(text)
    if (block === undefined) throw new RangeError(`${text} is no block of addresses, such as 10.0.0.0/8.`)
    return block
  })
}

function refusal(host: string): Error {
  return new Error(`no CAR may come from the address of ${host}`)
}
