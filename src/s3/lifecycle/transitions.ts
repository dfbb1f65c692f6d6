import type { LifecycleConfiguration, LifecycleRule } from './configuration.js'
import { type Candidate, dueAt, matches } from './rules.js'

const SMALL = 128 * 1024

/**
 * Returns the storage class of an object at `now` (ms since 1970): that of the latest transition. Undefined for none.
 * Objects under 128 KiB stay unless the rule has a size condition:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-transition-general-considerations.html
 */
export function transitionOf(
  configuration: LifecycleConfiguration,
  object: Candidate,
  now: number,
): string | undefined {
  let latest: { readonly at: number; readonly storageClass: string } | undefined
  for (const rule of configuration.rules) {
    if (!rule.enabled || !matches(rule.filter, object)) continue
    for (const transition of rule.transitions ?? []) {
      if (object.size < smallest(configuration, rule, transition.storageClass)) continue
      const at = dueAt(transition, object.lastModified)
      if (at <= now && (!latest || at > latest.at)) latest = { at, storageClass: transition.storageClass }
    }
  }
  return latest?.storageClass
}

function smallest(
  { minimumTransitionSize }: LifecycleConfiguration,
  rule: LifecycleRule,
  storageClass: string,
): number {
  if (rule.filter.greaterThan !== undefined || rule.filter.lessThan !== undefined) return 0
  const archive = storageClass === 'GLACIER' || storageClass === 'DEEP_ARCHIVE'
  return archive && minimumTransitionSize === 'varies_by_storage_class' ? 0 : SMALL
}
