import type { Upload, UploadAttributes } from '../../api/gateway.js'
import type { GatewayClient } from '../client.js'
import { SmallBody } from './small-body.js'
import { StreamedBody } from './streamed-body.js'
import { GatewayUpload } from './upload.js'
import { UploadRequest } from './upload-request.js'

/** Largest body that is kept in memory until commit and sent in one piece, so that it can be sent again, bytes. */
const MAX_REPLAYABLE_BYTES = 256 * 1024

/** See Gateway.upload. Sends nothing before the first bytes. */
export function openUpload(
  client: GatewayClient,
  bucket: string,
  key: string,
  length: number,
  attributes: UploadAttributes,
): Upload {
  const request = new UploadRequest(client, bucket, key, length, attributes)
  return new GatewayUpload(request, length <= MAX_REPLAYABLE_BYTES ? new SmallBody(request) : new StreamedBody(request))
}
