import { S3Error } from '../../../common/errors/s3-error.js'
import {
  childText,
  element,
  notStrict,
  requireChildren,
  requiredText,
  wholeNumberText,
  within,
  type XmlNode,
} from '../../../common/xml.js'
import type { Tag } from '../../api/access.js'
import { checkTags, OBJECT_TAGS } from '../../http/tags.js'

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

export function filterElement(filter: LifecycleFilter): string {
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

/** Bytes of a key. */
const MAX_PREFIX = 1024
const SIZES = ['ObjectSizeGreaterThan', 'ObjectSizeLessThan'] as const
const ALONE = ['Prefix', 'Tag', ...SIZES]

/** The limit of tags of an object. */
const TAGS = { ...OBJECT_TAGS, tooMany: 'A rule cannot have more than 10 tags, the limit of an object.' }

/** Reads the `<Filter>` of a rule, or its `<Prefix>` in the older form. Throws S3Error. */
export function readFilter(rule: XmlNode): LifecycleFilter {
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
  const tags = (node.children.get('Tag') ?? []).map((tag) => within(tag, readTag))
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
