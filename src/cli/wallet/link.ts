import { hash } from 'node:crypto'
import { readBounded } from '../../common/http/bounded-text.js'
import {
  ALGORITHM,
  canonicalRequest,
  credentialScope,
  formatTimestamp,
  signature,
  signingKey,
  stringToSign,
} from '../../common/sigv4.js'
import { signText } from '../../services/payment/sign-in/personal-sign.js'
import { describeError, Failure } from '../failure.js'
import type { Signer } from '../running.js'
import type { WalletKey } from './keystore.js'
import { isNonce } from './payment-api.js'

const TIMEOUT_MS = 30_000
/** Largest answer, bytes. */
const MAX_BYTES = 2 ** 20

/** An S3 endpoint with the plugin `pay`, without a path, and the key pair that acts there. */
interface LinkingEndpoint {
  readonly url: URL
  readonly signer: Signer
}

/**
 * Signs the wallet in through the endpoint, which links it to the key pair. The key of the wallet stays here: only a
 * nonce is signed with it. Throws Failure.
 * @param url of an S3 endpoint with the plugin `pay`, without a path
 * @returns when the link ends, ISO 8601, if the service says so
 */
export async function linkWallet(url: URL, signer: Signer, wallet: WalletKey): Promise<string | undefined> {
  const endpoint = { url, signer }
  const { address, secretKey } = wallet
  const { ChainName: network } = await call(endpoint, 'GET', 'system-config')
  const { Nonce: nonce } = await call(endpoint, 'POST', 'wallet/nonce', { PublicKeyAddress: address })
  if (typeof nonce !== 'string' || !isNonce(nonce)) {
    throw new Failure(`${endpoint.url.origin} wants a text signed that is no nonce: nothing was signed.`)
  }
  const session = { Nonce: nonce, Signature: signText(nonce, secretKey), PublicKeyAddress: address, Network: network }
  const { ExpiresAt: ends } = await call(endpoint, 'POST', 'wallet/session', { ...session, Store: true })
  return typeof ends === 'string' ? ends : undefined
}

/** @param name behind `/-/pay/v1/` */
async function call(
  { url, signer }: LinkingEndpoint,
  method: 'GET' | 'POST',
  name: string,
  body?: object,
): Promise<Readonly<Record<string, unknown>>> {
  const path = `/-/pay/v1/${name}`
  const query = 'format=json'
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
  const answer = await readBounded(response, MAX_BYTES).catch(() => '')
  if (response.status === 200) return parsed(answer)
  const [, reason] = /<Message>([^<]{1,500})<\/Message>/.exec(answer) ?? []
  const told = reason ?? parsed(answer).Message ?? `its answer is HTTP ${response.status}`
  throw new Failure(`${url.origin} refuses ${path}: ${told}`)
}

interface Signable extends Pick<LinkingEndpoint, 'signer'> {
  readonly method: string
  /** Canonical, as `query` is. */
  readonly path: string
  readonly query: string
  readonly host: string
  /** The body. */
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

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
