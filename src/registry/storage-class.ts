/** A storage class that a plugin keeps objects in, beside those that all mean "as any other object". */
export interface StorageClass {
  /** As in x-amz-storage-class: `GLACIER`. */
  readonly name: string
  /**
   * Moves an object there, because a lifecycle rule says so. Called again on a later day for an object that is there already, which must do nothing.
   * What it throws is logged, and it is called again.
   */
  transition(object: TransitionedObject): Promise<void>
}

export interface TransitionedObject {
  readonly bucket: string
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** Unquoted; of the object that is meant. */
  readonly etag: string
}

/** Storage classes by name. */
export type StorageClasses = ReadonlyMap<string, StorageClass>

/** Those of all plugins. Throws Error when two offer the same. */
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
