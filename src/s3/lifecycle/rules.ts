import type { Tag } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { StoredObject } from '../../api/store.js'
import { DAY_MS } from '../../common/time.js'
import type { LifecycleConfiguration, LifecycleFilter, LifecycleRule, When } from './configuration.js'

/** The properties of an object that rules evaluate. */
export interface Candidate {
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** Milliseconds since 1970; 0 or less if unknown, and then the object never ages. */
  readonly lastModified: number
  /** Undefined if not read yet; then any tags match. */
  readonly tags: readonly Tag[] | undefined
}

/** A rule and the time when it will act, ms since 1970. */
interface Due {
  readonly rule: LifecycleRule
  readonly at: number
}

/**
 * Returns the midnight UTC that follows `days` days after an instant: "calculates the time by adding the number of days
 * specified in the rule to the object creation time and rounding up the resulting time to the next day at midnight UTC"
 * (intro-lifecycle-rules.html of the user guide). Infinity beyond the range of dates.
 */
export function dueAfter(since: number, days: number): number {
  const at = (Math.floor((since + days * DAY_MS) / DAY_MS) + 1) * DAY_MS
  return Number.isNaN(new Date(at).getTime()) ? Number.POSITIVE_INFINITY : at
}

/** Returns when an action is due for an object created at `since`; both in ms since 1970. */
export function dueAt(when: When, since: number): number {
  if ('date' in when) return when.date
  return since > 0 ? dueAfter(since, when.days) : Number.POSITIVE_INFINITY
}

export function matches(filter: LifecycleFilter, object: Candidate): boolean {
  const { prefix = '', tags = [], greaterThan = -1, lessThan = Number.POSITIVE_INFINITY } = filter
  return (
    object.key.startsWith(prefix) &&
    object.size > greaterThan &&
    object.size < lessThan &&
    tags.every(({ key, value }) => object.tags?.some((tag) => tag.key === key && tag.value === value) ?? true)
  )
}

/**
 * Returns the earliest expiration of an object: if several rules match, S3 applies the shortest period. Undefined if
 * the object never expires.
 */
export function expirationOf({ rules }: Pick<LifecycleConfiguration, 'rules'>, object: Candidate): Due | undefined {
  let soonest: Due | undefined
  for (const rule of rules) {
    const { expiration } = rule
    if (!rule.enabled || !expiration || 'expiredMarkers' in expiration || !matches(rule.filter, object)) continue
    const at = dueAt(expiration, object.lastModified)
    if (at < (soonest?.at ?? Number.POSITIVE_INFINITY)) soonest = { rule, at }
  }
  return soonest
}

/** Returns true if an enabled rule has a condition on tags. */
export function asksForTags({ rules }: LifecycleConfiguration): boolean {
  return rules.some(({ enabled, filter }) => enabled && (filter.tags?.length ?? 0) > 0)
}

/**
 * Returns x-amz-expiration of an object: the date on which a lifecycle rule will remove it, and the rule. Undefined if
 * none will, or if the rules cannot be read, because the object is served nevertheless.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html#API_HeadObject_ResponseSyntax
 */
export async function expirationHeader(
  context: Pick<Context, 'settings' | 'log'>,
  bucket: string,
  object: Pick<StoredObject, 'key' | 'size' | 'lastModified' | 'tags'>,
): Promise<string | undefined> {
  try {
    const configuration = await context.settings.get(bucket, 'lifecycle')
    if (!configuration) return undefined
    const due = expirationOf(configuration, {
      key: object.key,
      size: object.size,
      lastModified: Date.parse(object.lastModified),
      tags: object.tags ?? [],
    })
    return due && `expiry-date="${new Date(due.at).toUTCString()}", rule-id="${encodeURIComponent(due.rule.id)}"`
  } catch (err) {
    context.log.debug({ err, bucket }, 'could not read the lifecycle rules of a bucket')
    return undefined
  }
}
