import { S3Error } from '../../common/errors/s3-error.js'
import { systemError } from '../../common/errors/system-errors.js'
import { element, XML_DECLARATION } from '../../common/xml.js'
import type { Reply } from '../api/request.js'

/** The parts of an error document that describe the request. */
export interface ErrorContext {
  readonly id: string
  /** The decoded or raw path of the request. */
  readonly resource: string
  /** Default xml, the form of S3. */
  readonly form?: 'xml' | 'json' | 'sts' | 'control'
}

/**
 * Converts a thrown value. A failure of the operating system becomes what its table says (system-errors.ts); all else
 * that is not a valid S3Error becomes an InternalError, whose text goes to the log only.
 */
export function toS3Error(thrown: unknown): S3Error {
  if (thrown instanceof S3Error) return isSound(thrown) ? thrown : new S3Error('InternalError', { cause: thrown })
  return systemError(thrown) ?? new S3Error('InternalError', { cause: thrown })
}

/** Valid as a code and as the name of an element. */
const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,127}$/

/** Checks the members at run time: plugins need not be compiled against our types, and may imitate S3Error. */
function isSound({ code, status, message, fields }: S3Error): boolean {
  return (
    typeof code === 'string' &&
    NAME.test(code) &&
    Number.isInteger(status) &&
    status >= 400 &&
    status <= 599 &&
    typeof message === 'string' &&
    typeof fields === 'object' &&
    Object.entries(fields ?? {}).every(([name, value]) => NAME.test(name) && [value].flat().every(isText))
  )
}

function isText(value: unknown): boolean {
  return ['string', 'number', 'undefined'].includes(typeof value)
}

/** Formats `<Error>` without XML declaration, because it may follow the declaration of a late 200 response. */
export function errorElement(error: S3Error, errorContext: ErrorContext): string {
  const fields = Object.entries(error.fields).flatMap(([name, value]) =>
    typeof value === 'object' ? value.map((one) => element(name, one)) : [element(name, value)],
  )
  return [
    '<Error>',
    element('Code', error.code),
    element('Message', error.message),
    ...fields,
    element('Resource', errorContext.resource),
    element('RequestId', errorContext.id),
    element('HostId', errorContext.id),
    '</Error>',
  ].join('')
}

/**
 * Formats the error as JSON. AWS clients recognise an error by `__type` and x-amzn-errortype.
 * https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html#operation-error-serialization
 */
function jsonReply(error: S3Error, errorContext: ErrorContext): Reply {
  const { code, message, fields } = error
  const document = {
    __type: code,
    Code: code,
    Message: message,
    message,
    Resource: errorContext.resource,
    RequestId: errorContext.id,
    HostId: errorContext.id,
    Details: fields,
  }
  return {
    status: error.status,
    headers: { 'content-type': 'application/json', 'x-amzn-errortype': code, ...error.headers },
    body: `${JSON.stringify(document)}\n`,
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#RESTErrorResponses */
export function errorReply(error: S3Error, errorContext: ErrorContext): Reply {
  if (errorContext.form === 'json') return jsonReply(error, errorContext)
  if (errorContext.form === 'sts') return stsErrorReply(error, errorContext.id)
  if (errorContext.form === 'control') return controlErrorReply(error, errorContext)
  return {
    status: error.status,
    headers: { 'content-type': 'application/xml', ...error.headers },
    body: XML_DECLARATION + errorElement(error, errorContext),
  }
}

const CONTROL_NAMESPACE = 'http://awss3control.amazonaws.com/doc/2018-08-20/'

/** S3 Control nests the error: https://docs.aws.amazon.com/AmazonS3/latest/API/API_control_CreateJob.html */
function controlErrorReply(error: S3Error, { id }: ErrorContext): Reply {
  const inner = `<Error>${element('Code', error.code)}${element('Message', error.message)}</Error>`
  return {
    status: error.status,
    headers: { 'content-type': 'application/xml', ...error.headers },
    body: `${XML_DECLARATION}<ErrorResponse xmlns="${CONTROL_NAMESPACE}">${inner}${element('RequestId', id)}${element('HostId', id)}</ErrorResponse>`,
  }
}

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
function stsErrorReply(error: S3Error, requestId: string): Reply {
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
