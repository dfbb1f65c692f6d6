import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { HttpRequest } from '@smithy/protocol-http'
import { SignatureV4 } from '@smithy/signature-v4'
import type { Identity } from '../../../src/api/identity.js'
import { sha256 } from '../content/content.js'
import { answerTo, open } from './send.js'

export interface Wanted {
  readonly method: string
  /** Decoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Signed and sent instead of the address that is connected to. */
  readonly host?: string
}

/** An answer whose body is text. */
export interface TextAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** S3's error code, '' for none. */
  readonly code: string
}

/** SHA-256 for `SignatureV4`, by OpenSSL as in the SDK for Node.js: in JavaScript it costs more than the request. */
export class Sha256 {
  readonly #secret: string | Buffer | undefined
  #hash: Hash | Hmac

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined ? undefined : bytesOf(secret)
    this.#hash = this.#begin()
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data))
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }

  reset(): void {
    this.#hash = this.#begin()
  }

  #begin(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret)
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === 'string') return Buffer.from(data)
  return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data)
}

type Keys = Pick<Identity, 'accessKeyId' | 'secretAccessKey'>

/** Sends a request signed in its Authorization header, by an implementation of SigV4 that is not ours. */
export async function signedRequest(endpoint: string, keys: Keys, wanted: Wanted): Promise<TextAnswer> {
  const signed = await signer(keys).sign(unsigned(endpoint, wanted))
  return sendAsIs(endpoint, wanted, targetOf(signed), signed.headers)
}

/** The same with a target that has the query, decoded, and a body that is sent as JSON where it is an object. */
export function signedCall(
  endpoint: string,
  keys: Keys,
  method: string,
  target: string,
  { body, headers = {} }: { readonly body?: string | object | undefined; readonly headers?: Wanted['headers'] } = {},
): Promise<TextAnswer> {
  const [path = '', query = ''] = target.split('?')
  const json: Record<string, string> = typeof body === 'object' ? { 'content-type': 'application/json' } : {}
  return signedRequest(endpoint, keys, {
    ...{ method, path, query: Object.fromEntries(new URLSearchParams(query)), headers: { ...json, ...headers } },
    ...(body !== undefined && { body: typeof body === 'object' ? JSON.stringify(body) : body }),
  })
}

/** Sends a request without a signature. */
export async function unsignedRequest(endpoint: string, wanted: Wanted): Promise<TextAnswer> {
  const { headers, ...request } = unsigned(endpoint, wanted)
  return sendAsIs(endpoint, wanted, targetOf(request), headers)
}

/** Sends a presigned request. */
export async function presignedRequest(
  endpoint: string,
  keys: Keys,
  wanted: Wanted,
  expiresIn = 60,
): Promise<TextAnswer> {
  const { target, headers } = await presign(endpoint, keys, wanted, expiresIn)
  return sendAsIs(endpoint, wanted, target, headers)
}

/**
 * The target of a presigned URL and the headers that it wants to be sent; what x-amz- headers were wanted stand in the
 * query.
 */
export async function presign(endpoint: string, keys: Keys, wanted: Wanted, expiresIn = 60) {
  const request = unsigned(endpoint, wanted)
  // As S3's own presigner does: the body is not known yet.
  request.headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD'
  const signed = await signer(keys).presign(request, { expiresIn })
  return { target: targetOf(signed), headers: { host: request.headers.host as string } }
}

/** Sends exactly this target and these headers, signed or not. */
export async function sendAsIs(
  endpoint: string,
  { method, body = '' }: Pick<Wanted, 'method' | 'body'>,
  target: string,
  headers: Record<string, string>,
): Promise<TextAnswer> {
  const length: Record<string, string> = body.length > 0 ? { 'content-length': String(Buffer.byteLength(body)) } : {}
  if (body.length === 0 && (method === 'PUT' || method === 'POST')) length['content-length'] = '0'
  const request = open({ endpoint }, method, target, { ...headers, ...length })
  const answered = answerTo(request)
  request.end(body)
  const answer = await answered
  if (answer.cut) throw new Error(`the answer to ${method} ${target} was cut off`)
  const text = answer.body.toString('utf8')
  const code = /<Error>.*?<Code>(\w+)<\/Code>/s.exec(text)?.[1] ?? ''
  return { status: answer.status, headers: answer.headers, body: text, code }
}

function unsigned(endpoint: string, { method, path, query, headers, body = '', host }: Wanted): HttpRequest {
  const { hostname, port } = new URL(endpoint)
  return new HttpRequest({
    method,
    protocol: 'http:',
    hostname,
    port: Number(port),
    path: path.split('/').map(encode).join('/'),
    query: { ...query },
    headers: { host: host ?? `${hostname}:${port}`, 'x-amz-content-sha256': sha256(body), ...headers },
  })
}

function signer(credentials: Keys): SignatureV4 {
  return new SignatureV4({ credentials, region: 'us-east-1', service: 's3', sha256: Sha256, uriEscapePath: false })
}

function targetOf({ path, query = {} }: { path: string; query?: HttpRequest['query'] }): string {
  const pairs = Object.entries(query).map(([name, value]) => `${encode(name)}=${encode(String(value ?? ''))}`)
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}
