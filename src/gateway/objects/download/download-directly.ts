import type { GatewayClient } from '../../client.js'
import { nonsense } from '../../errors.js'
import type { ByteRange, Download, GatewayFeatures } from '../../gateway.js'
import { factsFromHeaders } from '../../object-facts.js'
import type { RestResponse } from '../../transport/response.js'
import { DownloadBody } from './download-body.js'
import { invalidRange, parseContentRange, rangeHeader, resolveRange } from './range.js'
import { request } from './request-object.js'

/**
 * Downloads with one call, which also describes the object. Resolves undefined when the answer does not describe it.
 * Throws S3Error.
 */
export async function downloadDirectly(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
): Promise<Download | undefined> {
  // A Range header cannot express "the last 0 bytes".
  const asked = range && !('suffix' in range && range.suffix === 0) ? { range: rangeHeader(range) } : undefined
  const response = await request(client, 'GET', { bucket, key }, asked)
  try {
    return await readDirect(client, features, key, range, response)
  } catch (error) {
    response.destroy()
    throw error
  }
}

async function readDirect(
  client: GatewayClient,
  features: GatewayFeatures,
  key: string,
  range: ByteRange | undefined,
  response: RestResponse,
): Promise<Download | undefined> {
  const contentRange = response.headers['content-range']
  if (response.status === 416) {
    response.drain()
    const size = /^bytes \*\/(\d+)$/.exec(contentRange ?? '')?.[1]
    if (size === undefined) throw nonsense('refused a range without telling the size')
    throw invalidRange(Number(size))
  }
  const sent = response.status === 206 ? parseContentRange(contentRange) : undefined
  const length = Number(response.headers['content-length'] ?? Number.NaN)
  if (response.status === 206 && !sent) throw nonsense('answered a range without saying which')
  const size = sent?.size ?? length
  const object = factsFromHeaders(client.names, features, response.headers, key, size)
  if (!object || !Number.isSafeInteger(size)) {
    response.destroy()
    return undefined
  }
  const span = resolveRange(range, size)
  const from = sent?.first ?? 0
  const to = sent?.last ?? size - 1
  if (length !== to - from + 1 || span.first < from || span.last > to)
    throw nonsense('answered with another range than was asked for')
  return new DownloadBody(response, {
    object,
    span,
    skip: span.first - from,
    surplus: to - span.last,
    idleMs: client.rest.idleMs,
  })
}
