import { S3Error } from '../errors/s3-error.js'
import { element, XML_DECLARATION } from '../xml.js'
import type { Reply } from './reply.js'

/** What the error document says of the request. */
export interface ErrorPlace {
  readonly id: string
  /** The decoded or raw path that the client asked for. */
  readonly resource: string
  /** Default xml. */
  readonly form?: 'xml' | 'json'
}

/** Anything thrown, as an S3Error; what is not one, or none that can be sent, is an InternalError whose text stays in the log. */
export function toS3Error(thrown: unknown): S3Error {
  return thrown instanceof S3Error && isSound(thrown) ? thrown : new S3Error('InternalError', { cause: thrown })
}

/** Both a code and the name of an element. */
const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,127}$/

/** Plugins are not always compiled against our types, and may bring a class of their own that only claims to be ours. */
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

/** `<Error>` without declaration: also stands inside a 200 of a late answer. */
export function errorElement(error: S3Error, place: ErrorPlace): string {
  const fields = Object.entries(error.fields).flatMap(([name, value]) =>
    typeof value === 'object' ? value.map((one) => element(name, one)) : [element(name, value)],
  )
  return [
    '<Error>',
    element('Code', error.code),
    element('Message', error.message),
    ...fields,
    element('Resource', place.resource),
    element('RequestId', place.id),
    element('HostId', place.id),
    '</Error>',
  ].join('')
}

/**
 * The same as JSON, by which AWS's clients know an error too: they look for `__type` and x-amzn-errortype.
 * https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html#operation-error-serialization
 */
function jsonReply(error: S3Error, place: ErrorPlace): Reply {
  const { code, message, fields } = error
  const document = {
    __type: code,
    Code: code,
    Message: message,
    message,
    Resource: place.resource,
    RequestId: place.id,
    HostId: place.id,
    Details: fields,
  }
  return {
    status: error.status,
    headers: { 'content-type': 'application/json', 'x-amzn-errortype': code, ...error.headers },
    body: `${JSON.stringify(document)}\n`,
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#RESTErrorResponses */
export function errorReply(error: S3Error, place: ErrorPlace): Reply {
  if (place.form === 'json') return jsonReply(error, place)
  return {
    status: error.status,
    headers: { 'content-type': 'application/xml', ...error.headers },
    body: XML_DECLARATION + errorElement(error, place),
  }
}
