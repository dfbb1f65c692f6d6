import type { IncomingHttpHeaders } from 'node:http'
import type { Transfer } from '../../api/request.js'
import { mailSafe } from '../../http/encoded-words.js'
import { type BrandNames, encodePath } from '../brand.js'
import { httpFailure, readAnswer } from '../calls/rest-call.js'
import type { GatewayClient } from '../client.js'
import { nonsense, translate } from '../errors.js'
import { SpanBody } from '../objects/download-body.js'
import type { RestResponse } from '../transport/response.js'
import { refusable } from './session.js'

/** A request for an object through a link that the gateway has signed. */
export interface LinkedRequest {
  readonly method: 'GET' | 'HEAD'
  readonly bucket: string
  readonly key: string
  /** Includes the signature, as sent. */
  readonly rawQuery: string
  /** The host that the link was signed for. */
  readonly host: string
  /** Headers of the client. The range and the conditions among them are forwarded to the gateway. */
  readonly headers: IncomingHttpHeaders
}

/** The answer of the gateway: 200, 206 or 304. */
export interface LinkedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Absent for HEAD and 304. */
  readonly transfer?: Transfer
}

const ASKED = ['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'] as const
const ANSWERED = new Set([
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
])

/**
 * Forwards a linked request without a log-in. The gateway checks the signature; this server does not. Throws S3Error.
 */
export async function openLink(
  client: Pick<GatewayClient, 'rest' | 'names'>,
  link: LinkedRequest,
): Promise<LinkedAnswer> {
  const { rest, names } = client
  const sent = Object.fromEntries(
    ASKED.flatMap((name) => (link.headers[name] === undefined ? [] : [[name, link.headers[name]]])),
  )
  const path = `/${encodePath(link.bucket)}/${encodePath(link.key)}?${link.rawQuery}`
  const response = await rest.get(link.method, path, { ...sent, host: link.host, 'accept-encoding': 'identity' })
  const status = response.status
  if (![200, 206, 304].includes(status)) throw await refusalOf(client, link, response)
  const headers = shownHeaders(names, response.headers)
  if (link.method === 'HEAD' || status === 304) {
    response.drain()
    return { status, headers }
  }
  const length = Number(response.headers['content-length'] ?? Number.NaN)
  if (!Number.isSafeInteger(length)) {
    response.destroy()
    throw nonsense('answered a share link without a length')
  }
  return {
    status,
    headers,
    transfer: new SpanBody(response, {
      span: { first: 0, last: length - 1 },
      skip: 0,
      surplus: 0,
      idleMs: rest.idleMs,
    }),
  }
}

function shownHeaders(names: BrandNames, headers: IncomingHttpHeaders): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') continue
    if (ANSWERED.has(name)) shown[name] = value
    else if (name.startsWith(names.metaPrefix))
      shown[`x-amz-meta-${name.slice(names.metaPrefix.length)}`] = mailSafe(value)
  }
  return shown
}

async function refusalOf(
  { rest, names }: Pick<GatewayClient, 'rest' | 'names'>,
  { bucket, key, method }: LinkedRequest,
  response: RestResponse,
): Promise<unknown> {
  const failure = httpFailure(names, await readAnswer(response, rest.idleMs))
  // The answer to a HEAD has no body that names what is missing.
  const known = method === 'HEAD' && failure.status === 404 ? { ...failure, headerCode: 'NoSuchKey' } : failure
  return refusable(() => {
    throw translate(known, { bucket, key })
  }).catch((error: unknown) => error)
}
