const HOT = new Set(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'REDUCED_REDUNDANCY', 'INTELLIGENT_TIERING'])

/** Returns true for a class whose objects are stored normally. Archive classes need a plugin. */
export function isHotClass(name: string): boolean {
  return HOT.has(name)
}

/** Returns true for a class that only names a price: its objects are stored as those of STANDARD. */
export function isLabel(name: string): boolean {
  return isHotClass(name) && name !== 'STANDARD'
}
