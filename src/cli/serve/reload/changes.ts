import { isDeepStrictEqual } from 'node:util'
import { type Config, type OptionName, optionNames } from '../../config/config.js'
import { limitOptions } from '../../config/groups/limit-options.js'
import { trafficOptions } from '../../config/groups/traffic-options.js'
import { sameModules } from '../../plugins/plugins.js'

/** Options whose new values a running server uses. */
const LIVE: ReadonlySet<OptionName> = new Set<OptionName>([
  'accessKey',
  'secretKey',
  'credentialsFile',
  'tlsCert',
  'tlsKey',
  'webhook',
  'webhookSecret',
  'domain',
  'trustForwardedHost',
  'trustedProxies',
  ...(Object.keys(limitOptions) as (keyof typeof limitOptions)[]),
  ...(Object.keys(trafficOptions) as (keyof typeof trafficOptions)[]),
  'plugins',
  'logLevel',
  'accessLog',
])

export interface Changes {
  /** What the server uses when the changes are applied. */
  readonly next: Config
  /** Options of `next` that differ from those in use. */
  readonly changed: readonly OptionName[]
  /** Options that differ, and that `next` has as they are in use. */
  readonly needRestart: readonly OptionName[]
}

/**
 * Separates the changes that a running server can make from the others.
 * @param running in use
 * @param read from the sources
 */
export function changesOf(running: Config, read: Config): Changes {
  const different = optionNames.filter((name) => !isDeepStrictEqual(running[name], read[name]))
  const mayChange = (name: OptionName) =>
    LIVE.has(name) &&
    (!isTls(name) || isSecure(running) === isSecure(read)) &&
    (name !== 'plugins' || sameModules(running, read))
  const changed = different.filter(mayChange)
  const next = { ...running, ...Object.fromEntries(changed.map((name) => [name, read[name]])) }
  return { next, changed, needRestart: different.filter((name) => !mayChange(name)) }
}

function isTls(name: OptionName): boolean {
  return name === 'tlsCert' || name === 'tlsKey'
}

function isSecure({ tlsCert }: Config): boolean {
  return tlsCert.length > 0
}
