import { randomBytes } from 'node:crypto'
import { S3Error } from '../../common/errors/s3-error.js'
import { malformed, requireChildren, requiredText } from '../../common/xml/strict-xml.js'
import { childText, parseXml, type XmlNode } from '../../common/xml/xml.js'
import { DESTINATION_KINDS, type DestinationKind, type NotificationRule } from './configuration.js'
import { arnOfWebhook, webhookOfArn } from './delivery/webhooks.js'
import { eventsOf, selectors } from './event-names.js'
import { refuseOverlaps } from './rules.js'

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
export async function readConfiguration(
  bytes: Buffer,
  declared: (webhook: string) => boolean,
): Promise<readonly NotificationRule[]> {
  const root = await parseXml(bytes, 'NotificationConfiguration')
  if (root.children.has('EventBridgeConfiguration')) {
    throw new S3Error('NotImplemented', {
      message: 'EventBridge is not implemented: name webhooks that this server was started with (--webhook).',
    })
  }
  requireChildren(root, 'NotificationConfiguration', { many: DESTINATION_KINDS.map(elementOf) })
  const rules = DESTINATION_KINDS.flatMap((kind) =>
    (root.children.get(elementOf(kind)) ?? []).map((node) => readRule(node, kind)),
  )
  if (rules.length > MAX_RULES) throw invalid(`A bucket can have ${MAX_RULES} notification configurations at most.`)
  if (new Set(rules.map(({ id }) => id)).size < rules.length)
    throw invalid('Same ID used for multiple configurations. IDs must be unique')
  refuseUnknown(rules, declared)
  refuseOverlaps(rules)
  return rules
}

/** Returns the name of the element of a rule, such as `QueueConfiguration`. */
export function elementOf(kind: DestinationKind): string {
  return `${kind}Configuration`
}

function readRule(node: XmlNode, kind: DestinationKind): NotificationRule {
  const name = elementOf(kind)
  requireChildren(node, name, { once: ['Id', kind, 'Filter'], many: ['Event'] })
  const id = childText(node, 'Id') || randomBytes(24).toString('base64url')
  if (id.length > MAX_ID) throw invalid(`The Id of a configuration has ${MAX_ID} characters at most.`)
  const arn = requiredText(node, name, kind)
  const webhook = webhookOfArn(arn)
  if (webhook === undefined) throw unknownDestination([arn])
  const events = (node.children.get('Event') ?? []).map(({ text }) => text)
  if (events.length === 0) throw malformed(`${name} needs an Event.`)
  for (const event of events) {
    if (eventsOf(event).length > 0) continue
    throw invalid(
      `A specified event is not supported for notifications: ${event.slice(0, 100)}. Supported are ${selectors.join(', ')}.`,
    )
  }
  return { id, kind, webhook, events: [...new Set(events)], ...readFilter(node) }
}

function readFilter(rule: XmlNode): Pick<NotificationRule, 'prefix' | 'suffix'> {
  const filter = rule.children.get('Filter')?.[0]
  if (!filter) return {}
  requireChildren(filter, 'Filter', { once: ['S3Key'] })
  const key = filter.children.get('S3Key')?.[0]
  if (!key) return {}
  requireChildren(key, 'S3Key', { many: ['FilterRule'] })
  const found = new Map<string, string>()
  for (const node of key.children.get('FilterRule') ?? []) {
    requireChildren(node, 'FilterRule', { once: ['Name', 'Value'] })
    const name = requiredText(node, 'FilterRule', 'Name').toLowerCase()
    const value = requiredText(node, 'FilterRule', 'Value')
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
