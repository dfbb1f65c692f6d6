import type { IncomingHttpHeaders } from 'node:http'
import { wholeSeconds } from '../../clock.js'
import type { ObjectRow } from '../store/objects.js'

type Facts = Pick<ObjectRow, 'etag' | 'modified'>

/** What the conditional headers of a GET or HEAD ask for, evaluated in the order of RFC 9110, 13.2.2. */
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

/** False when If-Range names another state of the object, so that Range is not to be looked at. */
export function rangeHolds(ifRange: string | string[] | undefined, object: Facts): boolean {
  if (typeof ifRange !== 'string') return true
  if (ifRange.startsWith('"')) return ifRange === `"${object.etag}"`
  return parseDate(ifRange) === wholeSeconds(object.modified)
}

/** ETags of ours are strong; a client may still have got a weak one from a cache between. Unquoted ones are taken as well, as S3 does. */
function matches(list: string, etag: string): boolean {
  return list.split(',').some((item) => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag.replace(/^W\//, '') === `"${etag}"`
  })
}

/** Seconds since 1970; undefined, and so of no effect, when it is not a date. */
function parseDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000)
}
