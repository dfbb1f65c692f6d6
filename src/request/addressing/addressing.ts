import type { IncomingMessage } from 'node:http'
import { checkedBasePaths } from './base-paths.js'

/** Rules by which the host of a request names a bucket. */
export interface Addressing {
  /** Hosts of this service, lower-case, without port and final dot. The labels before one of them are a bucket. */
  readonly domains: readonly string[]
  /**
   * True if a reverse proxy sets X-Forwarded-Host and X-Forwarded-Proto to the client's host and protocol, and clients
   * cannot set them.
   */
  readonly trustForwardedHost: boolean
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
  basePaths: Object.freeze([]),
})

export interface AddressingOptions {
  /** Hosts of this service, below which buckets have names of their own; default none. */
  readonly domains?: readonly string[] | undefined
  /** See `Addressing.trustForwardedHost`; default false. */
  readonly trustForwardedHost?: boolean | undefined
  /** Percent-encoded path prefixes; default none. */
  readonly signedBasePaths?: readonly string[] | undefined
}

/**
 * @throws TypeError for a domain that is an IP address or has a port, or for a base path that is a prefix of another
 */
export function addressing(options: AddressingOptions): Addressing {
  const { domains = [], trustForwardedHost = false, signedBasePaths = [] } = options
  const names = domains.map((domain) => domain.replace(/\.$/, '').toLowerCase())
  const wrong = names.find((name) => !DOMAIN.test(name))
  if (wrong !== undefined) throw new TypeError(`${wrong} is not a host name without port, or is an IP address`)
  // The longest comes first: a host below several domains belongs to the innermost.
  return {
    domains: names.sort((a, b) => b.length - a.length),
    trustForwardedHost,
    basePaths: checkedBasePaths(signedBasePaths),
  }
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
export function hostsOf(incoming: Pick<IncomingMessage, 'headers'>, { trustForwardedHost }: Addressing): string[] {
  const received = incoming.headers.host ?? ''
  const forwarded = trustForwardedHost ? firstOf(incoming.headers['x-forwarded-host']) : undefined
  return forwarded === undefined || forwarded === received ? [received] : [forwarded, received]
}

/** True if the client uses TLS, to this server or to the trusted reverse proxy. */
export function isSecure(incoming: IncomingMessage, { trustForwardedHost }: Addressing): boolean {
  const forwarded = trustForwardedHost ? firstOf(incoming.headers['x-forwarded-proto']) : undefined
  if (forwarded !== undefined) return forwarded.toLowerCase() === 'https'
  return 'encrypted' in incoming.socket && incoming.socket.encrypted === true
}

/** Returns the first value: in a chain of proxies, the first one has received the client's own request. */
function firstOf(header: string | string[] | undefined): string | undefined {
  return (
    String(header ?? '')
      .split(',')[0]
      ?.trim() || undefined
  )
}
