import { S3Error } from '../../common/errors/s3-error.js'
import type { Tag } from '../../state/state.js'

/** Limits for the tags of buckets or objects, in addition to the rules for all tags. */
export interface TagRules {
  readonly maxTags: number
  /** S3's error message for too many tags. */
  readonly tooMany: string
  /** S3's error message for a key that begins with `aws:`. */
  readonly reserved: string
}

export const OBJECT_TAGS: TagRules = {
  maxTags: 10,
  tooMany: 'Object tags cannot be greater than 10',
  reserved: 'Your TagKey cannot be prefixed with aws:',
}
export const BUCKET_TAGS: TagRules = {
  maxTags: 50,
  tooMany: 'Bucket tag count cannot be greater than 50',
  reserved: 'System tags cannot be added/updated by requester',
}

/** UTF-16 code units. */
const MAX_KEY = 128
const MAX_VALUE = 256
/** Letters, digits and white space of any script, and `+ - = . _ : / @`. */
const ALLOWED = /^[\p{L}\p{M}\p{Nd}\p{Nl}\p{No}\p{Zs}+\-=._:/@]*$/u

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html and CostAllocTagging.html of the same
 * guide.
 * @throws S3Error InvalidTag, BadRequest for too many
 */
export function checkTags(tags: readonly Tag[], rules: TagRules): void {
  if (tags.length > rules.maxTags) throw new S3Error('BadRequest', { message: rules.tooMany })
  const seen = new Set<string>()
  for (const { key, value } of tags) {
    if (key === '' || key.length > MAX_KEY || !ALLOWED.test(key)) {
      throw new S3Error('InvalidTag', { message: 'The TagKey you have provided is invalid', fields: { TagKey: key } })
    }
    if (value.length > MAX_VALUE || !ALLOWED.test(value)) {
      throw new S3Error('InvalidTag', {
        message: 'The TagValue you have provided is invalid',
        fields: { TagKey: key, TagValue: value },
      })
    }
    if (/^aws:/i.test(key)) {
      throw new S3Error('InvalidTag', { message: rules.reserved, fields: { TagKey: key } })
    }
    if (seen.has(key)) {
      throw new S3Error('InvalidTag', {
        message: 'Cannot provide multiple Tags with the same key',
        fields: { TagKey: key },
      })
    }
    seen.add(key)
  }
}
