import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { redact } from '../../common/log.js'
import type { AccessEntry } from '../access-log.js'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/**
 * A line in the format of S3's server access logs, with `-` for what this server does not know:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
 * @param now ms since 1970, the end of the request
 */
export function s3AccessLine(entry: AccessEntry, incoming: IncomingMessage, now: number): string {
  const { headers } = incoming
  const target = redact(incoming.url ?? '/')
  const total = String(Math.round(entry.ms))
  const [signature, authentication] = signatureOf(incoming)
  const [cipher, tlsVersion] = tlsOf(incoming)
  return [
    '-',
    word(entry.bucket),
    `[${timeOf(new Date(now - entry.ms))}]`,
    word(entry.remote),
    word(entry.accessKeyId),
    entry.requestId,
    operationOf(entry, incoming),
    entry.key === undefined ? '-' : keyOf(entry.key),
    quoted(`${entry.method} ${target} HTTP/${incoming.httpVersion}`),
    String(entry.status),
    word(entry.error),
    count(entry.bytesOut),
    count(sizeOf(entry)),
    total,
    total,
    quoted(redact(headers.referer ?? '')),
    quoted(headers['user-agent'] ?? ''),
    word(new URLSearchParams(target.split('?')[1] ?? '').get('versionId') ?? undefined),
    '-',
    signature,
    cipher,
    authentication,
    word(headers.host),
    tlsVersion,
    '-',
    '-',
  ].join(' ')
}

/** Encoded twice but for slashes, as S3 does it. */
function keyOf(key: string): string {
  return encodeURIComponent(encodeURIComponent(key)).replaceAll('%252F', '/')
}

/** `23/Nov/2026:01:02:03 +0000` */
function timeOf(time: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${two(time.getUTCDate())}/${MONTHS[time.getUTCMonth()]}/${time.getUTCFullYear()}`
  return `${day}:${two(time.getUTCHours())}:${two(time.getUTCMinutes())}:${two(time.getUTCSeconds())} +0000`
}

/** Words that name the resource in the query, as in `REST.GET.ACL`. */
const SUB_RESOURCES =
  /^(acl|attributes|cors|delete|encryption|lifecycle|location|logging|notification|object-lock|ownershipControls|policy|policyStatus|publicAccessBlock|replication|requestPayment|restore|tagging|uploads|versioning|versions|website)$/

function operationOf({ method, bucket, key }: AccessEntry, { url = '' }: IncomingMessage): string {
  const names = (url.split('?')[1] ?? '').split('&').map((part) => part.split('=')[0] ?? '')
  const named = names.find((name) => SUB_RESOURCES.test(name))
  const place = bucket === undefined ? 'SERVICE' : key === undefined ? 'BUCKET' : 'OBJECT'
  const part = names.includes('partNumber') ? 'PART' : names.includes('uploadId') ? 'UPLOAD' : undefined
  return `REST.${method}.${named?.toUpperCase().replaceAll('-', '_') ?? part ?? place}`
}

function sizeOf({ method, bytesIn, bytesOut }: AccessEntry): number {
  return method === 'PUT' ? bytesIn : method === 'GET' ? bytesOut : 0
}

function signatureOf({ headers, url = '' }: IncomingMessage): [version: string, type: string] {
  const { authorization = '' } = headers
  if (authorization.startsWith('AWS4-')) return ['SigV4', 'AuthHeader']
  if (authorization.startsWith('AWS ')) return ['SigV2', 'AuthHeader']
  if (/[?&]x-amz-signature=/i.test(url)) return ['SigV4', 'QueryString']
  if (/[?&]signature=/i.test(url)) return ['SigV2', 'QueryString']
  return ['-', '-']
}

function tlsOf({ socket }: IncomingMessage): [cipher: string, version: string] {
  if (!('encrypted' in socket)) return ['-', '-']
  const secured = socket as TLSSocket
  return [word(secured.getCipher()?.standardName), word(secured.getProtocol() ?? undefined)]
}

function count(bytes: number): string {
  return bytes === 0 ? '-' : String(bytes)
}

/** A field without spaces. */
function word(text: string | undefined): string {
  return text === undefined || text === '' ? '-' : text.replace(/[\s"\p{Cc}]/gu, '_')
}

function quoted(text: string): string {
  return text === '' ? '"-"' : `"${text.replace(/["\\\p{Cc}]/gu, (char) => encodeURIComponent(char))}"`
}
