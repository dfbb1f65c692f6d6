import type { S3Error } from '../common/errors/s3-error.js'
import { element, XML_DECLARATION } from '../common/xml/xml.js'
import type { Reply } from './reply.js'

export const STS_NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/'

/** Codes that the security token service has in place of those of S3. */
const NAMES: Readonly<Record<string, string>> = {
  InternalError: 'InternalFailure',
  InvalidAccessKeyId: 'InvalidClientTokenId',
  InvalidToken: 'InvalidClientTokenId',
  MaxMessageLengthExceeded: 'ValidationError',
  SlowDown: 'Throttling',
}

/** https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html */
export function stsErrorReply(error: S3Error, requestId: string): Reply {
  const content = [
    element('Type', error.status < 500 ? 'Sender' : 'Receiver'),
    element('Code', NAMES[error.code] ?? error.code),
    element('Message', error.message),
  ]
  return {
    status: error.status,
    headers: { 'content-type': 'text/xml', ...error.headers },
    body: `${XML_DECLARATION}<ErrorResponse xmlns="${STS_NAMESPACE}"><Error>${content.join('')}</Error>${element('RequestId', requestId)}</ErrorResponse>`,
  }
}
