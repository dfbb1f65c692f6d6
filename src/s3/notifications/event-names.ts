import type { ObjectEventName } from '../../plugins/forms/hooks.js'

/** All events; the type ensures that none is missing. */
const EVENTS: Readonly<Record<ObjectEventName, true>> = {
  'ObjectCreated:Put': true,
  'ObjectCreated:Post': true,
  'ObjectCreated:Copy': true,
  'ObjectCreated:CompleteMultipartUpload': true,
  'ObjectRemoved:Delete': true,
  'ObjectTagging:Put': true,
  'ObjectTagging:Delete': true,
  'ObjectRestore:Post': true,
  'ObjectRestore:Completed': true,
  'ObjectRestore:Delete': true,
  'LifecycleExpiration:Delete': true,
  LifecycleTransition: true,
}

const names = Object.keys(EVENTS) as ObjectEventName[]

/**
 * The event selectors of rules: `s3:ObjectCreated:Put`, `s3:ObjectCreated:*` and so on. Other events of S3 never happen
 * in a store without versions.
 */
export const selectors: readonly string[] = [...new Set([...names.map(familyOf), ...names])]
  .sort()
  .map((name) => `s3:${name}`)

/** Returns the events of a selector; empty for an unknown one. */
export function eventsOf(selector: string): readonly ObjectEventName[] {
  return names.filter((name) => selects(selector, name))
}

export function selects(selector: string, name: ObjectEventName): boolean {
  return selector === `s3:${name}` || selector === `s3:${familyOf(name)}`
}

/** Returns `ObjectCreated:*`; for an event without a family, its name. */
function familyOf(name: ObjectEventName): string {
  return name.replace(/:.*/, ':*')
}
