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
  timingSafeEqualHex,
  UNSIGNED_PAYLOAD,
  uriEncode,
} from '../../../common/sigv4.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import type { Target } from '../http/target.js'

const SERVICE = 's3'
/** Longest life of a link, s: 7 days, as everywhere in Signature Version 4. */
export const MAX_EXPIRY = 604_800
/** How far in the future a link may be dated, ms. */
const MAX_SKEW = 15 * 60 * 1000

/**
 * The query of a link to an object, without `?`: parameters in the order public gateways give them, the signature last.
 * @param path canonical
 * @param host as the client will send it
 * @param expires seconds
 */
export function shareQuery(context: GatewayContext, path: string, host: string, expires: number, now: Date): string {
  const { account, names, region } = context
  const timestamp = formatTimestamp(now)
  const credential = `${account.pair.accessKey}/${credentialScope(timestamp.slice(0, 8), region, SERVICE)}`
  const parameters = [
    ['Algorithm', ALGORITHM],
    ['Credential', credential],
    ['Date', timestamp],
    ['Expires', String(expires)],
    ['SignedHeaders', 'host'],
  ] as const
  const query = parameters.map(([name, value]) => `${names.parameter}${name}=${uriEncode(value)}`).join('&')
  const proof = sign(context, { method: 'GET', path, query: canonicalQuery(query), host, timestamp })
  return `${query}&${names.parameter}Signature=${proof}`
}

export function isShareLink({ names }: GatewayContext, { parameters }: Target): boolean {
  return parameters.has(`${names.parameter}Signature`)
}

/** Throws GatewayError unless the request came by a link that this account signed and that has not expired. */
export function verifyShareLink({ context, request, target }: Exchange): void {
  const { names, account, region } = context
  const parameter = (name: string): string => {
    const values = target.parameters.getAll(names.parameter + name)
    if (values.length !== 1 || values[0] === undefined) throw new GatewayError('ShareParameters', { value: name })
    return values[0]
  }
  const timestamp = parameter('Date')
  const signedAt = parseTimestamp(timestamp)
  const expires = parameter('Expires')
  if (parameter('Algorithm') !== ALGORITHM) throw new GatewayError('ShareParameters', { value: 'Algorithm' })
  if (signedAt === undefined) throw new GatewayError('ShareParameters', { value: 'Date' })
  if (!/^\d{1,6}$/.test(expires) || Number(expires) < 1 || Number(expires) > MAX_EXPIRY) {
    throw new GatewayError('ShareParameters', { value: 'Expires' })
  }
  // A link is good for GET and HEAD alike, and covers nothing but the host.
  if (parameter('SignedHeaders') !== 'host') throw new GatewayError('ShareParameters', { value: 'SignedHeaders' })
  const credential = `${account.pair.accessKey}/${credentialScope(timestamp.slice(0, 8), region, SERVICE)}`
  if (parameter('Credential') !== credential) throw new GatewayError('ShareParameters', { value: 'Credential' })

  const expected = sign(context, {
    method: 'GET',
    path: canonicalPath(target.path),
    query: canonicalQuery(target.query, (name) => name === `${names.parameter}Signature`),
    host: request.headers.host ?? '',
    timestamp,
  })
  if (!timingSafeEqualHex(expected, parameter('Signature'))) throw new GatewayError('SignatureMismatch')
  const age = Date.now() - signedAt
  if (age < -MAX_SKEW || age > Number(expires) * 1000) throw new GatewayError('ShareExpired')
}

interface ToSign {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly timestamp: string
}

function sign({ account, region }: GatewayContext, { method, path, query, host, timestamp }: ToSign): string {
  const date = timestamp.slice(0, 8)
  const canonical = canonicalRequest({
    method,
    path,
    query,
    headers: [['host', host]],
    signedHeaders: 'host',
    payloadHash: UNSIGNED_PAYLOAD,
  })
  const key = signingKey(account.pair.secretKey, date, region, SERVICE)
  return signature(key, stringToSign(ALGORITHM, timestamp, credentialScope(date, region, SERVICE), canonical))
}

/** Milliseconds since 1970; undefined when it is no real instant. */
function parseTimestamp(text: string): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text)
  if (parts === null) return undefined
  const [, year, month, day, hour, minute, second] = parts
  const instant = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(instant) || formatTimestamp(new Date(instant)) !== text ? undefined : instant
}
