import { type OptionName, options } from './config/config.js'

/** The default as the user would write it; '' without a default. */
export function defaultText(name: OptionName): string {
  const value = options[name].default
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  return value === undefined ? '' : String(value)
}
