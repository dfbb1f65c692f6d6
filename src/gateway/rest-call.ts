import { Client, type Dispatcher } from 'undici'
import { OutcomeUnknown } from '../errors/outcome-unknown.js'
import { encodePath } from './brand.js'
import {
  isLostConnection,
  isNotConnected,
  isTokenRefusal,
  nonsense,
  TokenRefused,
  timedOut,
  translate,
  unavailable,
} from './errors.js'
import type { GatewayAnswer, GatewayCall } from './gateway.js'
import { readBounded, USER_AGENT } from './rpc.js'
import type { Tools } from './tools.js'

const MAX_ANSWER_BYTES = 8 * 1024 * 1024

/** See Gateway.call. */
export function restCall(tools: Tools, call: GatewayCall): Promise<GatewayAnswer> {
  return tools.session.withLogin(async (token) => {
    const answer = call.method === 'GET' ? await get(tools, call, token) : await post(tools, call, token)
    const failure = { kind: 'http', status: answer.status, text: answer.text, headerCode: undefined } as const
    // Whoever is told so has not been let in: nothing was done.
    if (token !== undefined && isTokenRefusal(failure))
      throw new TokenRefused(translate(failure, { bucket: call.bucket, key: call.key }, tools.log))
    return answer
  })
}

async function get(tools: Tools, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  try {
    return await exchange(tools, call, token)
  } catch (error) {
    if (!isLostConnection(error) || call.signal?.aborted) throw unavailable(error)
  }
  try {
    return await exchange(tools, call, token)
  } catch (error) {
    throw unavailable(error)
  }
}

async function post(tools: Tools, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  try {
    return await exchange(tools, call, token)
  } catch (error) {
    if (isNotConnected(error)) throw unavailable(error)
    throw new OutcomeUnknown('The connection to the object gateway was lost before it answered.', { cause: error })
  }
}

/** On a connection of its own: a kept one that the gateway has closed meanwhile would leave it open whether a POST was received. */
async function exchange(tools: Tools, call: GatewayCall, token: string | undefined): Promise<GatewayAnswer> {
  const { address, names } = tools
  const timeoutMs = call.timeoutMs ?? tools.timeoutMs
  const client = new Client(address.origin, {
    connect: { timeout: tools.timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    const { statusCode, body } = await client.request({
      method: call.method,
      path: address.pathname.replace(/\/+$/, '') + targetOf(tools, call),
      headers: {
        'user-agent': USER_AGENT,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(call.body && { 'content-type': 'application/json' }),
        ...Object.fromEntries(Object.entries(call.headers ?? {}).map(([name, value]) => [names.header(name), value])),
      },
      body: call.body && JSON.stringify(call.body),
      signal: call.signal ? AbortSignal.any([call.signal, deadline]) : deadline,
    })
    return await readAnswer(statusCode, body, call)
  } catch (error) {
    throw deadline.aborted ? timedOut('the answer') : error
  } finally {
    // Not waited for: the answer is there, or is given up.
    client.destroy().catch(() => {})
  }
}

function targetOf({ names }: Tools, { endpoint, bucket, key, keyInOneSegment, id }: GatewayCall): string {
  const parts = [bucket, key, id].filter((part) => part !== undefined).map(encodePath)
  if (key !== undefined && keyInOneSegment) parts[1] = encodePath(key).replaceAll('/', '%2F')
  return names.ownPath([endpoint, ...parts].join('/'))
}

async function readAnswer(
  status: number,
  body: Dispatcher.ResponseData['body'],
  call: GatewayCall,
): Promise<GatewayAnswer> {
  const bytes = await readBounded(body, MAX_ANSWER_BYTES)
  if (bytes === undefined) throw nonsense(`answered ${call.endpoint} with more than ${MAX_ANSWER_BYTES} bytes`)
  const text = bytes.toString('utf8')
  return { status, json: parsed(text), text }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
