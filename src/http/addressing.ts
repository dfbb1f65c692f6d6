import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { type Cidr, readCidr } from '../../common/cidr.js'
import { S3Error } from '../../common/errors/s3-error.js'
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

interface AddressingOptions {
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
  if (wrong !== undefined)
    throw new TypeError(
      isIP(wrong.replace(/^\[|\](?::\d+)?$|(?<=^[\d.]+):\d+$/g, '')) === 0
        ? `${wrong} must be a host name alone, without a port, such as s3.example.com`
        : `${wrong} is an IP address, below which no bucket can be a host: name a host such as s3.example.com`,
    )
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

/**
 * Checks path prefixes that clients sign and a reverse proxy removes. A signature over `/storage/photos/a` must be
 * valid for one resource only: with the prefix `/storage` for the object `a` of the bucket `photos`, and therefore
 * never for the object `photos/a` of a bucket `storage` (see refuseReserved).
 * @param basePaths percent-encoded
 * @returns the decoded prefixes
 * @throws TypeError for a prefix of another one or of the service's own paths: signatures below it would be ambiguous
 */
function checkedBasePaths(basePaths: readonly string[]): readonly string[] {
  const plain = basePaths.map((path) => path.split('/').map(decodePath).join('/'))
  for (const [at, path] of plain.entries()) {
    if (firstSegment(path) === '-')
      throw new TypeError(`the signed base path ${basePaths[at]} is one of this server's own`)
    const outer = plain.findIndex((other) => path.startsWith(`${other}/`))
    if (outer >= 0) {
      throw new TypeError(
        `the signed base path ${basePaths[outer]} begins another one, ${basePaths[at]}: a signature would have two meanings`,
      )
    }
  }
  return plain
}

/**
 * Throws InvalidBucketName for a bucket whose name equals the first segment of a signed base path. Applies to every
 * style of addressing, because a signature of version 2 does not cover the style.
 * @param basePaths decoded, from `checkedBasePaths`
 * @param mount the prefix at which the handler is mounted, '' for none
 */
export function refuseReserved(bucket: string, basePaths: readonly string[], mount: string): void {
  const named = (path: string) => firstSegment(path) === bucket
  const reserved = basePaths.some(
    (path) => named(path) || (mount !== '' && path.startsWith(`${mount}/`) && named(path.slice(mount.length))),
  )
  if (!reserved) return
  throw new S3Error('InvalidBucketName', {
    message: 'This name is reserved: signatures may cover a path prefix of the same name. Choose another bucket name.',
    fields: { BucketName: bucket },
  })
}

function firstSegment(path: string): string | undefined {
  return path.split('/')[1]
}

/**
 * Bucket names that any rule of S3 has allowed, including the former ones of us-east-1.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
const BUCKET_NAME = /^[A-Za-z0-9._-]{3,255}$/

/**
 * Throws InvalidBucketName for an invalid bucket name. Names arrive percent-encoded: without this check, this server's
 * locks and access checks would take `a%2Fb/c` for the bucket `a/b`, and a gateway addressed by path for the key `b/c`
 * of the bucket `a`.
 */
export function refuseNoBucketName(bucket: string): void {
  if (BUCKET_NAME.test(bucket)) return
  throw new S3Error('InvalidBucketName', {
    message:
      bucket === ''
        ? 'The request names no bucket.'
        : 'The specified bucket is not valid: a name has 3 to 63 lower-case letters, digits, dots and hyphens.',
    fields: { BucketName: bucket },
  })
}

/** ASCII without an escape. */
const PLAIN = /^[\x20-\x24\x26-\x7e]*$/

/**
 * Percent-decodes a path once, without normalising it. Bytes that a client left unencoded arrive as latin-1 characters.
 * Throws InvalidURI.
 */
export function decodePath(raw: string): string {
  if (PLAIN.test(raw)) return raw
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the class is "not ASCII"
  const escaped = raw.replace(/[^\x00-\x7f]/g, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  if (!escaped.includes('%')) return escaped
  try {
    return decodeURIComponent(escaped)
  } catch (cause) {
    throw new S3Error('InvalidURI', { message: 'The request path is not valid percent-encoded UTF-8.', cause })
  }
}

/**
 * Decodes x-amz-copy-source without its versionId: `/bucket/key` or `bucket/key`, URL-encoded. Returns `bucket/key` and
 * the encoded query; undefined for text that cannot be decoded.
 */
export function copySourcePath(header: string): { readonly path: string; readonly query: string } | undefined {
  const at = header.lastIndexOf('?versionId=')
  const text = at >= 0 ? header.slice(0, at) : header
  // Raw UTF-8 in a header arrives as latin-1 characters.
  const encoded = /[\u0080-\u00ff]/.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text
  try {
    // S3 decodes this header as a query: Go's url.QueryEscape, which s5cmd uses, writes `+` for a space.
    const path = decodeURIComponent(encoded.replaceAll('+', ' ')).replace(/^\//, '')
    return { path, query: at >= 0 ? header.slice(at + 1) : '' }
  } catch {
    return undefined
  }
}
