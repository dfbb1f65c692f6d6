import { randomUUID } from 'node:crypto'
import { S3Error } from '../errors/s3-error.js'
import type { GatewayFeatures, Upload, UploadAttributes, UploadResult } from './gateway.js'
import { refusal } from './keys.js'
import { factsFromHeaders, MARKER_STAMP, uploadHeaders } from './object-facts.js'
import type { Answer } from './rest-client.js'
import { revisionOf } from './rest-download.js'
import { createUpload } from './rest-upload.js'
import { stat } from './stat.js'
import { looking, type Tools } from './tools.js'

/** See Gateway.upload. */
export function upload(
  tools: Tools,
  bucket: string,
  key: string,
  length: number,
  attributes: UploadAttributes,
): Upload {
  const revision = randomUUID()
  let features: GatewayFeatures | undefined
  const known = async () => {
    features ??= await tools.features.get(looking(tools).session)
    return features
  }
  return createUpload(tools, {
    bucket,
    key,
    length,
    path: tools.names.uploadPath(bucket, key),
    async headers() {
      const can = await known()
      if (!can.anyKey) refuse(key, length)
      return {
        [tools.names.header('date')]: new Date().toISOString().replace(/[-:]|\.\d+/g, ''),
        ...uploadHeaders(tools.names, can, attributes, can.objectHead ? undefined : revision),
      }
    },
    async stored(answer) {
      const can = await known()
      return (
        (can.objectHead && told(tools, can, key, length, answer)) || confirm(looking(tools), can, bucket, key, revision)
      )
    },
    settled: () => tools.snapshots.changed(bucket, key),
  })
}

/** What a gateway with objectHead says of what it has stored. */
function told(
  tools: Tools,
  features: GatewayFeatures,
  key: string,
  length: number,
  answer: Answer,
): UploadResult | undefined {
  const facts = factsFromHeaders(tools.names, features, answer.headers, key, length)
  if (!facts) return undefined
  const { stamp, lastModified, etag } = facts
  return { stamp, lastModified, ...(etag === undefined ? {} : { etag }) }
}

/**
 * Asks a gateway that tells nothing on upload what it has now. The listing is asked first and the mark after it: if the mark is still ours, the
 * listing was about our bytes and not about those of somebody who wrote a moment later.
 */
async function confirm(
  tools: Tools,
  features: GatewayFeatures,
  bucket: string,
  key: string,
  revision: string,
): Promise<UploadResult> {
  const listed = await stat(tools, features, bucket, key)
  if (key.endsWith('/') && !features.anyKey) {
    return { stamp: MARKER_STAMP, lastModified: listed?.lastModified ?? new Date().toISOString() }
  }
  if (!listed || (await revisionOf(tools, bucket, key)) !== revision) {
    return { stamp: `superseded/${revision}`, lastModified: listed?.lastModified ?? new Date().toISOString() }
  }
  const { stamp, lastModified, etag } = listed
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
