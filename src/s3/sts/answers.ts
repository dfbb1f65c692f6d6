import type { S3Error } from '../../../common/errors/s3-error.js'
import { element, XML_DECLARATION } from '../../../common/xml.js'
import type { Reply } from '../../api/request.js'
import { STS_NAMESPACE } from '../../http/error-reply.js'
import { xml } from '../../http/reply.js'
import { stsError } from './parameters.js'
import type { TemporaryCredentials } from './sessions.js'

/** Longest session token, characters: clients send it in a header, and servers accept 16 KiB of headers. */
export const MAX_TOKEN = 8192

export function credentialsElement(issued: TemporaryCredentials, expires: number): string {
  const content = [
    element('AccessKeyId', issued.accessKeyId),
    element('SecretAccessKey', issued.secretAccessKey),
    element('SessionToken', issued.sessionToken),
    element('Expiration', new Date(expires).toISOString().replace('.000Z', 'Z')),
  ]
  return `<Credentials>${content.join('')}</Credentials>`
}

export function tooLarge(hasPolicy: boolean): S3Error {
  return hasPolicy
    ? stsError('PackedPolicyTooLarge', 'The policy and the web identity token are too large for a session token.')
    : stsError('ValidationError', 'The web identity token is too large for a session token.')
}

/** `arn:aws:sts::<canonical id>:assumed-role/<role>/<session>`. */
export function assumedRoleArn(
  account: string,
  { role, name }: { readonly role: string; readonly name: string },
): string {
  return `arn:aws:sts::${account}:assumed-role/${role.slice(role.lastIndexOf('/') + 1)}/${name}`
}

/**
 * The answer of an action of the security token service.
 * @param content markup of the result
 */
export function stsReply(action: string, content: string, requestId: string): Reply {
  const result = `<${action}Result>${content}</${action}Result>`
  const metadata = `<ResponseMetadata>${element('RequestId', requestId)}</ResponseMetadata>`
  return xml(`${XML_DECLARATION}<${action}Response xmlns="${STS_NAMESPACE}">${result}${metadata}</${action}Response>`)
}
