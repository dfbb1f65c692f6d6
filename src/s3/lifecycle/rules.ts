import { compareUtf8 } from '../../../common/byte-order.js'
import { DAY_MS } from '../../../common/time.js'
import type { Tag } from '../../api/access.js'
import type { StoredObject } from '../../api/store.js'
import type { LifecycleConfiguration, LifecycleRule, Noncurrent, RuleTime } from './configuration.js'
import type { LifecycleFilter } from './filter.js'

/** The properties of an object that rules evaluate. */
export interface Candidate {
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** Milliseconds since 1970; 0 or less if unknown, and then the object never ages. */
  readonly lastModified: number
  readonly tags: readonly Tag[]
}

/** What rules judge a stored object by. */
export function candidateOf({
  key,
  size,
  lastModified,
  tags = [],
}: Pick<StoredObject, 'key' | 'size' | 'lastModified' | 'tags'>): Candidate {
  return { key, size, lastModified: Date.parse(lastModified), tags }
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
function dueAt(when: RuleTime, since: number): number {
  if ('date' in when) return when.date
  return since > 0 ? dueAfter(since, when.days) : Number.POSITIVE_INFINITY
}

function matches(filter: LifecycleFilter, object: Candidate): boolean {
  const { prefix = '', tags = [], greaterThan = -1, lessThan = Number.POSITIVE_INFINITY } = filter
  return (
    object.key.startsWith(prefix) &&
    object.size > greaterThan &&
    object.size < lessThan &&
    tags.every(({ key, value }) => object.tags.some((tag) => tag.key === key && tag.value === value))
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

/** Returns when the first rule aborts an upload that began at `initiated`, ms since 1970; undefined if none does. */
export function abortionOf(
  { rules }: Pick<LifecycleConfiguration, 'rules'>,
  { key, initiated }: { readonly key: string; readonly initiated: number },
): Due | undefined {
  let soonest: Due | undefined
  for (const rule of rules) {
    const { enabled, filter, abortDays } = rule
    if (!enabled || abortDays === undefined || !key.startsWith(filter.prefix ?? '')) continue
    const at = dueAfter(initiated, abortDays)
    if (at < (soonest?.at ?? Number.POSITIVE_INFINITY)) soonest = { rule, at }
  }
  return soonest
}

/** A version, or a delete marker, that is no longer current. */
export interface NoncurrentVersion {
  readonly key: string
  /** Absent for a delete marker, which has neither size nor tags. */
  readonly object?: Pick<Candidate, 'size' | 'tags'>
  /** Milliseconds since 1970: when another version took its place. NaN if unknown. */
  readonly since: number
  /** Number of objects that are newer than it and not current either. */
  readonly newer: number
}

/**
 * Returns how many newer objects, which are not current either, a version must have to be removed at `now`: the least
 * that a rule asks for. Undefined if no rule removes it.
 */
export function newerToExpire(
  { rules }: Pick<LifecycleConfiguration, 'rules'>,
  version: NoncurrentVersion,
  now: number,
): number | undefined {
  const due = rules.flatMap(({ enabled, filter, noncurrentExpiration: when }) =>
    enabled && when && isDue(when, filter, version, now) ? [when.newer ?? 0] : [],
  )
  return due.length === 0 ? undefined : Math.min(...due)
}

function isDue(when: Noncurrent, filter: LifecycleFilter, version: NoncurrentVersion, now: number): boolean {
  const { key, object, since, newer } = version
  if (newer < (when.newer ?? 0) || dueAt({ days: when.days }, since) > now) return false
  return object ? matches(filter, { key, ...object, lastModified: since }) : matchesMarker(filter, key)
}

function matchesMarker({ prefix = '', tags, greaterThan, lessThan }: LifecycleFilter, key: string): boolean {
  return key.startsWith(prefix) && !tags && greaterThan === undefined && lessThan === undefined
}

/**
 * True if a rule removes a delete marker that is the only version of its key. A rule with days or a date does, too, by
 * the age of the marker: lifecycle-expire-general-considerations.html of the user guide.
 */
export function expiresMarker(
  { rules }: Pick<LifecycleConfiguration, 'rules'>,
  { key, lastModified }: Pick<Candidate, 'key' | 'lastModified'>,
  now: number,
): boolean {
  return rules.some(({ enabled, filter, expiration }) => {
    if (!enabled || !expiration || !matchesMarker(filter, key)) return false
    return 'expiredMarkers' in expiration ? expiration.expiredMarkers : dueAt(expiration, lastModified) <= now
  })
}

/** The transition of a version that is not current: see `transitionOf`. */
export function noncurrentTransitionOf(
  configuration: LifecycleConfiguration,
  version: NoncurrentVersion,
  now: number,
): string | undefined {
  let latest: { readonly days: number; readonly storageClass: string } | undefined
  for (const rule of configuration.rules) {
    if (!rule.enabled) continue
    for (const transition of rule.noncurrentTransitions ?? []) {
      const { days, storageClass } = transition
      if ((version.object?.size ?? -1) < smallest(configuration, rule, storageClass)) continue
      if (isDue(transition, rule.filter, version, now) && (!latest || days > latest.days)) latest = transition
    }
  }
  return latest?.storageClass
}

/** True for a rule that may act on versions that are not current, or on delete markers. */
export function isAboutVersions(rule: LifecycleRule): boolean {
  const { enabled, filter, expiration, noncurrentExpiration, noncurrentTransitions } = rule
  if (!enabled || noncurrentExpiration || noncurrentTransitions) return enabled
  if (!expiration || !matchesMarker(filter, filter.prefix ?? '')) return false
  return !('expiredMarkers' in expiration) || expiration.expiredMarkers
}

/**
 * Returns the prefixes that cover all objects of these rules. None is below another, so that no object is listed twice.
 */
export function outermostPrefixes(rules: readonly Pick<LifecycleRule, 'filter'>[]): readonly string[] {
  const outermost: string[] = []
  for (const prefix of rules.map(({ filter }) => filter.prefix ?? '').sort(compareUtf8)) {
    const last = outermost.at(-1)
    if (last === undefined || !prefix.startsWith(last)) outermost.push(prefix)
  }
  return outermost
}

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
