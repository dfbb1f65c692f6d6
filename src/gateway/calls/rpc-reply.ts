import {
  isTokenRefusal,
  isUnknownService,
  nonsense,
  ServiceUnknown,
  TokenRefused,
  translate,
  type UpstreamFailure,
} from '../errors.js'
import type { RpcCall, RpcResult } from './rpc-call.js'

/**
 * Extracts `result` from a reply. A reply without one is a failure, whatever else it holds. Throws S3Error,
 * TokenRefused, ServiceUnknown.
 */
export function resultOf(reply: Readonly<Record<string, unknown>>, call: RpcCall): RpcResult {
  if (isRecord(reply.result)) return reply.result
  const error = reply.error
  if (!isRecord(error)) throw nonsense(`answered ${call.method} with neither result nor error`)
  const data = error.data
  const dataCode = isRecord(data) && typeof data.code === 'string' ? data.code : undefined
  const fence = isRecord(data) && typeof data.fence === 'number' ? data.fence : undefined
  throw rpcFailure({ kind: 'rpc', text: String(error.message ?? ''), dataCode, fence }, call)
}

/** The error for an answer other than 200. */
export function refusal(status: number, text: string, call: RpcCall): Error {
  return rpcFailure({ kind: 'http', status, text, headerCode: undefined, toCall: true }, call)
}

function rpcFailure(failure: UpstreamFailure, call: RpcCall): Error {
  const error = translate(failure, call.subject ?? {})
  if (isUnknownService(failure)) return new ServiceUnknown(error)
  return isTokenRefusal(failure) && call.token !== undefined ? new TokenRefused(error) : error
}

export function isJson(contentType: string | string[] | undefined): boolean {
  return /^application\/json\b/i.test(String(contentType ?? ''))
}

export function answeredWithoutJson(call: RpcCall): Error {
  return nonsense(`answered ${call.method} without JSON`)
}

/** Resolves undefined when the body has more than `max` bytes. */
export async function readBounded(body: AsyncIterable<Buffer>, max: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > max) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

export function parseReply(text: string, method: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text)
    if (isRecord(parsed)) return parsed
  } catch {
    // The check below reports it like any other invalid reply.
  }
  throw nonsense(`answered ${method} with JSON that cannot be read`)
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
