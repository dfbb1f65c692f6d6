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
} from '../../common/sigv4.js'
import { MINUTE_MS } from '../../common/time.js'
import type { Target } from '../http/routes.js'
import type { Account } from './accounts/accounts.js'
import type { GatewayContext } from './context.js'
import { GatewayError } from './errors.js'
import type { GatewayExchange } from './exchange.js'

const SERVICE = 's3'
export const MAX_EXPIRY = 604_800
/** How far in the future the date of a link may be, ms. */
const MAX_SKEW = 15 * MINUTE_MS

/**
 * Builds the query of a link to an object, without `?`: parameters in the order of public gateways, the signature last.
 * @param account that signs it
 * @param path canonical
 * @param host as the client will send it
 * @param expires seconds
 */
export function shareQuery(
  { names, region }: GatewayContext,
  account: Account,
  { path, host, expires, now }: ShareTarget,
): string {
  const timestamp = formatTimestamp(now)
  const credential = `${account.accessKey}/${credentialScope(timestamp.slice(0, 8), region, SERVICE)}`
  const parameters = [
    ['Algorithm', ALGORITHM],
    ['Credential', credential],
    ['Date', timestamp],
    ['Expires', String(expires)],
    ['SignedHeaders', 'host'],
  ] as const
  const query = parameters.map(([name, value]) => `${names.parameter}${name}=${uriEncode(value)}`).join('&')
  const proof = sign(account, region, { method: 'GET', path, query: canonicalQuery(query), host, timestamp })
  return `${query}&${names.parameter}Signature=${proof}`
}

interface ShareTarget {
  readonly path: string
  readonly host: string
  readonly expires: number
  readonly now: Date
}

export function isShareLink({ names }: GatewayContext, { parameters }: Target): boolean {
  return parameters.has(`${names.parameter}Signature`)
}

/**
 * The account that signed the link of the request. Throws GatewayError unless the signature is right and the link has
 * not expired.
 */
export async function verifyShareLink({ context, request, target }: GatewayExchange): Promise<Account> {
  const { names, db, region } = context
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
  // A link is valid for GET and HEAD, and signs no header but the host.
  if (parameter('SignedHeaders') !== 'host') throw new GatewayError('ShareParameters', { value: 'SignedHeaders' })
  const scope = `/${credentialScope(timestamp.slice(0, 8), region, SERVICE)}`
  const credential = parameter('Credential')
  const accessKey = credential.endsWith(scope) ? credential.slice(0, -scope.length) : ''
  const account = await db.read.accounts.find(accessKey)
  if (account === undefined) throw new GatewayError('ShareParameters', { value: 'Credential' })

  const expected = sign(account, region, {
    method: 'GET',
    path: canonicalPath(target.path),
    query: canonicalQuery(target.query, (name) => name === `${names.parameter}Signature`),
    host: request.headers.host ?? '',
    timestamp,
  })
  if (!timingSafeEqualHex(expected, parameter('Signature'))) throw new GatewayError('SignatureMismatch')
  const age = Date.now() - signedAt
  if (age < -MAX_SKEW || age > Number(expires) * 1000) throw new GatewayError('ShareExpired')
  return account
}

interface ToSign {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly timestamp: string
}

function sign({ secretKey }: Account, region: string, { method, path, query, host, timestamp }: ToSign): string {
  const date = timestamp.slice(0, 8)
  const canonical = canonicalRequest({
    method,
    path,
    query,
    headers: [['host', host]],
    signedHeaders: 'host',
    payloadHash: UNSIGNED_PAYLOAD,
  })
  const key = signingKey(secretKey, date, region, SERVICE)
  return signature(key, stringToSign(ALGORITHM, timestamp, credentialScope(date, region, SERVICE), canonical))
}

/** Milliseconds since 1970; undefined when the text is not a valid instant. */
function parseTimestamp(text: string): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text)
  if (parts === null) return undefined
  const [, year, month, day, hour, minute, second] = parts
  const instant = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(instant) || formatTimestamp(new Date(instant)) !== text ? undefined : instant
}
