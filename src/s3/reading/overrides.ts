import { S3Error } from '../../common/errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import { OVERRIDES } from './object-headers.js'

/**
 * Applies response-content-type and similar parameters. Values are percent-decoded UTF-8; headers carry them as bytes.
 */
export function withOverrides(request: S3Request<'object'>, headers: ReplyHeaders): ReplyHeaders {
  if (request.query.entries.length === 0) return headers
  const changed = { ...headers }
  for (const [parameter, header] of Object.entries(OVERRIDES)) {
    const value = request.query.get(parameter)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a header value can hold none of them
    if (value !== undefined) changed[header] = Buffer.from(value.replace(/[\x00-\x1f\x7f]/g, ' ')).toString('latin1')
  }
  return changed
}

/**
 * Throws InvalidRequest for overrides of anonymous callers, who could otherwise serve their own pages from this server.
 */
export function refuseAnonymousOverrides({ query }: S3Request<'object'>, { caller }: Context): void {
  if (caller) return
  const given = Object.keys(OVERRIDES).find((parameter) => query.has(parameter))
  if (given === undefined) return
  throw new S3Error('InvalidRequest', {
    message: 'Request specific response headers cannot be used for anonymous GET requests.',
    fields: { ArgumentName: given },
  })
}
