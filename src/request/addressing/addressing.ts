import type { IncomingMessage } from 'node:http'
import { type Cidr, readCidr } from '../../common/addresses/cidr.js'
import { checkedBasePaths } from './base-paths.js'
import { type ForwardedClient, forwardedClient, isProxy } from './forwarded-client.js'

/** Rules by which a request names its host, its bucket and its client. */
export interface Addressing {
  /** Hosts of this service, lower-case, without port and final dot. The labels before one of them are a bucket. */
  readonly domains: readonly string[]
  /**
   * True if a reverse proxy sets X-Forwarded-Host and X-Forwarded-Proto to the client's host and protocol, and clients
   * cannot set them.
   */
  readonly trustForwardedHost: boolean
  /**
   * Proxies whose X-Forwarded-For and X-Forwarded-Proto name the client. If there are any, no other peer is believed
   * about the host either.
   */
  readonly trustedProxies: readonly Cidr[]
  /**
   * Decoded prefixes that signatures may cover although the path does not contain them. No bucket name may equal the
   * first segment of one of them.
   */
  readonly basePaths: readonly string[]
}

/** Path-style addressing only: every host is the service itself. */
export const pathStyle: Addressing = Object.freeze({
  domains: Object.freeze([]),
  trustForwardedHost: false,
  trustedProxies: Object.freeze([]),
  basePaths: Object.freeze([]),
})

export interface AddressingOptions {
  /** Hosts of this service, below which buckets have names of their own; default none. */
  readonly domains?: readonly string[] | undefined
  /** See `Addressing.trustForwardedHost`; default false. */
  readonly trustForwardedHost?: boolean | undefined
  /** Addresses and blocks of addresses; default none. See `Addressing.trustedProxies`. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Percent-encoded path prefixes; default none. */
  readonly signedBasePaths?: readonly string[] | undefined
}

/**
 * @throws TypeError for a domain that is an IP address or has a port, for a proxy that is neither an address nor a
 * block,
 *   or for a base path that is a prefix of another
 */
export function addressing(options: AddressingOptions): Addressing {
  const { domains = [], trustForwardedHost = false, trustedProxies = [], signedBasePaths = [] } = options
  const names = domains.map((domain) => domain.replace(/\.$/, '').toLowerCase())
  const wrong = names.find((name) => !DOMAIN.test(name))
  if (wrong !== undefined) throw new TypeError(`${wrong} is not a host name without port, or is an IP address`)
  // The longest comes first: a host below several domains belongs to the innermost.
  return {
    domains: names.sort((a, b) => b.length - a.length),
    trustForwardedHost,
    trustedProxies: trustedProxies.map(proxyBlock),
    basePaths: checkedBasePaths(signedBasePaths),
  }
}

/** @throws TypeError */
function proxyBlock(text: string): Cidr {
  const block = readCidr(text)
  if (!block) throw new TypeError(`${text} is neither an IP address nor a block such as 10.0.0.0/8`)
  return block
}

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
/** The last label of a host name is never all digits: https://www.rfc-editor.org/rfc/rfc3696#section-2 */
const DOMAIN = new RegExp(`^(?=.{1,253}$)(?:${LABEL}\\.)*(?!\\d+$)${LABEL}$`)

/** Returns the bucket that a host names; undefined for the service's own hosts and for hosts outside its domains. */
export function bucketOfHost(host: string, { domains }: Addressing): string | undefined {
  if (domains.length === 0) return undefined
  const name = hostName(host)
  for (const domain of domains) {
    if (name === domain) return undefined
    if (name.endsWith(`.${domain}`)) return name.slice(0, -domain.length - 1)
  }
  return undefined
}

/** Normalises a Host header: lower-case, without port and final dot. */
function hostName(host: string): string {
  return host.trim().replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

/** Returns the values that may be the host requested by the client, the most credible first. Never empty. */
export function hostsOf(incoming: Pick<IncomingMessage, 'headers' | 'socket'>, addressing: Addressing): string[] {
  const received = incoming.headers.host ?? ''
  const forwarded = isBelieved(incoming, addressing) ? firstOf(incoming.headers['x-forwarded-host']) : undefined
  return forwarded === undefined || forwarded === received ? [received] : [forwarded, received]
}

function isBelieved({ socket }: Pick<IncomingMessage, 'socket'>, addressing: Addressing): boolean {
  const { trustForwardedHost, trustedProxies } = addressing
  return trustForwardedHost && (trustedProxies.length === 0 || isProxy(socket.remoteAddress ?? '', trustedProxies))
}

/** Returns the address of the client, and whether it uses TLS, to this server or to the trusted reverse proxy. */
export function clientAt(
  incoming: Pick<IncomingMessage, 'headers' | 'socket'>,
  { trustForwardedHost, trustedProxies }: Addressing,
): ForwardedClient {
  const client = forwardedClient(incoming, trustedProxies)
  const anyPeer = trustForwardedHost && trustedProxies.length === 0
  const forwarded = anyPeer ? firstOf(incoming.headers['x-forwarded-proto']) : undefined
  return forwarded === undefined ? client : { ...client, secure: forwarded.toLowerCase() === 'https' }
}

/** Returns the first value: in a chain of proxies, the first one has received the client's own request. */
function firstOf(header: string | string[] | undefined): string | undefined {
  return (
    String(header ?? '')
      .split(',')[0]
      ?.trim() || undefined
  )
}
