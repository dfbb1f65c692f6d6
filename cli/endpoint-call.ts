import { hash } from 'node:crypto'
import { readBounded } from '../common/bounded-text.js'
import { parseObject } from '../common/json.js'
import { RequestSigner } from '../common/sign-request.js'
import { uriEncode } from '../common/sigv4.js'
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
  const asked = { method, path, query, host: url.host, payloadHash: hash('sha256', text, 'hex') }
  const { host: _, ...headers } = new RequestSigner(signer, signer.region).sign(asked)
  const response = await fetch(`${url.origin}${path}?${query}`, {
    method,
    headers,
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
