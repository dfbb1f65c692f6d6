import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type Cidr, contains, readCidr } from '../../../common/addresses/cidr.js'

/**
 * This network, link-local, multicast and reserved addresses, and those at which clouds answer with the secrets of a
 * machine: no CAR comes from there.
 */
const NEVER = blocks(
  ...['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
  ...['::', 'fe80::/10', 'ff00::/8', 'fd00:ec2::254'],
)

/** Addresses of private networks, and those that stand for IPv4 addresses. */
const PRIVATE = blocks(
  ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['fc00::/7', 'fec0::/10', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16'],
)

/**
 * True for an address that a CAR may come from: a public one, one of this machine, as those of the gateway are, or a
 * private one that the operator allows.
 */
export function mayFetchFrom(address: string, allowed: readonly Cidr[]): boolean {
  if (NEVER.some((block) => contains(block, address))) return false
  if (!PRIVATE.some((block) => contains(block, address))) return true
  return allowed.some((block) => contains(block, address)) || isOfThisMachine(address)
}

function isOfThisMachine(address: string): boolean {
  const own = readCidr(address)
  return (
    own !== undefined &&
    Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => contains(own, entry.address)))
  )
}

/** Throws for a host that is an address from which no CAR may come: `lookupOf` is not asked for it. */
export function requireAddress(host: string, allowed: readonly Cidr[]): void {
  const address = host.replace(/^\[|\]$/g, '')
  if (isIP(address) !== 0 && !mayFetchFrom(address, allowed)) throw refusal(host)
}

/** Finds the addresses of a host from which CARs may come; the connection uses these and asks nothing again. */
export function lookupOf(allowed: readonly Cidr[]): LookupFunction {
  return (host, options, callback) => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '')
      const [first, ...others] = addresses.filter(({ address }) => mayFetchFrom(address, allowed))
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
