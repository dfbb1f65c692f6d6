import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../errors/s3-error.js'
import type { Precondition } from '../../store/store.js'
import { listsEtag, unquoted } from './etags.js'

/**
 * `If-None-Match: *` and `If-Match: <etag>` on a write: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
 * Undefined when the request has neither. Throws NotImplemented for an If-None-Match that names an ETag, as S3 does.
 */
export function writePrecondition(headers: IncomingHttpHeaders): Precondition | undefined {
  const match = headers['if-match']
  const noneMatch = headers['if-none-match']
  if (noneMatch !== undefined && unquoted(noneMatch) !== '*') {
    throw new S3Error('NotImplemented', {
      message: 'On a write If-None-Match can only be "*".',
      fields: { Header: 'If-None-Match' },
    })
  }
  if (match === undefined && noneMatch === undefined) return undefined
  return (current) => {
    if (noneMatch !== undefined && current)
      throw new S3Error('PreconditionFailed', { fields: { Condition: 'If-None-Match' } })
    if (match === undefined) return
    if (!current) throw new S3Error('NoSuchKey')
    if (!listsEtag(match, current.etag)) throw new S3Error('PreconditionFailed', { fields: { Condition: 'If-Match' } })
  }
}
