import type { ByteRange, Download, GatewayObject } from '../../api/gateway.js'
import type { Known, KnownObject } from '../../api/known-object.js'
import type { GatewayClient } from '../client.js'
import { headerFacts, timeOfRevision, writeMarkOf } from '../object-facts.js'
import type { RestResponse } from '../transport/response.js'
import { disagreement } from './disagreement.js'
import { DownloadBody, resolveRange } from './download-body.js'
import { open } from './request-object.js'

/**
 * Largest object that is downloaded where only its facts are asked for, bytes. A listing costs the gateway a look into
 * each file beside it, and no fewer packets.
 */
const MAX_LOOK_BYTES = 8 * 1024

/**
 * The object on record, by one request, if the download states the mark of the write that the record describes, its
 * time and its size: the bytes are then those of that write, whatever was listed since. Undefined otherwise: the
 * listing decides. Throws S3Error, such as AccessDenied.
 */
export async function downloadKnown(
  client: GatewayClient,
  bucket: string,
  key: string,
  range: ByteRange | undefined,
  known: Known,
): Promise<Download | undefined> {
  const found = await openKnown(client, bucket, key, await known())
  if (!found) return undefined
  const { object, response } = found
  try {
    const span = resolveRange(range, object.size)
    const [skip, surplus] = [span.first, object.size - 1 - span.last]
    return new DownloadBody(response, { object, span, skip, surplus, idleMs: client.rest.idleMs })
  } catch (error) {
    response.drain()
    throw error
  }
}

/**
 * As `downloadKnown`, for the facts alone. Asks for the bytes of a small object, and of any where the caller has to
 * prove that it may read them.
 */
export async function statKnown(
  client: GatewayClient,
  bucket: string,
  key: string,
  known: Known,
): Promise<GatewayObject | undefined> {
  const expected = await known()
  if (!expected || (expected.size > MAX_LOOK_BYTES && !client.account)) return undefined
  const found = await openKnown(client, bucket, key, expected)
  found?.response.drain()
  return found?.object
}

async function openKnown(
  client: GatewayClient,
  bucket: string,
  key: string,
  expected: KnownObject | undefined,
): Promise<{ readonly object: GatewayObject; readonly response: RestResponse } | undefined> {
  if (!expected) return undefined
  const lastModified = timeOfRevision(expected.revision)
  if (lastModified === undefined) return undefined
  const response = await open(client, bucket, key)
  if (!response) return undefined
  const { contentType, headers, metadata, writeId, encrypted } = headerFacts(client.names, response.headers, key, true)
  const { revision, size, mark } = expected
  const object = { key, size, lastModified, contentType, revision, headers, metadata, ...(encrypted && { encrypted }) }
  const isMarked = writeId !== undefined && writeMarkOf(writeId, response.headers) === mark
  if (!isMarked || disagreement(response, object) !== undefined) {
    response.drain()
    return undefined
  }
  return { object: { ...object, writeId }, response }
}
