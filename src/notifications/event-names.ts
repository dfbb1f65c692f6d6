import type { ObjectEventName } from '../registry/hooks.js'

/** Every event there is; that none is forgotten is checked by the type. */
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

/** What a rule can ask for: `s3:ObjectCreated:Put`, `s3:ObjectCreated:*` and so on. Others of S3 never happen in a store without versions. */
export const selectors: readonly string[] = [...new Set([...names.map(familyOf), ...names])]
  .sort()
  .map((name) => `s3:${name}`)

/** The events that a selector stands for; none for one that is not ours. */
export function eventsOf(selector: string): readonly ObjectEventName[] {
  return names.filter((name) => selects(selector, name))
}

export function selects(selector: string, name: ObjectEventName): boolean {
  return selector === `s3:${name}` || selector === `s3:${familyOf(name)}`
}

/** `ObjectCreated:*`; the name itself where the event is of no family. */
function familyOf(name: ObjectEventName): string {
  return name.replace(/:.*/, ':*')
}
