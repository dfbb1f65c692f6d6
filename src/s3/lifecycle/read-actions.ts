import { DAY_MS } from '../../common/durations.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { malformed, requireChildren, requiredText, wholeNumberText } from '../../common/xml/strict-xml.js'
import { childText, type XmlNode } from '../../common/xml/xml.js'
import type { ExpiredMarkers, LifecycleFilter, LifecycleRule, When } from './configuration.js'

/** xs:int */
const MAX_DAYS = 2_147_483_647

export function readExpiration(rule: XmlNode, filter: LifecycleFilter): When | ExpiredMarkers | undefined {
  const node = rule.children.get('Expiration')?.[0]
  if (!node) return undefined
  requireChildren(node, 'Expiration', { once: ['Days', 'Date', 'ExpiredObjectDeleteMarker'] })
  const marker = childText(node, 'ExpiredObjectDeleteMarker')
  if (marker === undefined) return readWhen(node, 'Expiration', 1)
  if (node.children.size > 1) throw malformed('ExpiredObjectDeleteMarker cannot stand beside Days or Date.')
  refuseWith('ExpiredObjectDeleteMarker', filter)
  return { expiredMarkers: readBoolean(marker) }
}

export function readTransitions(
  rule: XmlNode,
  id: string,
  offered: (storageClass: string) => boolean,
): NonNullable<LifecycleRule['transitions']> {
  const transitions = (rule.children.get('Transition') ?? []).map((node) => {
    requireChildren(node, 'Transition', { once: ['Days', 'Date', 'StorageClass'] })
    const storageClass = requiredText(node, 'Transition', 'StorageClass')
    if (!offered(storageClass)) {
      throw new S3Error('InvalidStorageClass', {
        message: `Rule "${id}": the storage class ${storageClass} is not available, because no plugin implements it.`,
      })
    }
    return { ...readWhen(node, 'Transition', 0), storageClass }
  })
  if (new Set(transitions.map(({ storageClass }) => storageClass)).size < transitions.length)
    throw new S3Error('InvalidRequest', {
      message: "'StorageClass' must be different for 'Transition' actions in a rule",
    })
  return transitions
}

/** Reads the days after which uploads are aborted; undefined if the rule has no such action. */
export function readAbort(rule: XmlNode, filter: LifecycleFilter): number | undefined {
  const node = rule.children.get('AbortIncompleteMultipartUpload')?.[0]
  if (!node) return undefined
  requireChildren(node, 'AbortIncompleteMultipartUpload', { once: ['DaysAfterInitiation'] })
  refuseWith('AbortIncompleteMultipartUpload', filter)
  const text = requiredText(node, 'AbortIncompleteMultipartUpload', 'DaysAfterInitiation')
  return readDays(text, 'DaysAfterInitiation', 'AbortIncompleteMultipartUpload', 1)
}

/** Throws InvalidRequest for tags and sizes with an action on uploads or delete markers, which have neither. */
function refuseWith(action: string, filter: LifecycleFilter): void {
  if (filter.tags) throw new S3Error('InvalidRequest', { message: `${action} cannot be specified with Tags.` })
  if (filter.greaterThan !== undefined || filter.lessThan !== undefined)
    throw new S3Error('InvalidRequest', { message: `${action} cannot be specified with Object Size.` })
}

function readWhen(node: XmlNode, action: string, leastDays: number): When {
  const days = childText(node, 'Days')
  const date = childText(node, 'Date')
  if ((days === undefined) === (date === undefined)) throw malformed(`${action} needs either Days or Date.`)
  if (days !== undefined) return { days: readDays(days, 'Days', action, leastDays) }
  return { date: readDate(date ?? '') }
}

function readDays(text: string, name: string, action: string, least: number): number {
  const days = wholeNumberText(text, name)
  if (days >= least && days <= MAX_DAYS) return days
  throw new S3Error('InvalidArgument', {
    message: `'${name}' for ${action} action must be ${least === 1 ? 'a positive integer' : 'nonnegative'}, and at most ${MAX_DAYS}`,
    fields: { ArgumentName: name, ArgumentValue: String(days) },
  })
}

/** Reads an ISO 8601 day, or an instant at midnight UTC. */
function readDate(text: string): number {
  const given = text.trim()
  const form = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?)?$/
  // ECMAScript reads a time without a zone as local time; S3 uses only UTC.
  const time = Date.parse(/T[^Z+-]*$/.test(given) ? `${given}Z` : given)
  if (!form.test(given) || Number.isNaN(time)) throw malformed(`Date is not in ISO 8601: ${given.slice(0, 40)}`)
  if (time % DAY_MS === 0) return time
  throw new S3Error('InvalidArgument', {
    message: "'Date' must be at midnight GMT",
    fields: { ArgumentName: 'Date', ArgumentValue: given },
  })
}

function readBoolean(text: string): boolean {
  const value = { true: true, false: false, '1': true, '0': false }[text.trim()]
  if (value === undefined) throw malformed('ExpiredObjectDeleteMarker must be true or false.')
  return value
}
