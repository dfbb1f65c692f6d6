import { element, XML_DECLARATION } from '../../common/xml/xml.js'
import { type Reply, xml } from '../../response/reply.js'
import { STS_NAMESPACE } from '../../response/sts-error-reply.js'

/**
 * The answer of an action of the security token service.
 * @param content markup of the result
 */
export function stsReply(action: string, content: string, requestId: string): Reply {
  const result = `<${action}Result>${content}</${action}Result>`
  const metadata = `<ResponseMetadata>${element('RequestId', requestId)}</ResponseMetadata>`
  return xml(`${XML_DECLARATION}<${action}Response xmlns="${STS_NAMESPACE}">${result}${metadata}</${action}Response>`)
}
