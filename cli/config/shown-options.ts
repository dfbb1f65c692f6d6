import { isDeepStrictEqual } from 'node:util'
import type { ShownOption } from '../../src/server/manage/list-options.js'
import { type Config, flagOf, type Option, optionNames, options } from './config.js'

/** The options of a configuration without secrets: those that may be part of other values are cut off, too. */
export function shownOptions(config: Config): readonly ShownOption[] {
  return optionNames.map((name) => {
    const option: Option = options[name]
    const value: unknown = config[name]
    const isSet = value !== undefined && !isDeepStrictEqual(value, [])
    const secret = option.secret === true
    return {
      name: flagOf(name),
      group: option.group,
      help: option.help,
      value: secret || !isSet ? undefined : JSON.stringify(value, withoutSecrets),
      secret,
      isSet,
      isDefault: isDeepStrictEqual(value, option.default),
      live: option.live === true,
    }
  })
}

/** Addresses may have passwords and tokens in any part but scheme and host. */
function withoutSecrets(_: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  return value.replace(
    /([a-z][a-z0-9+.-]*:\/\/)(?:[^/?#]*@)?([^/?#@]*)([/?#]?)(.*)/is,
    (_, scheme, host, mark, rest) =>
      rest === '' && mark !== '?' && mark !== '#' ? `${scheme}${host}${mark}` : `${scheme}${host}/…`,
  )
}
