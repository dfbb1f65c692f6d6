import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { redact } from '../../common/log.js'
import type { AccessEntry } from './access-log.js'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** What the entry of a request lacks. Absent: `-`. */
export interface LineFacts {
  /** Canonical id of the owner of the bucket. */
  readonly owner?: string | undefined
  readonly requester?: string | undefined
  /** In place of what method and query say. */
  readonly operation?: string | undefined
  readonly size?: number | undefined
  readonly turnAroundMs?: number | undefined
  readonly versionId?: string | undefined
  readonly aclRequired?: boolean | undefined
}

/** A request as it has arrived, or one of the server itself, which has come over no connection. */
export type Arrival = Pick<IncomingMessage, 'url' | 'headers'> &
  Partial<Pick<IncomingMessage, 'httpVersion' | 'socket'>>

/**
 * A line in the format of S3's server access logs, with `-` for what this server does not know:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
 * @param incoming undefined for what no request has asked for
 * @param now ms since 1970, the end of the request
 */
export function s3AccessLine(
  entry: AccessEntry,
  incoming: Arrival | undefined,
  now: number,
  facts: LineFacts = {},
): string {
  const { headers, url = '/', httpVersion, socket } = incoming ?? { headers: {} }
  const target = redact(url)
  const { operation = operationOf(entry, url, headers), size = sizeOf(entry), turnAroundMs = entry.ms } = facts
  const [signature, authentication] = signatureOf(url, headers)
  const [cipher, tlsVersion] = tlsOf(socket)
  const ofRequest = (value: number) => (incoming ? String(Math.round(value)) : '-')
  return [
    word(facts.owner),
    word(entry.bucket),
    `[${timeOf(new Date(now - entry.ms))}]`,
    word(entry.remote),
    word(facts.requester ?? entry.accessKeyId),
    entry.requestId,
    operation,
    entry.key === undefined ? '-' : keyOf(entry.key),
    quoted(httpVersion === undefined ? '' : `${entry.method} ${target} HTTP/${httpVersion}`),
    ofRequest(entry.status),
    word(entry.error),
    count(entry.bytesOut),
    count(size),
    ofRequest(entry.ms),
    ofRequest(turnAroundMs),
    quoted(redact(headers.referer ?? '')),
    quoted(headers['user-agent'] ?? ''),
    word(facts.versionId ?? versionOf(target)),
    // The value of x-amz-id-2.
    entry.requestId,
    signature,
    cipher,
    authentication,
    word(headers.host),
    tlsVersion,
    '-',
    facts.aclRequired ? 'Yes' : '-',
  ].join(' ')
}

function versionOf(target: string): string | undefined {
  return new URLSearchParams(target.split('?')[1] ?? '').get('versionId') ?? undefined
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

/** Sub-resources, and how S3 names them: `REST.GET.ACL`. */
const SUB_RESOURCES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    accelerate: 'ACCELERATE',
    acl: 'ACL',
    attributes: 'OBJECT_ATTRIBUTES',
    cors: 'CORS',
    delete: 'MULTI_OBJECT_DELETE',
    encryption: 'ENCRYPTION',
    inventory: 'INVENTORY',
    'legal-hold': 'LEGAL_HOLD',
    lifecycle: 'LIFECYCLE',
    location: 'LOCATION',
    logging: 'LOGGING_STATUS',
    notification: 'NOTIFICATION',
    'object-lock': 'OBJECT_LOCK_CONFIGURATION',
    ownershipControls: 'OWNERSHIP_CONTROLS',
    policy: 'BUCKETPOLICY',
    policyStatus: 'POLICY_STATUS',
    publicAccessBlock: 'PUBLIC_ACCESS_BLOCK',
    replication: 'REPLICATION',
    requestPayment: 'REQUEST_PAYMENT',
    restore: 'OBJECT_RESTORE',
    retention: 'RETENTION',
    tagging: 'TAGGING',
    uploads: 'UPLOADS',
    versioning: 'VERSIONING',
    versions: 'BUCKETVERSIONS',
    website: 'WEBSITE',
  }),
)

function operationOf({ method, bucket, key }: AccessEntry, url: string, headers: Arrival['headers']): string {
  if (method === 'OPTIONS') return 'REST.OPTIONS.PREFLIGHT'
  const names = (url.split('?')[1] ?? '').split('&').map((part) => part.split('=')[0] ?? '')
  const isOfObject = bucket !== undefined && key !== undefined
  const part = names.includes('partNumber') ? 'PART' : names.includes('uploadId') ? 'UPLOAD' : 'OBJECT'
  if (method === 'PUT' && isOfObject && headers['x-amz-copy-source'] !== undefined) return `REST.COPY.${part}`
  const named = names.flatMap((name) => SUB_RESOURCES.get(name) ?? [])[0]
  if (named === 'TAGGING' && isOfObject) return `REST.${method}.OBJECT_TAGGING`
  const place = bucket === undefined ? 'SERVICE' : isOfObject ? part : 'BUCKET'
  return `REST.${method}.${named ?? place}`
}

function sizeOf({ method, key, bytesIn, bytesOut }: AccessEntry): number {
  if (key === undefined) return 0
  return method === 'PUT' ? bytesIn : method === 'GET' ? bytesOut : 0
}

function signatureOf(url: string, { authorization = '' }: Arrival['headers']): [version: string, type: string] {
  if (authorization.startsWith('AWS4-')) return ['SigV4', 'AuthHeader']
  if (authorization.startsWith('AWS ')) return ['SigV2', 'AuthHeader']
  if (/[?&]x-amz-signature=/i.test(url)) return ['SigV4', 'QueryString']
  if (/[?&]signature=/i.test(url)) return ['SigV2', 'QueryString']
  return ['-', '-']
}

function tlsOf(socket: Arrival['socket']): [cipher: string, version: string] {
  if (!socket || !('encrypted' in socket)) return ['-', '-']
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
