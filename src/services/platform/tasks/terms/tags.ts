import { PlatformError } from '../../errors.js'

const MOST = 5
const LONGEST = 14

/** Reads a comma-separated list of tags, without empty and repeated ones. Throws PlatformError 400. */
export function readTags(text: string): string[] {
  const tags = [...new Set(text.split(',').map((tag) => tag.trim()))].filter((tag) => tag !== '')
  if (tags.length > MOST) throw new PlatformError(400, `tags: a task has at most ${MOST} tags.`)
  for (const tag of tags) {
    if ([...tag].length > LONGEST || /\p{Cc}/u.test(tag)) {
      throw new PlatformError(400, `tags: a tag has at most ${LONGEST} characters, and no control characters.`)
    }
  }
  return tags
}
