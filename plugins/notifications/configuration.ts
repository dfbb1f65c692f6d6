import { randomBytes } from 'node:crypto'
import { type ObjectEvent, S3Error, xml } from 'dealgate/plugin'
import { arnOfWebhook, webhookOfArn } from './webhooks.js'

declare module 'dealgate/plugin' {
  interface SettingTypes {
    notifications: NotificationConfiguration
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html */
interface NotificationConfiguration {
  /** Canonical user id of the bucket's owner, for events. */
  readonly owner: string
  readonly rules: readonly NotificationRule[]
}

/** Kinds of destinations in the S3 API; all of them name webhooks here. */
const DESTINATION_KINDS = ['Topic', 'Queue', 'CloudFunction'] as const

type DestinationKind = (typeof DESTINATION_KINDS)[number]

export interface NotificationRule {
  readonly id: string
  readonly kind: DestinationKind
  /** Name of the webhook. */
  readonly webhook: string
  /** Events as the client sent them: `s3:ObjectCreated:*`. */
  readonly events: readonly string[]
  /** Prefix of keys; absent for any. */
  readonly prefix?: string
  readonly suffix?: string
}

/** https://docs.aws.amazon.com/general/latest/gr/s3.html#limits_s3 */
const MAX_RULES = 100

/** Characters. */
const MAX_ID = 255

/** Bytes. */
const MAX_FILTER = 1024

/**
 * Reads a `<NotificationConfiguration>`:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html. A destination of each
 * kind may name a webhook.
 * @param declared returns whether a webhook of that name is declared
 * @throws S3Error MalformedXML, InvalidArgument, NotImplemented
 */
export function readConfiguration(root: xml.Node, declared: (webhook: string) => boolean): readonly NotificationRule[] {
  if (root.children.has('EventBridgeConfiguration')) {
    throw new S3Error('NotImplemented', {
      message: 'EventBridge is not implemented: name webhooks that this server was started with (--webhook).',
    })
  }
  xml.requireChildren(root, 'NotificationConfiguration', { many: DESTINATION_KINDS.map(elementOf) })
  const rules = DESTINATION_KINDS.flatMap((kind) =>
    (root.children.get(elementOf(kind)) ?? []).map((node) => xml.within(node, () => readRule(node, kind))),
  )
  if (rules.length > MAX_RULES) throw invalid(`A bucket can have ${MAX_RULES} notification configurations at most.`)
  if (new Set(rules.map(({ id }) => id)).size < rules.length)
    throw invalid('Same ID used for multiple configurations. IDs must be unique')
  refuseUnknown(rules, declared)
  refuseOverlaps(rules)
  return rules
}

/** Returns the name of the element of a rule, such as `QueueConfiguration`. */
function elementOf(kind: DestinationKind): string {
  return `${kind}Configuration`
}

function readRule(node: xml.Node, kind: DestinationKind): NotificationRule {
  const name = elementOf(kind)
  xml.requireChildren(node, name, { once: ['Id', kind, 'Filter'], many: ['Event'] })
  const id = xml.text(node, 'Id') || randomBytes(24).toString('base64url')
  if (id.length > MAX_ID) throw invalid(`The Id of a configuration has ${MAX_ID} characters at most.`)
  const arn = xml.requireText(node, name, kind)
  const webhook = webhookOfArn(arn)
  if (webhook === undefined) throw unknownDestination([arn])
  const events = (node.children.get('Event') ?? []).map(({ text }) => text)
  if (events.length === 0) throw xml.malformed(`${name} needs an Event.`)
  for (const event of events) {
    if (eventsOf(event).length > 0) continue
    throw invalid(
      `A specified event is not supported for notifications: ${event.slice(0, 100)}. Supported are ${selectors.join(', ')}.`,
    )
  }
  return { id, kind, webhook, events: [...new Set(events)], ...readFilter(node) }
}

function readFilter(rule: xml.Node): Pick<NotificationRule, 'prefix' | 'suffix'> {
  const filter = rule.children.get('Filter')?.[0]
  if (!filter) return {}
  xml.requireChildren(filter, 'Filter', { once: ['S3Key'] })
  const key = filter.children.get('S3Key')?.[0]
  if (!key) return {}
  xml.requireChildren(key, 'S3Key', { many: ['FilterRule'] })
  const found = new Map<string, string>()
  for (const node of key.children.get('FilterRule') ?? []) {
    xml.requireChildren(node, 'FilterRule', { once: ['Name', 'Value'] })
    const name = xml.requireText(node, 'FilterRule', 'Name').toLowerCase()
    const value = xml.requireText(node, 'FilterRule', 'Value')
    if (name !== 'prefix' && name !== 'suffix') throw invalid('filter rule name must be either prefix or suffix')
    if (found.has(name)) throw invalid(`Cannot specify more than one ${name} rule in a filter.`)
    if (Buffer.byteLength(value) > MAX_FILTER)
      throw invalid(`Size of filter rule value cannot exceed ${MAX_FILTER} bytes in UTF-8 representation`)
    found.set(name, value)
  }
  return Object.fromEntries(found)
}

function refuseUnknown(rules: readonly NotificationRule[], declared: (webhook: string) => boolean): void {
  const unknown = new Set(rules.map(({ webhook }) => webhook).filter((webhook) => !declared(webhook)))
  if (unknown.size > 0) throw unknownDestination([...unknown].map(arnOfWebhook))
}

function unknownDestination(arns: readonly string[]): S3Error {
  return invalidDestinations(
    arns.map((arn) => [
      arn.slice(0, 200),
      'a destination is arn:dealgate:webhook:::<name> of a webhook that this server was started with',
    ]),
  )
}

/** Returns the error of S3 for destinations that it cannot reach. */
export function invalidDestinations(destinations: readonly (readonly [arn: string, why: string])[]): S3Error {
  const fields = destinations.slice(0, 10).flatMap(([arn, why], i) => [
    [`ArgumentName${i + 1}`, arn],
    [`ArgumentValue${i + 1}`, why],
  ])
  const [[arn, why] = ['', '']] = destinations
  return new S3Error('InvalidArgument', {
    message: `Unable to validate the following destination configurations: ${arn}: ${why}`,
    fields: Object.fromEntries(fields),
  })
}

function invalid(message: string): S3Error {
  return new S3Error('InvalidArgument', { message })
}

export function configurationDocument(rules: readonly NotificationRule[]): string {
  return xml.document('NotificationConfiguration', rules.map(ruleElement).join(''))
}

function ruleElement(rule: NotificationRule): string {
  const name = elementOf(rule.kind)
  const filters = [filterRule('Prefix', rule.prefix), filterRule('Suffix', rule.suffix)].join('')
  return [
    `<${name}>`,
    xml.element('Id', rule.id),
    xml.element(rule.kind, arnOfWebhook(rule.webhook)),
    ...rule.events.map((event) => xml.element('Event', event)),
    filters === '' ? '' : `<Filter><S3Key>${filters}</S3Key></Filter>`,
    `</${name}>`,
  ].join('')
}

function filterRule(name: string, value: string | undefined): string {
  return value === undefined
    ? ''
    : `<FilterRule>${xml.element('Name', name)}${xml.element('Value', value)}</FilterRule>`
}

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
function refuseOverlaps(rules: readonly NotificationRule[]): void {
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

/** All events; the type ensures that none is missing. */
const EVENTS: Readonly<Record<ObjectEvent['name'], true>> = {
  'ObjectCreated:Put': true,
  'ObjectCreated:Post': true,
  'ObjectCreated:Copy': true,
  'ObjectCreated:CompleteMultipartUpload': true,
  'ObjectRemoved:Delete': true,
  'ObjectRemoved:DeleteMarkerCreated': true,
  'ObjectTagging:Put': true,
  'ObjectTagging:Delete': true,
  'ObjectRestore:Post': true,
  'ObjectRestore:Completed': true,
  'ObjectRestore:Delete': true,
  'LifecycleExpiration:Delete': true,
  'LifecycleExpiration:DeleteMarkerCreated': true,
  LifecycleTransition: true,
  'Inventory:Failed': true,
}

const names = Object.keys(EVENTS) as ObjectEvent['name'][]

/**
 * The event selectors of rules: `s3:ObjectCreated:Put`, `s3:ObjectCreated:*` and so on. Other events of S3 never happen
 * here.
 */
export const selectors: readonly string[] = [...new Set([...names.map(familyOf), ...names])]
  .sort()
  .map((name) => `s3:${name}`)

/** Returns the events of a selector; empty for an unknown one. */
function eventsOf(selector: string): readonly ObjectEvent['name'][] {
  return names.filter((name) => selects(selector, name))
}

function selects(selector: string, name: ObjectEvent['name']): boolean {
  return selector === `s3:${name}` || selector === `s3:${familyOf(name)}`
}

/** Returns `ObjectCreated:*`; for an event without a family, its name. */
function familyOf(name: ObjectEvent['name']): string {
  return name.replace(/:.*/, ':*')
}
