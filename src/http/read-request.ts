import type { IncomingMessage } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { Query } from '../../common/query.js'
import type { Limits } from '../api/limits.js'
import type { Method, Reply, RequestBody, RequestHead, S3Request } from '../api/request.js'
import {
  type Addressing,
  bucketOfHost,
  clientAt,
  decodePath,
  hostsOf,
  refuseNoBucketName,
  refuseReserved,
} from './addressing.js'

/** A request that a framework may have routed: Express keeps the original target and the mount prefix beside `url`. */
type MountedRequest = IncomingMessage & { originalUrl?: string; baseUrl?: string }

export const METHODS: readonly Method[] = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'OPTIONS']

/** Prefix of the service's own paths on its own hosts. `-` is no bucket name: names have at least 3 characters. */
const SERVICE_PREFIX = '/-/'

/** What is known of every request, also of one that is refused as unreadable. */
export type RequestOutline = Pick<
  RequestHead,
  'id' | 'resource' | 'path' | 'query' | 'headers' | 'host' | 'bucket' | 'remoteAddress'
> & { readonly method: string }

/** Reads the heads of requests by the addressing and the limits of a server. */
export interface RequestReader {
  /**
   * Parses request line and headers.
   * @throws S3Error MethodNotAllowed, InvalidURI, InvalidBucketName, KeyTooLongError
   */
  read(incoming: IncomingMessage, id: string): RequestHead
  /**
   * Reads what determines the form of the error response, also if `read` refuses the request. Omits parts that are
   * malformed, and the bucket. Never throws.
   */
  outline(incoming: IncomingMessage, id: string): RequestOutline
}

export function createReader(addressing: Addressing, limits: Pick<Limits, 'maxKeyBytes'>): RequestReader {
  return {
    read: (incoming, id) => readRequest(incoming, id, addressing, limits.maxKeyBytes),
    outline: (incoming, id) => readOutline(incoming, id, addressing),
  }
}

function readRequest(incoming: MountedRequest, id: string, addressing: Addressing, maxKeyBytes: number): RequestHead {
  const method = incoming.method ?? ''
  if (!isMethod(method))
    throw new S3Error('MethodNotAllowed', { fields: { Method: method }, headers: { allow: METHODS.join(', ') } })
  refuseSecondHost(incoming.rawHeaders)
  const target = incoming.originalUrl ?? incoming.url ?? '/'
  const { rawPath, rawQuery } = splitTarget(target)
  const path = belowMount(rawPath, incoming.baseUrl ?? '')
  const [host = '', ...others] = hostsOf(incoming, addressing)
  const named = bucketOfHost(host, addressing)
  const control = isControlCall({ path, headers: incoming.headers })
  // S3 Control has the id of the account there.
  const bucket = control ? undefined : named
  const client = clientAt(incoming, addressing)
  const address = control ? SERVICE : addressed(bucket, path, maxKeyBytes)
  if (address.bucket !== undefined) refuseReserved(address.bucket, addressing.basePaths, incoming.baseUrl ?? '')
  return {
    id,
    method,
    target,
    rawPath,
    rawQuery,
    path,
    query: new Query(rawQuery),
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    secure: client.secure,
    host,
    hostBucket: bucket,
    // A signature over a host that names another bucket is not valid for this request.
    signedHosts: [host, ...others.filter((other) => bucketOfHost(other, addressing) === named)],
    remoteAddress: client.address,
    secrets: [],
    ...address,
  }
}

function isMethod(method: string): method is Method {
  return (METHODS as readonly string[]).includes(method)
}

/**
 * True for a call of S3 Control, which is no path of a bucket: all of its calls carry the id of an account, and no call
 * of S3 does. The signature covers it, as it does all headers of S3.
 */
export function isControlCall({ path, headers }: Pick<RequestHead, 'path' | 'headers'>): boolean {
  return headers['x-amz-account-id'] !== undefined && path.startsWith('/v20180820/')
}

/**
 * Throws BadRequest for two Host headers: an intermediary may route by the one that this server does not read.
 * https://www.rfc-editor.org/rfc/rfc9112#section-3.2
 */
export function refuseSecondHost(rawHeaders: readonly string[]): void {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === HOST.length && name.toLowerCase() === HOST && ++hosts > 1)
      throw new S3Error('BadRequest', { message: 'The request has more than one Host header: send one.' })
  }
}

const HOST = 'host'

function splitTarget(target: string): { rawPath: string; rawQuery: string } {
  // Absolute form, RFC 9112 section 3.2.2: everything before the path is scheme and authority.
  const local = /^https?:\/\/[^/?#]*/i.exec(target)
  const rest = local ? target.slice(local[0].length) : target
  const at = rest.indexOf('?')
  const rawPath = (at < 0 ? rest : rest.slice(0, at)) || '/'
  return { rawPath, rawQuery: at < 0 ? '' : rest.slice(at + 1) }
}

function belowMount(rawPath: string, baseUrl: string): string {
  if (baseUrl === '' || !rawPath.startsWith(baseUrl)) return rawPath
  return rawPath.slice(baseUrl.length) || '/'
}

type Address = Pick<RequestHead, 'resource' | 'bucket' | 'key'>

const SERVICE: Address = { resource: 'service', bucket: undefined, key: undefined }

/** @param hostBucket the bucket if the host names it; the path is then the key, otherwise /bucket/key */
function addressed(hostBucket: string | undefined, path: string, maxKeyBytes: number): Address {
  if (hostBucket !== undefined) return inBucket(hostBucket, path === '*' ? '' : path.slice(1), maxKeyBytes)
  if (path === '/' || path === '*' || path === '/-' || path.startsWith(SERVICE_PREFIX)) {
    return SERVICE
  }
  const slash = path.indexOf('/', 1)
  const bucket = decodePath(slash < 0 ? path.slice(1) : path.slice(1, slash))
  return inBucket(bucket, slash < 0 ? '' : path.slice(slash + 1), maxKeyBytes)
}

function inBucket(bucket: string, rawKey: string, maxKeyBytes: number): Address {
  refuseNoBucketName(bucket)
  const key = decodePath(rawKey)
  if (key === '') return { resource: 'bucket', bucket, key: undefined }
  refuseLongKey(key, maxKeyBytes)
  return { resource: 'object', bucket, key }
}

/** Throws KeyTooLongError. */
export function refuseLongKey(key: string, maxKeyBytes: number): void {
  const size = Buffer.byteLength(key)
  if (size > maxKeyBytes) throw new S3Error('KeyTooLongError', { fields: { Size: size, MaxSizeAllowed: maxKeyBytes } })
}

/** See RequestReader.outline. */
export function readOutline(incoming: MountedRequest, id: string, addressing: Addressing): RequestOutline {
  const { rawPath, rawQuery } = splitTarget(incoming.originalUrl ?? incoming.url ?? '/')
  const path = belowMount(rawPath, incoming.baseUrl ?? '')
  const [host = ''] = hostsOf(incoming, addressing)
  const isService = path.startsWith(SERVICE_PREFIX) && bucketOfHost(host, addressing) === undefined
  return {
    id,
    method: incoming.method ?? '',
    resource: isService ? 'service' : 'object',
    path,
    query: new Query(rawQuery.split('&').filter(isReadable).join('&')),
    headers: incoming.headers,
    host,
    bucket: undefined,
    remoteAddress: clientAt(incoming, addressing).address,
  }
}

function isReadable(pair: string): boolean {
  try {
    return new Query(pair).entries.length > 0
  } catch {
    return false
  }
}

/** Overwrites the keys in a request once nothing needs them. The work of a late answer goes on after it has begun. */
export function forgetSecrets({ secrets }: Pick<RequestHead, 'secrets'>, { body }: Pick<Reply, 'body'>): void {
  const overwrite = () => {
    for (const secret of secrets) secret.fill(0)
  }
  if (typeof body === 'object' && 'late' in body) body.late.then(overwrite, overwrite)
  else overwrite()
}

/** Buckets have no versions: the only valid versionId is "null". Throws InvalidArgument for any other one. */
export function refuseVersion(query: Query): void {
  const version = query.get('versionId')
  if (version === undefined || version === 'null') return
  throw new S3Error('InvalidArgument', {
    message: 'Buckets of this gateway are not versioned: the only version id is "null".',
    fields: { ArgumentName: 'versionId', ArgumentValue: version },
  })
}

/**
 * S3 requires a digest of documents that irrevocably delete or retain, even if the signature covers the body. Throws
 * InvalidRequest.
 */
export function requireDigest({ body, headers }: Pick<S3Request, 'body' | 'headers'>): void {
  if (body.empty || headers['content-md5'] !== undefined || body.declaredChecksum !== undefined) return
  throw new S3Error('InvalidRequest', {
    message: 'Missing required header for this request: Content-MD5 OR x-amz-checksum-*',
  })
}

/** Returns the document in the body. Throws S3Error MissingRequestBodyError for an empty one, and as `collect`. */
export async function requireDocument(body: Pick<RequestBody, 'collect'>, maxBytes: number): Promise<Buffer> {
  const { bytes } = await body.collect(maxBytes)
  if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
  return bytes
}
