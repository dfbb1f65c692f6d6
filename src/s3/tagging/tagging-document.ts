import { S3Error } from '../../common/errors/s3-error.js'
import { requireChildren } from '../../common/xml/strict-xml.js'
import { childText, document, element, parseXml, type XmlNode } from '../../common/xml/xml.js'
import type { Tag } from '../../state/state.js'
import { checkTags, type TagRules } from './tag-rules.js'

/** Reads a `<Tagging>` document. Throws S3Error MalformedXML, InvalidTag. */
export async function readTagging(bytes: Buffer, rules: TagRules): Promise<Tag[]> {
  const root = await parseXml(bytes, 'Tagging')
  requireChildren(root, 'Tagging', { once: ['TagSet'] })
  const set = root.children.get('TagSet')?.[0]
  if (!set) throw new S3Error('MalformedXML', { message: 'Tagging must hold one TagSet.' })
  return readTags(set, rules)
}

/** Reads the `<Tag>` elements of a set. Throws like readTagging. */
export function readTags(set: XmlNode | undefined, rules: TagRules): Tag[] {
  if (set) requireChildren(set, 'A set of tags', { many: ['Tag'] })
  const tags = (set?.children.get('Tag') ?? []).map((tag): Tag => {
    requireChildren(tag, 'Tag', { once: ['Key', 'Value'] })
    const key = childText(tag, 'Key')
    const value = childText(tag, 'Value')
    if (key === undefined || value === undefined)
      throw new S3Error('MalformedXML', { message: 'Every Tag needs a Key and a Value.' })
    return { key, value }
  })
  checkTags(tags, rules)
  return tags
}

export function taggingDocument(tags: readonly Tag[]): string {
  const set = tags.map(({ key, value }) => `<Tag>${element('Key', key)}${element('Value', value)}</Tag>`)
  return document('Tagging', `<TagSet>${set.join('')}</TagSet>`)
}
