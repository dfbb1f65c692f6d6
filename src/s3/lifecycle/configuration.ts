import { randomBytes } from 'node:crypto'
import type { Owned, Tag } from '../../api/access.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { DAY_MS } from '../../common/time.js'
import {
  childText,
  document,
  element,
  notStrict,
  parseXml,
  requireChildren,
  requiredText,
  wholeNumberText,
  type XmlNode,
} from '../../common/xml.js'
import { checkTags, OBJECT_TAGS } from '../tags.js'

declare module '../../api/settings.js' {
  interface SettingTypes {
    lifecycle: LifecycleConfiguration
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html */
export interface LifecycleConfiguration {
  readonly rules: readonly LifecycleRule[]
  /** Determines which objects are too small for transitions of rules without a size condition. */
  readonly minimumTransitionSize: MinimumTransitionSize
  /** The account that owns the bucket, whose rights the rules have; absent: the server's own. */
  readonly owned?: Owned
}

export const MINIMUM_TRANSITION_SIZES = ['all_storage_classes_128K', 'varies_by_storage_class'] as const

export type MinimumTransitionSize = (typeof MINIMUM_TRANSITION_SIZES)[number]

export interface LifecycleRule {
  readonly id: string
  readonly enabled: boolean
  readonly filter: LifecycleFilter
  readonly expiration?: When | ExpiredMarkers
  readonly transitions?: readonly (When & { readonly storageClass: string })[]
  /** Days after which an incomplete upload is aborted. */
  readonly abortDays?: number
}

/** Days since the creation of the object, or a date in ms since 1970, midnight UTC. */
export type When = { readonly days: number } | { readonly date: number }

/** ExpiredObjectDeleteMarker. It has no effect: delete markers stay until a client removes them. */
interface ExpiredMarkers {
  readonly expiredMarkers: boolean
}

/** Selects the objects of a rule: those that match all given conditions. */
export interface LifecycleFilter {
  /** Form in which the filter was sent, and is returned: `<Prefix>` of the rule, `<Filter>` or `<Filter><And>`. */
  readonly form: 'prefix' | 'filter' | 'and'
  readonly prefix?: string
  readonly tags?: readonly Tag[]
  /** Bytes, exclusive. */
  readonly greaterThan?: number
  /** Bytes, exclusive. */
  readonly lessThan?: number
}

export function configurationDocument({ rules }: Pick<LifecycleConfiguration, 'rules'>): string {
  return document('LifecycleConfiguration', rules.map(ruleElement).join(''))
}

function ruleElement(rule: LifecycleRule): string {
  const { expiration, transitions = [], abortDays } = rule
  return [
    '<Rule>',
    element('ID', rule.id),
    filterElement(rule.filter),
    element('Status', rule.enabled ? 'Enabled' : 'Disabled'),
    ...transitions.map(
      (transition) =>
        `<Transition>${whenElement(transition)}${element('StorageClass', transition.storageClass)}</Transition>`,
    ),
    expiration
      ? `<Expiration>${'expiredMarkers' in expiration ? element('ExpiredObjectDeleteMarker', expiration.expiredMarkers) : whenElement(expiration)}</Expiration>`
      : '',
    abortDays === undefined
      ? ''
      : `<AbortIncompleteMultipartUpload>${element('DaysAfterInitiation', abortDays)}</AbortIncompleteMultipartUpload>`,
    '</Rule>',
  ].join('')
}

function filterElement(filter: LifecycleFilter): string {
  const conditions = [
    element('Prefix', filter.prefix),
    ...(filter.tags ?? []).map(({ key, value }) => `<Tag>${element('Key', key)}${element('Value', value)}</Tag>`),
    element('ObjectSizeGreaterThan', filter.greaterThan),
    element('ObjectSizeLessThan', filter.lessThan),
  ].join('')
  switch (filter.form) {
    case 'prefix':
      return conditions
    case 'filter':
      return `<Filter>${conditions}</Filter>`
    case 'and':
      return `<Filter><And>${conditions}</And></Filter>`
  }
}

function whenElement(when: When): string {
  return 'days' in when ? element('Days', when.days) : element('Date', new Date(when.date).toISOString())
}

const MAX_RULES = 1000

/** Characters. */
const MAX_ID = 255

/** Buckets have no versions, so rules about them would have no effect. */
const OF_VERSIONS = ['NoncurrentVersionExpiration', 'NoncurrentVersionTransition']

/**
 * Reads a `<LifecycleConfiguration>`:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html, and the older form with a
 * prefix instead of a filter.
 * @param offered returns whether a storage class is available
 * @throws S3Error MalformedXML, InvalidRequest, InvalidArgument, InvalidTag, InvalidStorageClass, NotImplemented
 */
export async function readConfiguration(
  bytes: Buffer,
  offered: (storageClass: string) => boolean,
): Promise<readonly LifecycleRule[]> {
  const root = await parseXml(bytes, 'LifecycleConfiguration')
  requireChildren(root, 'LifecycleConfiguration', { many: ['Rule'] })
  const nodes = root.children.get('Rule') ?? []
  if (nodes.length === 0 || nodes.length > MAX_RULES)
    throw notStrict(`A lifecycle configuration has 1 to ${MAX_RULES} rules.`)
  const rules = nodes.map((node) => readRule(node, offered))
  refuseMixedForms(rules)
  if (new Set(rules.map(({ id }) => id)).size < rules.length) {
    throw new S3Error('InvalidArgument', {
      message: 'Rule ID must be unique. Found same ID for more than one rule',
      fields: { ArgumentName: 'ID' },
    })
  }
  return rules
}

function readRule(node: XmlNode, offered: (storageClass: string) => boolean): LifecycleRule {
  requireChildren(node, 'Rule', {
    once: ['ID', 'Prefix', 'Filter', 'Status', 'Expiration', 'AbortIncompleteMultipartUpload'],
    many: ['Transition', ...OF_VERSIONS],
  })
  const id = readId(node)
  for (const name of OF_VERSIONS) {
    if (node.children.has(name)) {
      throw new S3Error('NotImplemented', {
        message: `Rule "${id}": ${name} is not implemented: rules act on current objects alone.`,
      })
    }
  }
  const status = childText(node, 'Status')
  if (status !== 'Enabled' && status !== 'Disabled')
    throw notStrict('The Status of a rule must be Enabled or Disabled.')
  const filter = readFilter(node)
  const expiration = readExpiration(node, filter)
  const transitions = readTransitions(node, id, offered)
  const abortDays = readAbort(node, filter)
  if (!expiration && transitions.length === 0 && abortDays === undefined)
    throw new S3Error('InvalidRequest', { message: 'At least one action needs to be specified in a rule' })
  return {
    id,
    enabled: status === 'Enabled',
    filter,
    ...(expiration && { expiration }),
    ...(transitions.length > 0 && { transitions }),
    ...(abortDays !== undefined && { abortDays }),
  }
}

/** Generates an id for a rule without one, as S3 does. */
function readId(node: XmlNode): string {
  const id = childText(node, 'ID') || randomBytes(24).toString('base64url')
  if (id.length > MAX_ID) {
    throw new S3Error('InvalidArgument', {
      message: `ID length should not exceed allowed limit of ${MAX_ID}`,
      fields: { ArgumentName: 'ID', ArgumentValue: id.slice(0, MAX_ID) },
    })
  }
  return id
}

function refuseMixedForms(rules: readonly LifecycleRule[]): void {
  if (new Set(rules.map(({ filter }) => filter.form === 'prefix')).size > 1) {
    throw new S3Error('InvalidRequest', {
      message:
        'Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter. Write all rules in one form.',
    })
  }
}

/** Bytes of a key. */
const MAX_PREFIX = 1024
const SIZES = ['ObjectSizeGreaterThan', 'ObjectSizeLessThan'] as const
const ALONE = ['Prefix', 'Tag', ...SIZES]

/** The limit of tags of an object. */
const TAGS = { ...OBJECT_TAGS, tooMany: 'A rule cannot have more than 10 tags, the limit of an object.' }

/** Reads the `<Filter>` of a rule, or its `<Prefix>` in the older form. Throws S3Error. */
function readFilter(rule: XmlNode): LifecycleFilter {
  const prefix = rule.children.get('Prefix')?.[0]
  const filter = rule.children.get('Filter')?.[0]
  if ((prefix === undefined) === (filter === undefined)) throw notStrict('A rule needs either a Filter or a Prefix.')
  if (!filter) return { form: 'prefix', prefix: readPrefix(rule) }
  requireChildren(filter, 'Filter', { once: [...ALONE, 'And'] })
  if (filter.children.size > 1) throw notStrict('A Filter with several conditions must hold them in And.')
  const and = filter.children.get('And')?.[0]
  if (!and) return checked({ form: 'filter', ...readConditions(filter) })
  requireChildren(and, 'And', { once: ['Prefix', ...SIZES], many: ['Tag'] })
  // An empty And would match every object of the bucket, which is certainly a mistake.
  if (and.children.size === 0) throw notStrict('And must hold two conditions or more.')
  return checked({ form: 'and', ...readConditions(and) })
}

function readConditions(node: XmlNode): Omit<LifecycleFilter, 'form'> {
  const prefix = readPrefix(node)
  const tags = (node.children.get('Tag') ?? []).map(readTag)
  const [greaterThan, lessThan] = SIZES.map((name) => readSize(node, name))
  return {
    ...(prefix !== undefined && { prefix }),
    ...(tags.length > 0 && { tags }),
    ...(greaterThan !== undefined && { greaterThan }),
    ...(lessThan !== undefined && { lessThan }),
  }
}

function readPrefix(node: XmlNode): string | undefined {
  const prefix = childText(node, 'Prefix')
  if (prefix !== undefined && Buffer.byteLength(prefix) > MAX_PREFIX) {
    throw new S3Error('InvalidRequest', {
      message: `The maximum size of a prefix is ${MAX_PREFIX}.`,
      fields: { Size: Buffer.byteLength(prefix) },
    })
  }
  return prefix
}

function readTag(node: XmlNode): Tag {
  requireChildren(node, 'Tag', { once: ['Key', 'Value'] })
  return { key: requiredText(node, 'Tag', 'Key'), value: requiredText(node, 'Tag', 'Value') }
}

function readSize(node: XmlNode, name: (typeof SIZES)[number]): number | undefined {
  const text = childText(node, name)
  if (text === undefined) return undefined
  const size = wholeNumberText(text, name)
  const least = name === 'ObjectSizeLessThan' ? 1 : 0
  if (size < least) throw new S3Error('InvalidRequest', { message: `'${name}' has to be ${least} or more` })
  return size
}

function checked(filter: LifecycleFilter): LifecycleFilter {
  const { tags = [], greaterThan = -1, lessThan = Number.POSITIVE_INFINITY } = filter
  if (new Set(tags.map(({ key }) => key)).size < tags.length)
    throw new S3Error('InvalidRequest', { message: 'Duplicate Tag Keys are not allowed.' })
  checkTags(tags, TAGS)
  if (greaterThan >= lessThan) {
    throw new S3Error('InvalidRequest', {
      message: "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'",
    })
  }
  return filter
}

/** xs:int */
const MAX_DAYS = 2_147_483_647

function readExpiration(rule: XmlNode, filter: LifecycleFilter): When | ExpiredMarkers | undefined {
  const node = rule.children.get('Expiration')?.[0]
  if (!node) return undefined
  requireChildren(node, 'Expiration', { once: ['Days', 'Date', 'ExpiredObjectDeleteMarker'] })
  const marker = childText(node, 'ExpiredObjectDeleteMarker')
  if (marker === undefined) return readWhen(node, 'Expiration', 1)
  if (node.children.size > 1) throw notStrict('ExpiredObjectDeleteMarker cannot stand beside Days or Date.')
  refuseWith('ExpiredObjectDeleteMarker', filter)
  return { expiredMarkers: readBoolean(marker) }
}

function readTransitions(
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
function readAbort(rule: XmlNode, filter: LifecycleFilter): number | undefined {
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
  if ((days === undefined) === (date === undefined)) throw notStrict(`${action} needs either Days or Date.`)
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
  if (!form.test(given) || Number.isNaN(time)) throw notStrict(`Date is not in ISO 8601: ${given.slice(0, 40)}`)
  if (time % DAY_MS === 0) return time
  throw new S3Error('InvalidArgument', {
    message: "'Date' must be at midnight GMT",
    fields: { ArgumentName: 'Date', ArgumentValue: given },
  })
}

function readBoolean(text: string): boolean {
  const value = { true: true, false: false, '1': true, '0': false }[text.trim()]
  if (value === undefined) throw notStrict('ExpiredObjectDeleteMarker must be true or false.')
  return value
}
