import { createHash } from 'node:crypto'
import {
  ALGORITHM,
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  credentialScope,
  formatTimestamp,
  signature,
  signingKey,
  stringToSign,
} from '../../common/sigv4.js'

/** What a client needs to know. */
export interface Endpoint {
  /** http://127.0.0.1:port */
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
  readonly region: string
}

export type Headers = Readonly<Record<string, string>>

export interface Signing {
  readonly method: string
  /** Path and query as they go over the wire. */
  readonly target: string
  readonly headers?: Headers | undefined
  /** What goes into x-amz-content-sha256; by default the hash of nothing. */
  readonly payloadHash?: string
  readonly now?: Date
}

export interface Signed {
  /** All headers to send, host and authorization among them. */
  readonly headers: Record<string, string>
  readonly seed: string
  readonly timestamp: string
  readonly scope: string
  readonly key: Buffer
}

/** Signs in the Authorization header; every header given is signed. */
export function sign(server: Endpoint, signing: Signing): Signed {
  const { method, target, headers = {}, payloadHash = sha256(''), now = new Date() } = signing
  const at = target.indexOf('?')
  const timestamp = formatTimestamp(now)
  const date = timestamp.slice(0, 8)
  const all: Record<string, string> = {
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    host: new URL(server.endpoint).host,
    'x-amz-date': timestamp,
    'x-amz-content-sha256': payloadHash,
  }
  const signedHeaders = Object.keys(all).sort().join(';')
  const canonical = canonicalRequest({
    method,
    path: canonicalPath(at < 0 ? target : target.slice(0, at)),
    query: at < 0 ? '' : canonicalQuery(target.slice(at + 1)),
    headers: Object.entries(all),
    signedHeaders,
    payloadHash,
  })
  const scope = credentialScope(date, server.region, 's3')
  const key = signingKey(server.secretKey, date, server.region, 's3')
  const seed = signature(key, stringToSign(ALGORITHM, timestamp, scope, canonical))
  all.authorization = `${ALGORITHM} Credential=${server.accessKey}/${scope},SignedHeaders=${signedHeaders},Signature=${seed}`
  return { headers: all, seed, timestamp, scope, key }
}

export interface SignedRequest {
  readonly method?: string
  /** Path and query, percent-encoded. */
  readonly target: string
  readonly headers?: Headers
  readonly body?: string | Uint8Array<ArrayBuffer>
}

/** Sends a request with a signature in its headers, as `fetch` does. */
export function signedFetch(server: Endpoint, request: SignedRequest): Promise<Response> {
  const { method = 'GET', target, headers, body } = request
  const signed = sign(server, { method, target, headers, payloadHash: sha256(body ?? '') })
  const { host, ...sent } = signed.headers
  return fetch(server.endpoint + target, { method, headers: sent, ...(body !== undefined && { body }) })
}

function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex')
}
