import { uriEncode } from '../../common/sigv4.js'
import type { RoutingRule, WebsiteConfiguration } from './configuration.js'

export interface Redirect {
  readonly status: number
  readonly location: string
}

/** How the client reached the website. */
export interface Visited {
  readonly secure: boolean
  /** With the port. */
  readonly host: string
}

const MOVED = 301

/** The redirect of all requests to the website; undefined for none. */
export function redirectOfAll(website: WebsiteConfiguration, target: string, visited: Visited): Redirect | undefined {
  const { redirectAll } = website
  if (!redirectAll) return undefined
  const { host, protocol = visited.secure ? 'https' : 'http' } = redirectAll
  return { status: MOVED, location: `${protocol}://${host}${target}` }
}

/**
 * The redirect by the first routing rule that applies; undefined for none.
 * @param status of an error; undefined before the object is looked up
 */
export function redirectByRule(
  { rules = [] }: WebsiteConfiguration,
  key: string,
  status: number | undefined,
  visited: Visited,
): Redirect | undefined {
  const rule = rules.find((one) => one.status === status && key.startsWith(one.prefix ?? ''))
  if (!rule) return undefined
  const { host = visited.host, protocol = visited.secure ? 'https' : 'http', code = MOVED } = rule
  return { status: code, location: `${protocol}://${host}/${uriEncode(keyBy(rule, key), true)}` }
}

function keyBy({ prefix = '', replacePrefix, replaceKey }: RoutingRule, key: string): string {
  if (replaceKey !== undefined) return replaceKey
  return replacePrefix === undefined ? key : `${replacePrefix}${key.slice(prefix.length)}`
}

/** The bucket whose website has this host: `photos` of `photos.web.example`, or a bucket that is named as the host. */
export function bucketOfHost(host: string, domains: readonly string[]): string {
  const name = host.replace(/:\d*$/, '').toLowerCase()
  const domain = domains.find((one) => name.endsWith(`.${one.toLowerCase()}`))
  return domain === undefined ? name : name.slice(0, -domain.length - 1)
}
