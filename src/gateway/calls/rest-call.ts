import type { IncomingHttpHeaders } from 'node:http'
import { OutcomeUnknown } from '../../../common/errors/s3-error.js'
import { isRecord, parseJson } from '../../../common/json.js'
import type { GatewayAnswer, GatewayCall } from '../../api/gateway-call.js'
import { type BrandNames, encodePath } from '../brand.js'
import type { GatewayClient } from '../client.js'
import {
  isLostConnection,
  isNotConnected,
  isTokenRefusal,
  nonsense,
  notConnected,
  TokenRefused,
  timedOut,
  translate,
  type UpstreamFailure,
  unavailable,
} from '../errors.js'
import { outcomeOfStatus, USER_AGENT } from '../gateway-call.js'
import { single } from '../object-facts.js'
import { type RestResponse, readAll } from '../transport/response.js'

const MAX_ANSWER_BYTES = 8 * 1024 * 1024

/** See Gateway.call. */
export function restCall(client: GatewayClient, call: GatewayCall): Promise<GatewayAnswer> {
  return client.session.withLogin(async (token) => {
    const answer = call.method === 'GET' ? await get(client, call, token) : await post(client, call, token)
    if (token !== undefined && isTokenRefusal(failureOf(answer)) && (await isRepeatable(client, call, token, answer)))
      throw new TokenRefused(answer.toError())
    return answer
  })
}

/**
 * True when a call that was answered as unauthorized may be repeated with another token: a GET always, a POST only when
 * the gateway certainly did not process it. Public gateways refuse such a POST in their own form or, before they look
 * at the path, with 401 and no body (MinIO cmd/auth-handler.go). An intermediate proxy may answer like the latter after
 * it has forwarded the POST; the token is then tried on a call that has no effect.
 */
async function isRepeatable(
  client: GatewayClient,
  call: GatewayCall,
  token: string,
  answer: GatewayAnswer,
): Promise<boolean> {
  const { method, bucket } = call
  if (method === 'GET' || answer.refusal !== undefined) return true
  if (answer.status !== 401 || answer.text !== '' || bucket === undefined) return false
  const { signal } = call
  const probe = { method: 'GET', endpoint: 'bucket/retrieve', bucket, access: 'read', signal } as const
  try {
    const { status, text } = await exchange(client, probe, token)
    return status === 401 && text === ''
  } catch {
    return false
  }
}

async function get(client: GatewayClient, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  return answerTo(call, await getPath(client, requestOf(client, call, token)))
}

async function post(client: GatewayClient, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  try {
    return await exchange(client, call, token)
  } catch (error) {
    if (isNotConnected(error)) throw unavailable(error)
    throw new OutcomeUnknown('The connection to the object gateway was lost before it answered.', { cause: error })
  }
}

async function exchange(client: GatewayClient, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  return answerTo(call, await send(client, requestOf(client, call, token)))
}

function requestOf(client: GatewayClient, call: GatewayCall, token: string | undefined): PathRequest {
  const { method, endpoint, headers = {}, body, timeoutMs, signal } = call
  const own = Object.entries(headers).map(([name, value]) => [client.names.header(name), value])
  return {
    name: endpoint,
    method,
    path: targetOf(client, call),
    token,
    headers: { ...(body && { 'content-type': 'application/json' }), ...Object.fromEntries(own) },
    body: body && JSON.stringify(body),
    timeoutMs,
    signal,
  }
}

/** The gateway, as a request to one of its paths needs it. */
export type PathDeps = Pick<GatewayClient, 'address' | 'rest' | 'timeoutMs' | 'watch'>

interface PathRequest {
  /** For the watch. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  /** Below the gateway's address, encoded. */
  readonly path: string
  readonly token: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Default that of the client. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

interface PathAnswer {
  readonly status: number
  /** Undefined for more than 8 MiB. */
  readonly bytes: Buffer | undefined
}

/** Sends a GET, and repeats it once if the connection is lost. Throws S3Error. */
export async function getPath(to: PathDeps, request: Omit<PathRequest, 'method'>): Promise<PathAnswer> {
  try {
    return await send(to, { ...request, method: 'GET' })
  } catch (error) {
    if (!isLostConnection(error) || request.signal?.aborted) throw unavailable(error)
  }
  try {
    return await send(to, { ...request, method: 'GET' })
  } catch (error) {
    throw unavailable(error)
  }
}

/**
 * Uses a new connection: on a kept one that the gateway has closed meanwhile, it would remain unknown whether a POST
 * was received, and a deal that is made is not made twice.
 */
async function send(to: PathDeps, request: PathRequest): Promise<PathAnswer> {
  const { address, rest, watch } = to
  const { name, method, path, token, headers, body, timeoutMs = to.timeoutMs, signal } = request
  // A new error, not the reason itself: an error is marked if nothing was sent, and others may have the reason, too.
  const givenUp = () => new Error('the call was given up', { cause: signal?.reason })
  if (signal?.aborted) throw notConnected(givenUp())
  const watched = watch.begin(name, method)
  let timer: NodeJS.Timeout | undefined
  let abort = () => {}
  try {
    const sent = rest.wire.send({
      method,
      path: address.pathname.replace(/\/+$/, '') + path,
      headers: {
        'user-agent': USER_AGENT,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
        ...watched.headers,
      },
      body: body === undefined ? undefined : Buffer.from(body),
      maxIdleMs: 0,
    })
    timer = setTimeout(() => sent.giveUp(timedOut('the answer')), timeoutMs)
    abort = () => sent.giveUp(givenUp())
    signal?.addEventListener('abort', abort)
    const answer = await sent.answered
    const bytes = await readAll(answer, MAX_ANSWER_BYTES, timeoutMs)
    watched.end(outcomeOfStatus(answer.status), answer.status)
    return { status: answer.status, bytes }
  } catch (error) {
    watched.end('failed')
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

function targetOf(
  { names }: GatewayClient,
  { endpoint, bucket, key, keyInOneSegment, id, query }: GatewayCall,
): string {
  const parts = [bucket, key, id].filter((part) => part !== undefined).map(encodePath)
  if (key !== undefined && keyInOneSegment) parts[1] = encodePath(key).replaceAll('/', '%2F')
  const search = query ? `?${new URLSearchParams(query)}` : ''
  return names.ownPath([endpoint, ...parts].join('/')) + search
}

function answerTo(call: GatewayCall, { status, bytes }: PathAnswer): GatewayAnswer {
  if (bytes === undefined) throw nonsense(`answered ${call.endpoint} with more than ${MAX_ANSWER_BYTES} bytes`)
  const text = bytes.toString('utf8')
  const json = parseJson(text)
  return {
    status,
    json,
    text,
    failure: failureMessage(json),
    refusal: refusalOf({ status, json }),
    toError: () => translate(failureOf({ status, text }), { bucket: call.bucket, key: call.key }),
  }
}

function failureOf({ status, text }: Pick<GatewayAnswer, 'status' | 'text'>) {
  return { kind: 'http', status, text, headerCode: undefined } as const
}

/**
 * The message of a failure in the gateway's own form, `{"data": ..., "status": "fail", "message": "..."}` with all
 * three members, as its deal endpoints send it (filswan/fs3 cmd/web-handlers.go). Undefined for any other answer: an
 * intermediate proxy may answer by itself after it has forwarded a request, so only this form proves that the gateway
 * refused.
 */
function failureMessage(json: unknown): string | undefined {
  if (!isRecord(json) || !Object.hasOwn(json, 'data')) return undefined
  const { status, message } = json
  return typeof status === 'string' && status.toLowerCase() === 'fail' && typeof message === 'string'
    ? message
    : undefined
}

/**
 * Statuses that proxies answer after a timeout and that the gateway never uses for a refusal: request timeout, too
 * early, too many requests, client closed request.
 */
const NEVER_REFUSALS: readonly number[] = [408, 425, 429, 499]

/**
 * The gateway's own reason for refusing a POST, which proves that nothing was done. Undefined for every other answer,
 * which leaves the outcome unknown: a failure with a status of 500 or more means that the gateway broke down, possibly
 * after it did the work.
 */
function refusalOf({ status, json }: { readonly status: number; readonly json: unknown }): string | undefined {
  const refuses = status === 200 || (status >= 400 && status < 500 && !NEVER_REFUSALS.includes(status))
  return refuses ? failureMessage(json) : undefined
}

/** Most bytes of an answer that are read. */
export const MAX_TEXT_BYTES = 16 * 1024

/** A complete small answer: to an upload, or in place of an object's bytes. */
export interface SmallAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** At most 16 KiB. */
  readonly text: string
  /** It came before the whole body of the request had left: an acknowledgement of such a body is worth nothing. */
  readonly early?: boolean
}

/** Converts a failed answer to the form that `translate` takes. */
export function httpFailure(names: BrandNames, answer: SmallAnswer): UpstreamFailure & { kind: 'http' } {
  const headerCode = single(answer.headers[names.header('error-code')])
  const fence = numberOf(single(answer.headers[names.header('fence')]))
  return { kind: 'http', status: answer.status, text: answer.text, headerCode, fence }
}

function numberOf(text: string | undefined): number | undefined {
  const number = Number(text)
  return text !== undefined && Number.isSafeInteger(number) ? number : undefined
}

/**
 * Reads the rest of a small answer. Truncates a longer one and closes its connection. Never fails: returns the bytes
 * that arrived.
 */
export function readAnswer(response: RestResponse, idleMs: number): Promise<SmallAnswer> {
  const { status, headers } = response
  const whole = response.whole()
  if (whole) return Promise.resolve({ status, headers, text: whole.toString('utf8', 0, MAX_TEXT_BYTES) })
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => response.destroy(), idleMs)
    const finish = () => {
      clearTimeout(timer)
      const text = Buffer.concat(chunks).subarray(0, MAX_TEXT_BYTES).toString('utf8')
      resolve({ status, headers, text })
    }
    response.read(
      {
        data(chunk, done) {
          chunks.push(Buffer.from(chunk))
          size += chunk.length
          done()
          if (size > MAX_TEXT_BYTES) response.destroy()
        },
        end: finish,
        failed: finish,
      },
      0,
    )
  })
}
