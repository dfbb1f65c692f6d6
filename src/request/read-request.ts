import type { IncomingMessage } from 'node:http'
import { S3Error } from '../errors/s3-error.js'
import { Query } from './query.js'
import type { Method, RequestHead } from './s3-request.js'

/** A request as a framework may have handed it on: Express keeps the untouched target and the mount prefix beside `url`. */
export type MountedRequest = IncomingMessage & { originalUrl?: string; baseUrl?: string }

const METHODS = new Set<string>(['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'OPTIONS'])

/** The service's own paths begin so; `-` can never be a bucket (names have three letters at least). */
const SERVICE_PREFIX = '/-/'

/**
 * Reads the request line and headers. Throws S3Error MethodNotAllowed, InvalidURI, InvalidBucketName, KeyTooLongError.
 * @param maxKeyBytes length bound of a key in UTF-8 bytes
 */
export function readRequest(incoming: MountedRequest, id: string, maxKeyBytes: number): RequestHead {
  const method = incoming.method ?? ''
  if (!METHODS.has(method)) throw new S3Error('MethodNotAllowed', { fields: { Method: method } })
  const target = incoming.originalUrl ?? incoming.url ?? '/'
  const { rawPath, rawQuery } = splitTarget(target)
  const path = belowMount(rawPath, incoming.baseUrl ?? '')
  return {
    id,
    method: method as Method,
    target,
    rawPath,
    rawQuery,
    path,
    query: new Query(rawQuery),
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    secure: 'encrypted' in incoming.socket && incoming.socket.encrypted === true,
    remoteAddress: incoming.socket.remoteAddress ?? '',
    ...addressed(path, maxKeyBytes),
  }
}

function splitTarget(target: string): { rawPath: string; rawQuery: string } {
  // Absolute form, RFC 9112 section 3.2.2: everything up to the path is the authority.
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

/** Path-style addressing: /bucket/key. */
function addressed(path: string, maxKeyBytes: number): Address {
  if (path === '/' || path === '*' || path === '/-' || path.startsWith(SERVICE_PREFIX)) {
    return { resource: 'service', bucket: undefined, key: undefined }
  }
  const slash = path.indexOf('/', 1)
  const bucket = decodePath(slash < 0 ? path.slice(1) : path.slice(1, slash))
  if (bucket === '') throw new S3Error('InvalidBucketName', { message: 'The request path names no bucket.' })
  const key = slash < 0 ? '' : decodePath(path.slice(slash + 1))
  if (key === '') return { resource: 'bucket', bucket, key: undefined }
  if (Buffer.byteLength(key) > maxKeyBytes) {
    throw new S3Error('KeyTooLongError', { fields: { Size: Buffer.byteLength(key), MaxSizeAllowed: maxKeyBytes } })
  }
  return { resource: 'object', bucket, key }
}

/** Percent-decoded once, nothing normalised. Bytes that a client left unencoded arrive as latin-1 characters. */
function decodePath(raw: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the class is "not ASCII"
  const escaped = raw.replace(/[^\x00-\x7f]/g, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  if (!escaped.includes('%')) return escaped
  try {
    return decodeURIComponent(escaped)
  } catch (cause) {
    throw new S3Error('InvalidURI', { message: 'The request path is not valid percent-encoded UTF-8.', cause })
  }
}
