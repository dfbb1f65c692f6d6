import type { S3Request } from '../../request/s3-request.js'
import type { ReplyHeaders } from '../../response/reply.js'
import { OVERRIDES } from './object-headers.js'

/** Applies response-content-type and its like. Values are percent-decoded UTF-8; a header carries them as bytes. */
export function withOverrides(request: S3Request<'object'>, headers: ReplyHeaders): ReplyHeaders {
  const changed = { ...headers }
  for (const [parameter, header] of Object.entries(OVERRIDES)) {
    const value = request.query.get(parameter)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a header value can hold none of them
    if (value !== undefined) changed[header] = Buffer.from(value.replace(/[\x00-\x1f\x7f]/g, ' ')).toString('latin1')
  }
  return changed
}
