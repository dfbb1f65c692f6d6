import { S3Error } from '../../common/errors/s3-error.js'

/** Version of our tokens: others are refused instead of misread. */
const MARK = '1'

/**
 * Returns an opaque continuation token, which marks where the next page begins. It contains only a name that the client
 * has seen.
 */
export function encodeToken(after: string): string {
  return MARK + Buffer.from(after).toString('base64url')
}

/** Decodes a token. Throws InvalidArgument for any other text. */
export function decodeToken(token: string, parameter: string): string {
  const bytes = Buffer.from(token.slice(1), 'base64url')
  const after = bytes.toString('utf8')
  if (token.startsWith(MARK) && token.length > 1 && encodeToken(after) === token) return after
  throw new S3Error('InvalidArgument', {
    message: 'The continuation token provided is incorrect',
    fields: { ArgumentName: parameter },
  })
}
