import type { Option } from './option.js'
import { options } from './options.js'

/**
 * The name that users give an option, in the config file and, spelled otherwise, as flag and variable. A time is
 * `stateTimeoutMs` for the program and `stateTimeoutSeconds` for users.
 */
export function nameOf(name: string): string {
  const unit = (options as Readonly<Record<string, Option>>)[name]?.kind.unit
  return unit ? name.replace(/Ms$/, unit.charAt(0).toUpperCase() + unit.slice(1)) : name
}

/** Repeatable flags have a singular name, their options a plural one. */
const SINGULAR: Readonly<Record<string, string>> = { plugins: 'plugin' }

/** The name of its flag in camelCase. */
export function flagName(name: string): string {
  return SINGULAR[name] ?? nameOf(name)
}

/** accessKey -> --access-key */
export function flagOf(name: string): string {
  return `--${kebab(flagName(name))}`
}

/** accessKey -> DEALGATE_ACCESS_KEY */
export function variableOf(name: string): string {
  return `DEALGATE_${kebab(nameOf(name)).replaceAll('-', '_').toUpperCase()}`
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
