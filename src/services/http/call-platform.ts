import { readBounded } from '../../common/http/bounded-text.js'

export interface PlatformCall {
  readonly method: 'GET' | 'POST'
  /** With the query. */
  readonly path: string
  /** A JWT of the user who calls. */
  readonly token?: string
  readonly body?: FormData | URLSearchParams
  readonly signal?: AbortSignal
  readonly timeoutMs: number
  /** Largest answer, bytes. */
  readonly maxBytes: number
}

export interface PlatformAnswer {
  readonly status: number
  /** Undefined when the answer is not JSON. */
  readonly json: unknown
}

/**
 * Calls a task platform. Rejects when it cannot be reached, answers with a redirect or with more bytes, and when the
 * time is over or the signal aborts.
 * @param url of the platform, without a slash at the end
 */
export async function callPlatform(url: string, call: PlatformCall): Promise<PlatformAnswer> {
  const { method, path, token, body, signal, timeoutMs, maxBytes } = call
  const deadline = AbortSignal.timeout(timeoutMs)
  const response = await fetch(url + path, {
    method,
    redirect: 'error',
    signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    ...(body !== undefined && { body }),
  })
  return { status: response.status, json: parseJson(await readBounded(response, maxBytes)) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
