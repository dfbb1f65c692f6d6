import type { IncomingMessage } from 'node:http'
import { type Cidr, contains, readAddress } from '../../common/cidr.js'

/** The client of a request, as far as its connection and trusted proxies tell. */
export interface ForwardedClient {
  /** IP address; '' if the connection has ended. */
  readonly address: string
  /** The client uses TLS. */
  readonly secure: boolean
}

/** True if the other end of the connection is one of these proxies. */
export function isProxy(address: string, proxies: readonly Cidr[]): boolean {
  return proxies.some((block) => contains(block, address))
}

/**
 * Returns the peer of the connection, or, if that is a trusted proxy, the client that it names: the last address of
 * X-Forwarded-For that is not a trusted proxy itself, because each proxy appends the address of its own peer. Text that
 * is no address is never skipped: the peer counts as the client then. X-Forwarded-Proto is either one word, or has one
 * for each address.
 */
export function forwardedClient(
  { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  proxies: readonly Cidr[],
): ForwardedClient {
  const peer = socket.remoteAddress ?? ''
  const encrypted = 'encrypted' in socket && socket.encrypted === true
  if (!isProxy(peer, proxies)) return { address: peer, secure: encrypted }
  const chain = valuesOf(headers['x-forwarded-for'])
  const at = Math.max(
    0,
    chain.findLastIndex((address) => !isProxy(address, proxies)),
  )
  const named = chain[at] ?? ''
  const words = valuesOf(headers['x-forwarded-proto'])
  const word = words.length === 1 ? words[0] : words.length === chain.length ? words[at] : undefined
  return { address: isAddress(named) ? named : peer, secure: secureBy(word) ?? encrypted }
}

/** True for an address without a zone, which means nothing on another machine. */
function isAddress(text: string): boolean {
  return readAddress(text) !== undefined && !text.includes('%')
}

function secureBy(word: string | undefined): boolean | undefined {
  const scheme = word?.toLowerCase()
  return scheme === 'https' ? true : scheme === 'http' ? false : undefined
}

/** Node joins the values of several headers of one name with commas. */
function valuesOf(header: string | string[] | undefined): string[] {
  if (header === undefined) return []
  return String(header)
    .split(',')
    .map((value) => value.trim())
}
