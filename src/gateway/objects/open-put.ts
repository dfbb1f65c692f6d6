import type { OutgoingHttpHeaders } from 'node:http'
import type { RestClient } from '../calls/rest-client.js'
import { PutInParts } from './put-in-parts.js'
import { PutRequest, type StreamedPut } from './put-request.js'

/**
 * Begins a PUT without waiting for anything. Its body follows.
 * @param headers with the length of the body
 * @param fresh use a new connection, where there are connections
 */
export function openPut(rest: RestClient, path: string, headers: OutgoingHttpHeaders, fresh: boolean): StreamedPut {
  const sent = rest.putInParts(path, headers)
  return sent ? new PutInParts(sent, rest.idleMs) : new PutRequest(rest.put(path, headers, fresh), rest.idleMs)
}
