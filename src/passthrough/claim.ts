import type { IncomingMessage } from 'node:http'
import { type Addressing, bucketOfHost, hostsOf } from '../request/addressing.js'
import { headerBrands } from '../request/branded-header.js'

/** What of a request is the gateway's own. */
export interface Claim {
  /** Below the mount point: path and query, as the client sent them. */
  readonly target: string
  /** What follows the gateway's own segment, decoded and without empty, `.` and `..` segments: however a gateway reads the target, it is this endpoint. */
  readonly segments: readonly string[]
}

const S3_QUERY = new RegExp(`(?:^|&)x-(?:${headerBrands.join('|')})-(?:signature|algorithm)=`, 'i')

/**
 * The claim of a request below `/<word>`; undefined for one that is S3's: another path, a bucket named by the host, or a request signed as S3 requests are.
 * 'unclear' where the path might be read as leading somewhere else.
 */
export function claimOf(
  incoming: IncomingMessage,
  word: string,
  addressing: Addressing,
): Claim | 'unclear' | undefined {
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

/** The segments that a server which cleans paths would see; undefined when there is no telling. */
function resolve(path: string): string[] | undefined {
  let decoded: string
  try {
    decoded = decodeURIComponent(path)
  } catch {
    return undefined
  }
  // Decoded once more it would mean something else again.
  if (/[%\\\0]/.test(decoded)) return undefined
  const segments: string[] = []
  for (const segment of decoded.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}
