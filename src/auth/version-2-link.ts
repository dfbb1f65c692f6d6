import { createHmac } from 'node:crypto'
import { canonicalPath, timingSafeEqualHex, uriEncode } from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'
import type { RequestHead } from '../request/s3-request.js'
import type { Caller, Credentials } from './caller.js'
import { mustBeSigned } from './check-claim.js'

/**
 * Links that read one object, signed with signature version 2: what `aws s3 presign` of aws-cli 1 and `s3cmd signurl` make. Nothing else is let in
 * by that version: it leaves most of a request unsigned.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html#RESTAuthenticationQueryStringAuth
 */
export function isVersion2Link({ query }: RequestHead): boolean {
  return query.has('AWSAccessKeyId') && query.has('Signature')
}

/** Longest time ahead, as for version 4, seconds. */
const MAX_AHEAD_S = 604_800
const OWN = ['AWSAccessKeyId', 'Signature', 'Expires']
/** Parameters that are signed with the path and may stand in a link that reads. */
const SIGNED = /^(partNumber|versionId|response-(content-(type|language|disposition|encoding)|cache-control|expires))$/

const malformed = (message: string) => new S3Error('AuthorizationQueryParametersError', { message })

/** @throws S3Error unless the link is good in every respect */
export async function verifyVersion2Link(
  head: RequestHead,
  credentials: Credentials,
  now: number,
  basePaths: readonly string[],
): Promise<Caller> {
  checkUse(head)
  const expires = checkExpires(only(head, 'Expires'), now)
  const accessKeyId = only(head, 'AWSAccessKeyId')
  const provided = only(head, 'Signature')
  const identity = await credentials(accessKeyId)
  if (identity === undefined) throw new S3Error('InvalidAccessKeyId', { fields: { AWSAccessKeyId: accessKeyId } })
  for (const base of ['', ...basePaths]) {
    const toSign = stringToSign(head, expires, base)
    const signature = createHmac('sha1', identity.secretAccessKey).update(toSign).digest('base64')
    if (timingSafeEqualHex(signature, provided)) return { identity, presigned: true, payload: { kind: 'unsigned' } }
  }
  throw new S3Error('SignatureDoesNotMatch', {
    fields: {
      AWSAccessKeyId: accessKeyId,
      StringToSign: stringToSign(head, expires, ''),
      SignatureProvided: provided,
    },
  })
}

function checkUse({ method, resource, query }: RequestHead): void {
  if ((method !== 'GET' && method !== 'HEAD') || resource !== 'object') {
    throw new S3Error('InvalidRequest', {
      message: 'A link of signature version 2 can only read an object. Sign with AWS4-HMAC-SHA256.',
    })
  }
  const unsigned = query.entries.find(([name]) => !OWN.includes(name) && !SIGNED.test(name))
  if (unsigned) throw malformed(`Signature version 2 does not cover the parameter ${unsigned[0].slice(0, 80)}.`)
}

function checkExpires(text: string, now: number): string {
  const end = /^\d{1,12}$/.test(text) ? Number(text) * 1000 : Number.NaN
  if (Number.isNaN(end)) throw malformed('Expires must be a time in seconds since 1970.')
  if (now > end) {
    throw new S3Error('AccessDenied', {
      message: 'Request has expired',
      fields: { Expires: new Date(end).toISOString(), ServerTime: new Date(now).toISOString() },
    })
  }
  if (end - now > MAX_AHEAD_S * 1000)
    throw malformed(`Expires must be no more than ${MAX_AHEAD_S} seconds (seven days) ahead.`)
  return text
}

function only({ query }: RequestHead, name: string): string {
  const values = query.entries.filter(([found]) => found === name)
  const value = values[0]?.[1]
  if (!value || values.length > 1) throw malformed(`A link of signature version 2 needs the parameter ${name} once.`)
  return value
}

/** The path stands in it as sent, still encoded, behind a bucket that the host names; values of parameters decoded. */
function stringToSign(head: RequestHead, expires: string, base: string): string {
  const amz = [...headerLines(head)].sort().map((line) => `${line}\n`)
  const parameters = head.query.entries
    .filter(([name]) => SIGNED.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => (value === '' ? name : `${name}=${value}`))
  const resource = hostBucket(head) + base + head.rawPath + (parameters.length > 0 ? `?${parameters.join('&')}` : '')
  const { 'content-md5': md5 = '', 'content-type': type = '' } = head.headers
  return `${head.method}\n${md5}\n${type}\n${expires}\n${amz.join('')}${resource}`
}

/** Version 2 does not sign the host: where that names the bucket, the bucket stands before the path, or a link could be turned to another one. */
function hostBucket({ path, bucket, key }: RequestHead): string {
  const pathStyle = canonicalPath(path) === uriEncode(`/${bucket}/${key}`, true)
  return pathStyle ? '' : `/${bucket}`
}

function* headerLines({ headers }: RequestHead): Generator<string> {
  for (const [name, value] of Object.entries(headers)) {
    if (mustBeSigned(name)) yield `${name}:${Array.isArray(value) ? value.join(',') : value}`
  }
}
