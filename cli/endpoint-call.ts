import { hash } from 'node:crypto'
import { readBounded } from '../common/bounded-text.js'
import { parseObject } from '../common/json.js'
import {
  ALGORITHM,
  canonicalRequest,
  credentialScope,
  formatTimestamp,
  signature,
  signingKey,
  stringToSign,
  uriEncode,
} from '../common/sigv4.js'
import { describeError, Failure } from './command.js'
import type { Signer } from './running.js'

const TIMEOUT_MS = 30_000
/** Largest answer, bytes. */
const MAX_BYTES = 2 ** 20

export interface Endpoint {
  /** Without a path. */
  readonly url: URL
  readonly signer: Signer
}

interface EndpointRequest {
  readonly method: 'GET' | 'POST'
  /** Percent-encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** Largest answer, bytes; default 1 MiB. */
  readonly maxBytes?: number
}

/** Makes a signed call beyond S3. Resolves to its answer; throws Failure if it is refused, with the status as cause. */
export async function callEndpoint(
  { url, signer }: Endpoint,
  { method, path, query: parameters = {}, body, maxBytes = MAX_BYTES }: EndpointRequest,
): Promise<Readonly<Record<string, unknown>>> {
  const query = Object.entries({ ...parameters, format: 'json' })
    .map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`)
    .sort()
    .join('&')
  const text = body === undefined ? '' : JSON.stringify(body)
  const response = await fetch(`${url.origin}${path}?${query}`, {
    method,
    headers: signHeaders({ method, path, query, host: url.host, text, signer }),
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body !== undefined && { body: text }),
  }).catch((error) => {
    throw new Failure(`${url.origin} cannot be reached: ${describeError(error.cause ?? error)}`)
  })
  const answer = await readBounded(response, maxBytes).catch(() => '')
  if (response.status === 200 || response.status === 202) return parseObject(answer) ?? {}
  const [, reason] = /<Message>([^<]{1,500})<\/Message>/.exec(answer) ?? []
  const reported = reason ?? parseObject(answer)?.Message ?? `its answer is HTTP ${response.status}`
  throw new Failure(`${url.origin} refuses ${path}: ${reported}`, { cause: response.status })
}

interface Signable extends Pick<Endpoint, 'signer'> {
  readonly method: string
  /** Canonical, as `query` is. */
  readonly path: string
  readonly query: string
  readonly host: string
  readonly text: string
}

/** Headers of a request to S3 that sign it and its body. */
function signHeaders({ method, path, query, host, text, signer }: Signable): Record<string, string> {
  const timestamp = formatTimestamp(new Date())
  const date = timestamp.slice(0, 8)
  const payloadHash = hash('sha256', text, 'hex')
  const { region, sessionToken } = signer
  const token: Record<string, string> = sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }
  const signed: Record<string, string> = { 'x-amz-content-sha256': payloadHash, 'x-amz-date': timestamp, ...token }
  const headers = Object.entries({ host, ...signed })
  const signedHeaders = headers.map(([name]) => name).join(';')
  const canonical = canonicalRequest({ method, path, query, headers, signedHeaders, payloadHash })
  const scope = credentialScope(date, region, 's3')
  const key = signingKey(signer.secretAccessKey, date, region, 's3')
  const mark = signature(key, stringToSign(ALGORITHM, timestamp, scope, canonical))
  const credential = `Credential=${signer.accessKeyId}/${scope}`
  return { ...signed, authorization: `${ALGORITHM} ${credential}, SignedHeaders=${signedHeaders}, Signature=${mark}` }
}
