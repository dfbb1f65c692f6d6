import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { type Query, repeatedParameter } from '../../common/query.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'

type Head = Pick<RequestHead, 'method' | 'resource' | 'query'>

/** Query keys that select an operation. */
interface SubResources {
  /**
   * Keys that name a sub-resource or select a variant of an S3 operation. A key that the selected operation does not
   * declare is refused, even with a value and even on GET; other `name=value` pairs are ignored on GET, as in S3.
   */
  readonly ofS3: ReadonlySet<string>
  /** Keys of extensions, `x-...`. */
  readonly extensions: ReadonlySet<string>
}

/**
 * Keys that no operation requires, or none without a plugin that answers a part of S3: of versions, of a MinIO request
 * for events, of inventories and of notifications.
 */
const NEVER_REQUIRED = ['versionId', 'events', 'inventory', 'notification']

/**
 * The sub-resources that operations declare: the first key that each requires, and those that it requires with a value.
 * The others, such as the `id` of a configuration, only choose within one.
 */
export function subResourcesOf(operations: readonly AnyOperation[]): SubResources {
  const required = operations.flatMap(({ on: { query = [] } }) =>
    query.filter((key, n) => n === 0 || key.includes('=') || key.startsWith('x-')),
  )
  const isExtension = (key: string) => key.startsWith('x-')
  return {
    ofS3: new Set([
      ...required.filter((key) => !isExtension(key)).map((key) => key.split('=')[0] ?? ''),
      ...NEVER_REQUIRED,
    ]),
    extensions: new Set(required.filter(isExtension)),
  }
}

/**
 * Refuses query keys that the operation does not declare, because ignoring them could change what the client means:
 * `PUT key?retention` must not overwrite the key. Keys that cannot change the meaning are ignored.
 */
export function refuseUnnamedKeys(named: ReadonlySet<string> | undefined, head: Head, known: SubResources): void {
  if (head.query.entries.length === 0) return
  // A preflight has the query of the request that it announces, and changes nothing.
  if (head.method === 'OPTIONS') return
  const reading = head.method === 'GET' || head.method === 'HEAD'
  const link = head.query.has('AWSAccessKeyId')
  for (const [name, value] of head.query.entries) {
    if (named?.has(name) || name === 'x-id' || isSigning(name) || (link && isVersion2(name))) continue
    // "S3 ignores query parameters that begin with x-":
    // https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html#LogFormatCustom
    if (/^x-/i.test(name) && value !== '' && !known.extensions.has(name)) continue
    if (reading && value !== '' && !known.ofS3.has(name)) continue
    if (name === 'list-type' && reading) throw unknownListType(value)
    throw new S3Error('NotImplemented', {
      message: `The query parameter "${name}" is not implemented for ${head.method} on ${head.resource === 'object' ? 'an' : 'a'} ${head.resource}.`,
      fields: { Parameter: name },
    })
  }
}

/**
 * Refuses repeated parameters, because a server that reads the first value and an intermediary that reads the last
 * would disagree about the request. Names that begin with `x-` are exempt: the signature check covers its own, headers
 * that presigners move into the query may have several values, and the others have no meaning here. A call of an
 * extension reads its own parameters by its schema, which may have lists.
 */
export function refuseRepeated(operation: AnyOperation, { method, query: { entries } }: Head): void {
  if (entries.length < 2 || method === 'OPTIONS') return
  const seen = new Set<string>()
  for (const [name] of entries) {
    const once = operation.on.query?.includes(name) || !(/^x-/i.test(name) || operation.call)
    if (once && seen.has(name) && !operation.on.lists?.includes(name)) throw repeatedParameter(name)
    seen.add(name)
  }
}

/** Throws InvalidRequest for a second sub-resource beside one of an extension, because the request is ambiguous. */
export function refuseSecond({ entries }: Query, { ofS3, extensions }: SubResources): void {
  if (entries.length < 2) return
  const names = new Set(entries.map(([name]) => name))
  const own = [...names].filter((name) => extensions.has(name))
  if (own.length === 0) return
  const others = [...names].filter((name) => ofS3.has(name) && name !== 'versionId')
  if (own.length + others.length < 2) return
  const [first, second] = [...own, ...others]
  throw new S3Error('InvalidRequest', {
    message: `The request names two sub-resources, ${first} and ${second}: send one.`,
  })
}

function isSigning(name: string): boolean {
  return /^x-(amz|cloud)-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256)$/i.test(
    name,
  )
}

function unknownListType(value: string): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'Invalid List Type specified in Request',
    fields: { ArgumentName: 'list-type', ArgumentValue: value.slice(0, 100) },
  })
}

/** Parameters of a URL presigned with version 2. The authenticator has verified every URL that has such a key id. */
function isVersion2(name: string): boolean {
  return /^(AWSAccessKeyId|Signature|Expires|content-(md5|type))$/.test(name)
}

/**
 * Headers that demand something that must not be ignored: encryption, locks, rights, tags, conditions of directory
 * buckets. An operation declares those that it supports; every other operation refuses them. Every other header of S3
 * is either read by all operations that can have it, or changes nothing.
 */
const DEMAND = new RegExp(
  `^x-(?:amz|cloud)-(?:${[
    'server-side-encryption.*',
    'copy-source-server-side-encryption.*',
    'object-lock-.*',
    'bucket-object-lock-.*',
    'bucket-namespace',
    'object-ownership',
    'website-redirect-location',
    'acl',
    'grant-.*',
    'tagging.*',
    'write-offset-bytes',
    'if-match-.*',
  ].join('|')})$`,
)

/**
 * Headers that are supported only as `x-amz-...`: only headers of the signature and the transfer also exist as
 * `x-cloud-...`.
 */
const AMZ_ALONE =
  /^x-cloud-(?:copy-source.*|meta-.*|metadata-directive|storage-class|(?:source-)?expected-bucket-owner|mp-object-size)$/

/** Values that demand only the default behaviour. */
const GRANTED: Readonly<Record<string, readonly string[]>> = {
  'x-amz-acl': ['private', 'bucket-owner-full-control'],
  'x-amz-bucket-object-lock-enabled': ['false'],
  'x-amz-bucket-namespace': ['global'],
}

export function isDemand(header: string): boolean {
  return DEMAND.test(header) || AMZ_ALONE.test(header)
}

/**
 * Throws NotImplemented, naming the header, for a demand that the operation does not support.
 * @param honoured lower-case names of supported headers
 */
export function refuseDemands(headers: IncomingHttpHeaders, honoured: readonly string[] = []): void {
  for (const name in headers) {
    if (!name.startsWith('x-') || !isDemand(name) || honoured.includes(name)) continue
    if (GRANTED[name]?.includes(String(headers[name]).toLowerCase())) continue
    throw new S3Error('NotImplemented', {
      message: `The header ${name} requires functionality that is not implemented.`,
      fields: { Header: name },
    })
  }
}

/**
 * Throws InvalidArgument, naming the header, for user metadata on the parts and the end of a multipart upload, as S3
 * does: it would be lost, and the client would not know. Elsewhere it is ignored, because clients that set it once for
 * all requests also send it with tags: https://github.com/durch/rust-s3/issues/352
 */
export function refuseMetadata({ on, call }: AnyOperation, headers: IncomingHttpHeaders): void {
  if (on.metadata || call || !(on.method === 'PUT' || on.method === 'POST') || !on.query?.includes('uploadId')) return
  for (const name in headers) {
    if (!name.startsWith('x-amz-meta-')) continue
    throw new S3Error('InvalidArgument', {
      message: `Metadata cannot be specified in this context: ${name}.`,
      fields: { ArgumentName: name, ArgumentValue: String(headers[name]).slice(0, 100) },
    })
  }
}
