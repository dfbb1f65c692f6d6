import type { GatewayObject } from '../../api/gateway.js'
import type { RestResponse } from '../transport/response.js'

/** Names the first difference between a full download and the listed object; undefined when they agree. */
export function disagreement(response: RestResponse, listed: GatewayObject): string | undefined {
  const { headers, status } = response
  if (status !== 200) return `status (${status})`
  if (/^text\/html\b/i.test(headers['content-type'] ?? '') && !/^text\/html\b/i.test(listed.contentType))
    return 'type (an HTML page)'
  // A chunked answer has no length; `Delivery` counts the bytes anyway.
  const length = headers['content-length']
  if (length !== undefined && Number(length) !== listed.size) return 'size'
  const time = Date.parse(headers['last-modified'] ?? '')
  if (time !== Math.floor(Date.parse(listed.lastModified) / 1000) * 1000) return 'time'
  return undefined
}
