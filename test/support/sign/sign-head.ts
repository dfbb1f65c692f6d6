import {
  ALGORITHM,
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  credentialScope,
  EMPTY_SHA256,
  signature,
  signingKey,
  stringToSign,
} from '../../../common/sigv4.js'
import type { HeadOptions } from './request-head.js'

/** The example account, time and region of Amazon's documentation of SigV4. */
export const example = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  timestamp: '20130524T000000Z',
  time: Date.UTC(2013, 4, 24),
  region: 'us-east-1',
} as const

export interface SignOptions {
  accessKeyId?: string
  secretAccessKey?: string
  /** Value of x-amz-content-sha256; undefined leaves the header out. */
  contentSha256?: string | undefined
  /** The hash in the canonical request if not the header's. */
  payloadHash?: string
  timestamp?: string
  date?: string
  region?: string
  service?: string
  brand?: 'amz' | 'cloud'
  /** Names not to sign though they are there. */
  unsigned?: readonly string[]
  /** Canonical path and query if not those of the target. */
  path?: string
  query?: string
}

interface SignedHead extends Required<HeadOptions> {
  readonly signature: string
  readonly key: Buffer
  readonly scope: string
}

/** Signs in the Authorization header, wrongly where the options say so. */
export function signHead(parts: HeadOptions, options: SignOptions = {}): SignedHead {
  const { accessKeyId, secretAccessKey, timestamp, region } = { ...example, ...options }
  const { date = timestamp.slice(0, 8), service = 's3', brand = 'amz', unsigned = [] } = options
  const contentSha256 = 'contentSha256' in options ? options.contentSha256 : EMPTY_SHA256
  const headers: [string, string][] = [
    ...(parts.headers ?? []).map(([name, value]): [string, string] => [name, value]),
    [`x-${brand}-date`, timestamp],
  ]
  if (contentSha256 !== undefined) headers.push([`x-${brand}-content-sha256`, contentSha256])
  const names = [...new Set(headers.map(([name]) => name.toLowerCase()))].filter((n) => !unsigned.includes(n)).sort()
  const [rawPath = '', rawQuery = ''] = parts.target.split('?')
  const signedHeaders = names.join(';')
  const canonical = canonicalRequest({
    method: parts.method ?? 'GET',
    path: options.path ?? canonicalPath(rawPath),
    query: options.query ?? canonicalQuery(rawQuery),
    headers,
    signedHeaders,
    payloadHash: options.payloadHash ?? contentSha256 ?? EMPTY_SHA256,
  })
  const scope = credentialScope(date, region, service)
  const key = signingKey(secretAccessKey, date, region, service)
  const value = signature(key, stringToSign(ALGORITHM, timestamp, scope, canonical))
  const authorization = `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${value}`
  return {
    method: parts.method ?? 'GET',
    target: parts.target,
    headers: [...headers, ['Authorization', authorization]],
    signature: value,
    key,
    scope,
  }
}
