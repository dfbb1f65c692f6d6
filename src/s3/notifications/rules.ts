import { S3Error } from '../../common/errors/s3-error.js'
import type { ObjectEvent } from '../../plugins/forms/hooks.js'
import type { NotificationRule } from './configuration.js'
import { eventsOf, selects } from './event-names.js'

export function wants(rule: NotificationRule, event: Pick<ObjectEvent, 'name' | 'key'>): boolean {
  const { prefix = '', suffix = '' } = rule
  return (
    event.key.startsWith(prefix) &&
    event.key.endsWith(suffix) &&
    rule.events.some((selector) => selects(selector, event.name))
  )
}

/**
 * Throws InvalidArgument if one event of one key could match two rules, whatever their destinations:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html#notification-how-to-filtering-examples-invalid
 */
export function refuseOverlaps(rules: readonly NotificationRule[]): void {
  for (const [i, one] of rules.entries()) {
    const events = new Set(one.events.flatMap(eventsOf))
    for (const other of rules.slice(i + 1)) {
      const event = other.events.flatMap(eventsOf).find((name) => events.has(name))
      if (event === undefined || !filtersOverlap(one, other)) continue
      const filtered = [one, other].some(({ prefix, suffix }) => prefix !== undefined || suffix !== undefined)
      throw new S3Error('InvalidArgument', {
        message: filtered
          ? `Configuration is ambiguously defined. Cannot have overlapping suffixes in two rules if the prefixes are overlapping for the same event type. "${one.id}" and "${other.id}" share s3:${event}.`
          : `Configurations overlap. Configurations on the same bucket cannot share a common event type. "${one.id}" and "${other.id}" share s3:${event}.`,
      })
    }
  }
}

/** Returns true if some key could match both filters. */
function filtersOverlap(one: NotificationRule, other: NotificationRule): boolean {
  const { prefix: p = '', suffix: s = '' } = one
  const { prefix: q = '', suffix: t = '' } = other
  return (p.startsWith(q) || q.startsWith(p)) && (s.endsWith(t) || t.endsWith(s))
}
