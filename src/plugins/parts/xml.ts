import { parseXml } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import { requireDocument } from '../../http/read-request.js'

export {
  childText as text,
  document,
  element,
  escapeXml as escape,
  notOffered,
  notStrict as malformed,
  parseDocument as parseAny,
  parseXml as parse,
  requireChildren,
  requiredText as requireText,
  within,
  type XmlNode as Node,
} from '../../../common/xml.js'

/**
 * Reads the body of a request as an XML document, with its checksum verified, in the bounds of the server.
 * @param root name of the element that it must have at its root
 * @throws S3Error MalformedXML, EntityTooLarge, BadDigest
 */
export async function read(request: Pick<S3Request, 'body'>, { limits }: Pick<Context, 'limits'>, root: string) {
  return parseXml(await requireDocument(request.body, limits.maxDocumentBytes), root)
}
