import type { IncomingMessage } from 'node:http'

/** How a request's host names a bucket. */
export interface Addressing {
  /** Hosts that are this service, lower-case, without port and final dot: what stands ahead of one of them is a bucket. */
  readonly domains: readonly string[]
  /** Something in front of this server sets X-Forwarded-Host and X-Forwarded-Proto to what the client asked for, and lets no client set them. */
  readonly trustForwardedHost: boolean
}

/** Every host is the service itself: path-style addressing alone. */
export const pathStyle: Addressing = Object.freeze({ domains: Object.freeze([]), trustForwardedHost: false })

/** Throws TypeError for a domain that cannot be: an address, or anything with a port. */
export function addressing(domains: readonly string[], trustForwardedHost: boolean): Addressing {
  const names = domains.map((domain) => domain.replace(/\.$/, '').toLowerCase())
  const wrong = names.find((name) => !DOMAIN.test(name))
  if (wrong !== undefined) throw new TypeError(`${wrong} is no host name without port, or it is an IP address`)
  // The longest first: a host below several domains belongs to the innermost.
  return { domains: names.sort((a, b) => b.length - a.length), trustForwardedHost }
}

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
/** The last label of a name is never all digits: https://www.rfc-editor.org/rfc/rfc3696#section-2 */
const DOMAIN = new RegExp(`^(?=.{1,253}$)(?:${LABEL}\\.)*(?!\\d+$)${LABEL}$`)

/** The bucket that a host names; undefined when it is the service itself, or no host that was named to us. */
export function bucketOfHost(host: string, { domains }: Addressing): string | undefined {
  if (domains.length === 0) return undefined
  const name = hostName(host)
  for (const domain of domains) {
    if (name === domain) return undefined
    if (name.endsWith(`.${domain}`)) return name.slice(0, -domain.length - 1)
  }
  return undefined
}

/** A Host header without port and final dot, lower-case: host names have no case. */
function hostName(host: string): string {
  return host.trim().replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

/** The values that may stand for the host the client asked for, the most credible first. Never empty. */
export function hostsOf(incoming: Pick<IncomingMessage, 'headers'>, { trustForwardedHost }: Addressing): string[] {
  const received = incoming.headers.host ?? ''
  const forwarded = trustForwardedHost ? firstOf(incoming.headers['x-forwarded-host']) : undefined
  return forwarded === undefined || forwarded === received ? [received] : [forwarded, received]
}

/** True when the client spoke TLS, with us or with what is trusted in front of us. */
export function isSecure(incoming: IncomingMessage, { trustForwardedHost }: Addressing): boolean {
  const forwarded = trustForwardedHost ? firstOf(incoming.headers['x-forwarded-proto']) : undefined
  if (forwarded !== undefined) return forwarded.toLowerCase() === 'https'
  return 'encrypted' in incoming.socket && incoming.socket.encrypted === true
}

/** Of a chain of proxies the first one has seen the client's own request. */
function firstOf(header: string | string[] | undefined): string | undefined {
  return (
    String(header ?? '')
      .split(',')[0]
      ?.trim() || undefined
  )
}
