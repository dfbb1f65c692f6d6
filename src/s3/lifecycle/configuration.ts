import { randomBytes } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import { DAY_MS } from '../../../common/time.js'
import {
  childText,
  document,
  element,
  notStrict,
  parseXml,
  requireChildren,
  requiredText,
  wholeNumberText,
  within,
  type XmlNode,
} from '../../../common/xml.js'
import type { BucketOwner } from '../../api/access.js'
import { filterElement, type LifecycleFilter, readFilter } from './filter.js'

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
  readonly owned?: BucketOwner
}

export const MINIMUM_TRANSITION_SIZES = ['all_storage_classes_128K', 'varies_by_storage_class'] as const

export type MinimumTransitionSize = (typeof MINIMUM_TRANSITION_SIZES)[number]

export interface LifecycleRule {
  readonly id: string
  readonly enabled: boolean
  readonly filter: LifecycleFilter
  readonly expiration?: RuleTime | ExpiredMarkers
  readonly transitions?: readonly (RuleTime & { readonly storageClass: string })[]
  readonly noncurrentExpiration?: Noncurrent
  readonly noncurrentTransitions?: readonly (Noncurrent & { readonly storageClass: string })[]
  /** Days after which an incomplete upload is aborted. */
  readonly abortDays?: number
}

/** When a rule acts on a version that is no longer current. */
export interface Noncurrent {
  /** Since another version took its place. */
  readonly days: number
  /** Number of newer versions that are not current either, which must exist. */
  readonly newer?: number
}

/** Days since the creation of the object, or a date in ms since 1970, midnight UTC. */
export type RuleTime = { readonly days: number } | { readonly date: number }

/** ExpiredObjectDeleteMarker: delete markers that are the only version of their key are removed. */
interface ExpiredMarkers {
  readonly expiredMarkers: boolean
}

export function configurationDocument({ rules }: Pick<LifecycleConfiguration, 'rules'>): string {
  return document('LifecycleConfiguration', rules.map(ruleElement).join(''))
}

function ruleElement(rule: LifecycleRule): string {
  const { expiration, transitions = [], noncurrentExpiration, noncurrentTransitions = [], abortDays } = rule
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
    ...noncurrentTransitions.map(
      (transition) =>
        `<NoncurrentVersionTransition>${noncurrentElement(transition)}${element('StorageClass', transition.storageClass)}</NoncurrentVersionTransition>`,
    ),
    noncurrentExpiration
      ? `<NoncurrentVersionExpiration>${noncurrentElement(noncurrentExpiration)}</NoncurrentVersionExpiration>`
      : '',
    abortDays === undefined
      ? ''
      : `<AbortIncompleteMultipartUpload>${element('DaysAfterInitiation', abortDays)}</AbortIncompleteMultipartUpload>`,
    '</Rule>',
  ].join('')
}

function whenElement(when: RuleTime): string {
  return 'days' in when ? element('Days', when.days) : element('Date', new Date(when.date).toISOString())
}

function noncurrentElement({ days, newer }: Noncurrent): string {
  return element('NoncurrentDays', days) + element('NewerNoncurrentVersions', newer)
}

const MAX_RULES = 1000

/** Characters. */
const MAX_ID = 255

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
  const rules = nodes.map((node) => within(node, () => readRule(node, offered)))
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
    once: [
      ...['ID', 'Prefix', 'Filter', 'Status', 'Expiration', 'AbortIncompleteMultipartUpload'],
      'NoncurrentVersionExpiration',
    ],
    many: ['Transition', 'NoncurrentVersionTransition'],
  })
  const id = readId(node)
  const status = childText(node, 'Status')
  if (status !== 'Enabled' && status !== 'Disabled')
    throw notStrict('The Status of a rule must be Enabled or Disabled.')
  const filter = readFilter(node)
  const expiration = readExpiration(node, filter)
  const transitions = readTransitions(node, id, offered)
  const noncurrentExpiration = readNoncurrentExpiration(node, filter)
  const noncurrentTransitions = readNoncurrentTransitions(node, id, filter, offered)
  const abortDays = readAbort(node, filter)
  const actions = [expiration, ...transitions, noncurrentExpiration, ...noncurrentTransitions, abortDays]
  if (actions.every((action) => action === undefined))
    throw new S3Error('InvalidRequest', { message: 'At least one action needs to be specified in a rule' })
  return {
    id,
    enabled: status === 'Enabled',
    filter,
    ...(expiration && { expiration }),
    ...(transitions.length > 0 && { transitions }),
    ...(noncurrentExpiration && { noncurrentExpiration }),
    ...(noncurrentTransitions.length > 0 && { noncurrentTransitions }),
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

/** xs:int */
const MAX_DAYS = 2_147_483_647

function readExpiration(rule: XmlNode, filter: LifecycleFilter): RuleTime | ExpiredMarkers | undefined {
  const node = rule.children.get('Expiration')?.[0]
  if (!node) return undefined
  requireChildren(node, 'Expiration', { once: ['Days', 'Date', 'ExpiredObjectDeleteMarker'] })
  const marker = childText(node, 'ExpiredObjectDeleteMarker')
  if (marker === undefined) return within(node, () => readWhen(node, 'Expiration', 1))
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
    return within(node, () => ({
      ...readWhen(node, 'Transition', 0),
      storageClass: readClass(node, 'Transition', id, offered),
    }))
  })
  refuseSameClass(transitions, 'Transition')
  return transitions
}

function readClass(node: XmlNode, action: string, id: string, offered: (storageClass: string) => boolean): string {
  const storageClass = requiredText(node, action, 'StorageClass')
  if (offered(storageClass)) return storageClass
  throw new S3Error('InvalidStorageClass', {
    message: `Rule "${id}": the storage class ${storageClass} is not available, because no plugin implements it.`,
  })
}

function refuseSameClass(transitions: readonly { readonly storageClass: string }[], action: string): void {
  if (new Set(transitions.map(({ storageClass }) => storageClass)).size < transitions.length)
    throw new S3Error('InvalidRequest', {
      message: `'StorageClass' must be different for '${action}' actions in a rule`,
    })
}

function readNoncurrentExpiration(rule: XmlNode, filter: LifecycleFilter): Noncurrent | undefined {
  const action = 'NoncurrentVersionExpiration'
  const node = rule.children.get(action)?.[0]
  if (!node) return undefined
  requireChildren(node, action, { once: ['NoncurrentDays', NEWER] })
  return within(node, () => readNoncurrent(node, action, filter, 1))
}

function readNoncurrentTransitions(
  rule: XmlNode,
  id: string,
  filter: LifecycleFilter,
  offered: (storageClass: string) => boolean,
): NonNullable<LifecycleRule['noncurrentTransitions']> {
  const action = 'NoncurrentVersionTransition'
  const transitions = (rule.children.get(action) ?? []).map((node) => {
    requireChildren(node, action, { once: ['NoncurrentDays', NEWER, 'StorageClass'] })
    return within(node, () => ({
      ...readNoncurrent(node, action, filter, 0),
      storageClass: readClass(node, action, id, offered),
    }))
  })
  refuseSameClass(transitions, action)
  return transitions
}

const NEWER = 'NewerNoncurrentVersions'

/** The limit of S3. */
const MAX_NEWER = 100

function readNoncurrent(node: XmlNode, action: string, filter: LifecycleFilter, leastDays: number): Noncurrent {
  const days = readDays(requiredText(node, action, 'NoncurrentDays'), 'NoncurrentDays', action, leastDays)
  const text = childText(node, NEWER)
  if (text === undefined) return { days }
  // S3 refuses this, too: https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html
  if (filter.form === 'prefix')
    throw new S3Error('InvalidRequest', { message: `${NEWER} needs a Filter in its rule, in place of a Prefix.` })
  const newer = wholeNumberText(text, NEWER)
  if (newer >= 1 && newer <= MAX_NEWER) return { days, newer }
  throw new S3Error('InvalidArgument', {
    message: `'${NEWER}' for ${action} action must be between 1 and ${MAX_NEWER}`,
    fields: { ArgumentName: NEWER, ArgumentValue: text.slice(0, 40) },
  })
}

/** Reads the days after which uploads are aborted; undefined if the rule has no such action. */
function readAbort(rule: XmlNode, filter: LifecycleFilter): number | undefined {
  const node = rule.children.get('AbortIncompleteMultipartUpload')?.[0]
  if (!node) return undefined
  requireChildren(node, 'AbortIncompleteMultipartUpload', { once: ['DaysAfterInitiation'] })
  refuseWith('AbortIncompleteMultipartUpload', filter)
  const text = requiredText(node, 'AbortIncompleteMultipartUpload', 'DaysAfterInitiation')
  return within(node, () => readDays(text, 'DaysAfterInitiation', 'AbortIncompleteMultipartUpload', 1))
}

/** Throws InvalidRequest for tags and sizes with an action on uploads or delete markers, which have neither. */
function refuseWith(action: string, filter: LifecycleFilter): void {
  if (filter.tags) throw new S3Error('InvalidRequest', { message: `${action} cannot be specified with Tags.` })
  if (filter.greaterThan !== undefined || filter.lessThan !== undefined)
    throw new S3Error('InvalidRequest', { message: `${action} cannot be specified with Object Size.` })
}

function readWhen(node: XmlNode, action: string, leastDays: number): RuleTime {
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
