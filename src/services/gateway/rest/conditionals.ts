import type { IncomingHttpHeaders } from 'node:http'
import { wholeSeconds } from '../../clock.js'
import type { ObjectRow } from '../store/objects.js'

type Facts = Pick<ObjectRow, 'etag' | 'modified'>

/** Evaluates the conditional headers of a GET or HEAD, in the order of RFC 9110, 13.2.2. */
export function evaluate(headers: IncomingHttpHeaders, object: Facts): 'go on' | 'not modified' | 'failed' {
  const ifMatch = headers['if-match']
  const unmodifiedSince = parseDate(headers['if-unmodified-since'])
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, object.etag)) return 'failed'
  } else if (unmodifiedSince !== undefined && wholeSeconds(object.modified) > unmodifiedSince) {
    return 'failed'
  }
  const ifNoneMatch = headers['if-none-match']
  const modifiedSince = parseDate(headers['if-modified-since'])
  if (ifNoneMatch !== undefined) {
    if (matches(ifNoneMatch, object.etag)) return 'not modified'
  } else if (modifiedSince !== undefined && wholeSeconds(object.modified) <= modifiedSince) {
    return 'not modified'
  }
  return 'go on'
}

/** False when If-Range names another state of the object, so that Range must be ignored. */
export function rangeHolds(ifRange: string | string[] | undefined, object: Facts): boolean {
  if (typeof ifRange !== 'string') return true
  if (ifRange.startsWith('"')) return ifRange === `"${object.etag}"`
  return parseDate(ifRange) === wholeSeconds(object.modified)
}

/**
 * Our ETags are strong, but a client may have received a weak one from a cache in between. Unquoted ones match as well,
 * as in S3.
 */
function matches(list: string, etag: string): boolean {
  return list.split(',').some((item) => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag.replace(/^W\//, '') === `"${etag}"`
  })
}

/** Seconds since 1970; undefined when the text is not a date, and the header then has no effect. */
function parseDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000)
}
