/** Repeatable flags have a singular name, their options a plural one. */
const SINGULAR: Readonly<Record<string, string>> = { plugins: 'plugin' }

/** The name of its flag in camelCase. */
export function flagName(name: string): string {
  return SINGULAR[name] ?? name
}

/** accessKey -> --access-key */
export function flagOf(name: string): string {
  return `--${kebab(flagName(name))}`
}

/** accessKey -> DEALGATE_ACCESS_KEY */
export function variableOf(name: string): string {
  return `DEALGATE_${kebab(name).replaceAll('-', '_').toUpperCase()}`
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
