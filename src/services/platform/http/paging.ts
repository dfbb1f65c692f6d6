import { PlatformError } from '../errors.js'
import type { Exchange } from './exchange.js'

const MOST = 1000
const LARGEST_OFFSET = 1_000_000_000

/** A page of a list. */
export interface Page {
  /** Most records, 1 to 1000. */
  readonly limit: number
  /** Records before the page. */
  readonly offset: number
}

/**
 * Reads `limit` and `offset`. Throws PlatformError 400 when one is out of bounds.
 * @param usual limit of a request without one
 */
export function readPage({ context, query }: Pick<Exchange, 'context' | 'query'>, usual = 10): Page {
  const limit = whole(query, 'limit', usual, 1, MOST)
  const offset = whole(query, 'offset', 0, 0, LARGEST_OFFSET)
  return { limit, offset: context.offsets === 'pages' ? offset * limit : offset }
}

function whole(query: URLSearchParams, name: string, usual: number, least: number, most: number): number {
  const text = query.get(name) ?? ''
  if (text === '') return usual
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new PlatformError(400, `${name} must be a whole number from ${least} to ${most}.`)
}
