import type { IncomingMessage } from 'node:http'
import { type Addressing, bucketOfHost, hostsOf } from '../../request/addressing/addressing.js'
import { headerBrands } from '../../request/addressing/branded-header.js'

/** The target of a request to one of the gateway's own endpoints. */
export interface GatewayTarget {
  /** Path and query below the mount point, as the client sent them. */
  readonly target: string
  /**
   * The decoded segments after the gateway's own one, without empty, `.` and `..` segments: every gateway resolves the
   * target to this endpoint, whether it cleans paths or not.
   */
  readonly segments: readonly string[]
}

const S3_QUERY = new RegExp(`(?:^|&)x-(?:${headerBrands.join('|')})-(?:signature|algorithm)=`, 'i')

/**
 * Returns the target of a request below `/<word>`, or undefined for an S3 request: another path, a bucket named by the
 * host, or an S3 signature. Returns 'unclear' if servers may resolve the path to different endpoints.
 */
export function gatewayTargetOf(
  incoming: IncomingMessage,
  word: string,
  addressing: Addressing,
): GatewayTarget | 'unclear' | undefined {
  const target = incoming.url ?? '/'
  const [path = '', query = ''] = splitOnce(target, '?')
  if (path !== `/${word}` && !path.startsWith(`/${word}/`)) return undefined
  if (S3_QUERY.test(query) || /^aws/i.test(incoming.headers.authorization ?? '')) return undefined
  if (bucketOfHost(hostsOf(incoming, addressing)[0] ?? '', addressing) !== undefined) return undefined
  const segments = resolve(path)
  return segments?.[0] === word ? { target, segments: segments.slice(1) } : 'unclear'
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** The segments that a server which cleans paths sees; undefined if that is ambiguous. */
function resolve(path: string): string[] | undefined {
  let decoded: string
  try {
    decoded = decodeURIComponent(path)
  } catch {
    return undefined
  }
  // A server that decodes twice, or takes \ for a separator, would see another path.
  if (/[%\\\0]/.test(decoded)) return undefined
  const segments: string[] = []
  for (const segment of decoded.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}
