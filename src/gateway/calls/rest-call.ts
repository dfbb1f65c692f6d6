import { Client, type Dispatcher } from 'undici'
import { OutcomeUnknown } from '../../common/errors/outcome-unknown.js'
import { encodePath } from '../brand.js'
import type { GatewayClient } from '../client.js'
import {
  isLostConnection,
  isNotConnected,
  isTokenRefusal,
  nonsense,
  TokenRefused,
  timedOut,
  translate,
  unavailable,
} from '../errors.js'
import type { GatewayAnswer, GatewayCall } from '../gateway-call.js'
import { outcomeOfStatus } from '../watch.js'
import { failureMessage, refusalOf } from './failure-envelope.js'
import { readBounded } from './rpc-reply.js'
import { USER_AGENT } from './user-agent.js'

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
  try {
    return await exchange(client, call, token)
  } catch (error) {
    if (!isLostConnection(error) || call.signal?.aborted) throw unavailable(error)
  }
  try {
    return await exchange(client, call, token)
  } catch (error) {
    throw unavailable(error)
  }
}

async function post(client: GatewayClient, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  try {
    return await exchange(client, call, token)
  } catch (error) {
    if (isNotConnected(error)) throw unavailable(error)
    throw new OutcomeUnknown('The connection to the object gateway was lost before it answered.', { cause: error })
  }
}

/**
 * Uses a connection of its own: on a kept connection that the gateway has closed meanwhile, it would remain unknown
 * whether a POST was received.
 */
async function exchange(client: GatewayClient, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  const { address, names } = client
  const timeoutMs = call.timeoutMs ?? client.timeoutMs
  const connection = new Client(address.origin, {
    connect: { ...client.tls, timeout: client.timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  const deadline = AbortSignal.timeout(timeoutMs)
  const watched = client.watch.begin(call.endpoint, call.method)
  try {
    const { statusCode, body } = await connection.request({
      method: call.method,
      path: address.pathname.replace(/\/+$/, '') + targetOf(client, call),
      headers: {
        'user-agent': USER_AGENT,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(call.body && { 'content-type': 'application/json' }),
        ...Object.fromEntries(Object.entries(call.headers ?? {}).map(([name, value]) => [names.header(name), value])),
        ...watched.headers,
      },
      body: call.body && JSON.stringify(call.body),
      signal: call.signal ? AbortSignal.any([call.signal, deadline]) : deadline,
    })
    const answer = await readAnswer(statusCode, body, call)
    watched.end(outcomeOfStatus(statusCode), statusCode)
    return answer
  } catch (error) {
    watched.end('failed')
    throw deadline.aborted ? timedOut('the answer') : error
  } finally {
    // Not awaited: the answer has arrived or was given up.
    connection.destroy().catch(() => {})
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

async function readAnswer(
  status: number,
  body: Dispatcher.ResponseData['body'],
  call: GatewayCall,
): Promise<GatewayAnswer> {
  const bytes = await readBounded(body, MAX_ANSWER_BYTES)
  if (bytes === undefined) throw nonsense(`answered ${call.endpoint} with more than ${MAX_ANSWER_BYTES} bytes`)
  const text = bytes.toString('utf8')
  const json = parsed(text)
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
