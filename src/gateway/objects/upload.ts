import { randomUUID } from 'node:crypto'
import type { GatewayFeatures, GatewayObject, Upload, UploadAttributes, UploadResult } from '../../api/gateway.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import { formatTimestamp } from '../../common/sigv4.js'
import { UNRESOLVED } from '../calls/in-doubt.js'
import type { Answer } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { unavailable } from '../errors.js'
import { refusal } from '../keys.js'
import { stat } from '../listing/look-up.js'
import { factsFromHeaders, MARKER_STAMP, unconfirmedStamp, uploadHeaders } from '../object-facts.js'
import { writeIdOf } from './download.js'
import { SmallUpload, StreamedUpload } from './streamed-upload.js'
import type { UploadTarget } from './upload-base.js'

/** Largest body that is kept in memory until commit and sent in one piece, so that it can be sent again, bytes. */
const REPLAYABLE_BYTES = 256 * 1024

/**
 * See Gateway.upload. The way of a body to the gateway, from top to bottom:
 *
 * 1. This file names the write, describes its target and chooses how to send it.
 * 2. `small-upload.ts` keeps a small body until commit; `streamed-upload.ts` passes a large one through.
 *   `upload-base.ts` holds the steps that both share: count bytes, open the request, read the answer.
 * 3. `whole-put.ts` is one PUT in one piece, `put-request.ts` one whose body follows its head.
 * 4. `confirm.ts` finds the stored object where the answer to the upload does not describe it.
 */
export function upload(
  client: GatewayClient,
  bucket: string,
  key: string,
  length: number,
  attributes: UploadAttributes,
): Upload {
  const writeId = attributes.writeId ?? randomUUID()
  let features: GatewayFeatures | undefined
  const known = async () => {
    features ??= await client.features.get(lookupClient(client).session)
    return features
  }
  const target: UploadTarget = {
    bucket,
    key,
    length,
    writeId,
    path: client.names.uploadPath(bucket, key),
    ordered: async () => (await known()).writeFences,
    async headers() {
      const can = await known()
      if (!can.anyKey) refuse(key, length)
      const headers = uploadHeaders(client.names, can, attributes, can.objectHead ? undefined : writeId)
      headers[client.names.header('date')] = formatTimestamp(new Date())
      return headers
    },
    async stored(answer, logger) {
      const can = await known()
      return (
        (can.objectHead && reportedResult(client, can, key, length, answer)) ||
        confirm(lookupClient(client), can, { bucket, key, writeId, logger })
      )
    },
    async look() {
      const can = await known()
      if (!can.objectHead) return locate(lookupClient(client), can, bucket, key, writeId)
      const found = await stat(lookupClient(client), can, bucket, key)
      return found?.writeId === writeId ? resultOf(found) : undefined
    },
    objectMayHaveChanged: () => client.snapshots.changed(bucket, key),
  }
  return length <= REPLAYABLE_BYTES ? new SmallUpload(client, target) : new StreamedUpload(client, target)
}

/** Reads the stored object from the headers of the answer, on gateways with objectHead. */
function reportedResult(
  client: GatewayClient,
  features: GatewayFeatures,
  key: string,
  length: number,
  answer: Answer,
): UploadResult | undefined {
  const facts = factsFromHeaders(client.names, features, answer.headers, key, length)
  return facts && resultOf(facts)
}

function resultOf({ stamp, lastModified, etag }: GatewayObject): UploadResult {
  return { stamp, lastModified, ...(etag === undefined ? {} : { etag }) }
}

function refuse(key: string, length: number): void {
  const message = refusal(key)
  if (message !== undefined) throw new S3Error('InvalidArgument', { message, fields: { Key: key } })
  if (key.endsWith('/') && length > 0) {
    throw new S3Error('InvalidArgument', {
      message: 'The object gateway cannot hold bytes under a key that ends in "/".',
      fields: { Key: key },
    })
  }
}

/** Attempts before the search fails because the object keeps changing. */
const ATTEMPTS = 3

/**
 * Finds what the gateway has stored of this write, on gateways whose answer to an upload does not describe the object.
 * Resolves undefined when the object is gone or another. Lists the object first and reads its mark afterwards: if the
 * mark is still that of this write, the listing described these bytes and not those of a later write. Throws S3Error
 * when the gateway does not show the object.
 */
async function locate(
  client: GatewayClient,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  writeId: string,
): Promise<UploadResult | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const listed = await stat(client, features, bucket, key)
    if (!listed) return undefined
    // A folder has no mark and is the same whichever write made it.
    if (key.endsWith('/') && !features.anyKey) return { stamp: MARKER_STAMP, lastModified: listed.lastModified }
    const found = await writeIdOf(client, bucket, listed)
    if (found === undefined) continue
    if (found !== writeId) return undefined
    const { stamp, lastModified, etag } = listed
    return { stamp, lastModified, ...(etag === undefined ? {} : { etag }) }
  }
  throw unavailable(undefined, 'The object gateway does not show the object that it stored. Try again.')
}

interface Acknowledged {
  readonly bucket: string
  readonly key: string
  readonly writeId: string
  /** Whose write it is: gets the lines about it. */
  readonly logger: Logging | undefined
}

/**
 * Like `locate`, for an upload that the gateway has acknowledged: the object is stored, even if the gateway cannot show
 * it now.
 */
async function confirm(
  client: GatewayClient,
  features: GatewayFeatures,
  { bucket, key, writeId, logger }: Acknowledged,
): Promise<UploadResult> {
  const now = new Date().toISOString()
  const look = () => locate(client, features, bucket, key, writeId)
  try {
    const superseded = key.endsWith('/') && !features.anyKey ? MARKER_STAMP : `superseded/${writeId}`
    return (await look()) ?? { stamp: superseded, lastModified: now }
  } catch (err) {
    const confirmed = client.inDoubt
      .findOutcome(Promise.reject(err), look, { logger })
      .then((found) => (found === UNRESOLVED ? undefined : found))
    return { stamp: unconfirmedStamp(writeId), lastModified: now, confirmed, problem: err }
  }
}
