import type { IncomingHttpHeaders } from 'node:http'
import { element, XML_DECLARATION } from './xml.js'

/** Signatures of S3 in a URL: version 4 and version 2. */
const PRESIGNED = /[?&](?:X-Amz-Signature|AWSAccessKeyId)=/i

/**
 * True for a request that is signed for S3, or comes from an SDK of AWS: at a port of another service, it needs an
 * answer that such a client shows.
 * @param target path and query, encoded
 */
export function isForS3(headers: IncomingHttpHeaders, target: string): boolean {
  return (
    /^AWS(?:4-|\s)/.test(headers.authorization ?? '') ||
    headers['x-amz-content-sha256'] !== undefined ||
    headers['amz-sdk-invocation-id'] !== undefined ||
    PRESIGNED.test(target)
  )
}

/** An answer to an S3 client that came to the wrong port. */
interface Misdirected {
  readonly status: 400
  readonly type: 'application/xml'
  /** What this port is, and where S3 is. */
  readonly message: string
  /** The `<Error>` document of S3 with it. */
  readonly body: string
}

/**
 * @param what the service of this port, such as `the console of dealgate`
 * @param endpoint the address of the S3 endpoint, if it is known here
 */
export function misdirected(what: string, endpoint?: string): Misdirected {
  const where = endpoint === undefined ? 'which has port 9000 by default' : `which is ${endpoint}`
  const message = `This is ${what}, which takes no S3 requests. Send these to the S3 endpoint of dealgate, ${where}.`
  const content = `${element('Code', 'InvalidRequest')}${element('Message', message)}`
  return { status: 400, type: 'application/xml', message, body: `${XML_DECLARATION}<Error>${content}</Error>` }
}
