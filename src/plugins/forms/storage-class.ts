import type { StorageClass, StorageClasses } from '../../api/context.js'

const HOT = new Set(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'REDUCED_REDUNDANCY', 'INTELLIGENT_TIERING'])

/** Returns true for a class whose objects are stored normally. Archive classes need a plugin. */
export function isHotClass(name: string): boolean {
  return HOT.has(name)
}

/** Returns true for a class that only names a price: its objects are stored as those of STANDARD. */
export function isLabel(name: string): boolean {
  return isHotClass(name) && name !== 'STANDARD'
}

/** Merges the storage classes of all plugins. Throws Error if two plugins offer the same class. */
export function storageClassesOf(
  plugins: readonly { readonly name: string; readonly storageClasses?: readonly StorageClass[] }[],
): StorageClasses {
  const classes = new Map<string, StorageClass>()
  const owners = new Map<string, string>()
  for (const plugin of plugins) {
    for (const offered of plugin.storageClasses ?? []) {
      const other = owners.get(offered.name)
      if (other !== undefined)
        throw new Error(`Plugins "${other}" and "${plugin.name}" both offer the storage class ${offered.name}`)
      owners.set(offered.name, plugin.name)
      classes.set(offered.name, offered)
    }
  }
  return classes
}
