import { S3Error } from '../../errors/s3-error.js'

/** Version mark of our tokens: others are refused instead of misread. */
const MARK = '1'

/** An opaque continuation token: where the next page begins. Holds nothing but a name that the client was shown. */
export function encodeToken(after: string): string {
  return MARK + Buffer.from(after).toString('base64url')
}

/** Throws InvalidArgument for what is not a token of ours. */
export function decodeToken(token: string, parameter: string): string {
  const bytes = Buffer.from(token.slice(1), 'base64url')
  const after = bytes.toString('utf8')
  if (token.startsWith(MARK) && token.length > 1 && encodeToken(after) === token) return after
  throw new S3Error('InvalidArgument', {
    message: 'The continuation token provided is incorrect',
    fields: { ArgumentName: parameter },
  })
}
