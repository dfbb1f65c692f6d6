import { uriEncode } from '../../../common/sigv4.js'
import { element, XML_DECLARATION } from '../../../common/xml.js'
import type { Reply, ReplyHeaders, S3Request } from '../../api/request.js'
import type { FormFields } from '../../http/form/form-fields.js'
import { empty, xml } from '../../http/reply.js'

/**
 * Creates the reply that the form requests: a redirect, 200, 201 with a document, or 204.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html
 * @param reported headers of the reply to a write, with the ETag in quotes
 */
export function answerForm(
  request: S3Request<'bucket'>,
  fields: FormFields,
  key: string,
  reported: ReplyHeaders & { readonly etag: string },
): Reply {
  const { bucket } = request
  const { etag } = reported
  const location = locationOf(request, key)
  const headers = { ...reported, location }
  const redirect = redirectUrl(fields.get('success_action_redirect') ?? fields.get('redirect'), { bucket, key, etag })
  if (redirect !== undefined) return empty({ ...headers, location: redirect }, 303)
  switch (fields.get('success_action_status')) {
    case '200':
      return empty(headers)
    case '201':
      return xml(
        `${XML_DECLARATION}<PostResponse>${element('Location', location)}${element('Bucket', bucket)}${element('Key', key)}${element('ETag', etag)}</PostResponse>`,
        headers,
        201,
      )
    default:
      return empty(headers, 204)
  }
}

function locationOf({ secure, headers, rawPath }: S3Request<'bucket'>, key: string): string {
  return `${secure ? 'https' : 'http'}://${headers.host ?? 'localhost'}${rawPath.replace(/\/$/, '')}/${uriEncode(key, true)}`
}

/** Returns undefined without a redirect or for an invalid or non-HTTP URL, which S3 ignores. */
function redirectUrl(text: string | undefined, reported: Readonly<Record<string, string>>): string | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
  const query = Object.entries(reported).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  url.search = `${url.search === '' ? '?' : `${url.search}&`}${query.join('&')}`
  return url.href
}
