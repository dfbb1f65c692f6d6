// Removals: of objects, which leaves a delete marker in a bucket with versions, and of versions, which is for ever.
import { send, sendXml } from './api.js'
import { checksumOf } from './s3.js'
import { element, fitsXml } from './xml.js'

/**
 * Deletes up to 1000 objects, or versions of them.
 * @param items [{ key, versionId?, etag? }]: one with an `etag` is deleted only as long as it has it
 * @param options { bypass?, reason? }: `bypass` passes by retentions in GOVERNANCE mode
 * @returns { failed: [{ key, versionId?, code, message }], markers: [{ key, versionId }] }: `markers` are those that the
 *   removals have made
 */
export async function deleteObjects(client, bucket, items, options, signal) {
  const found = { failed: [], markers: [] }
  const inDocument = items.filter(({ key }) => fitsXml(key))
  if (inDocument.length > 0) await deleteByDocument(client, bucket, inDocument, options, signal, found)
  for (const item of items.filter(({ key }) => !fitsXml(key))) {
    signal?.throwIfAborted()
    await deleteByAddress(client, { bucket, ...item }, options, signal, found)
  }
  return found
}

async function deleteByDocument(client, bucket, items, options, signal, { failed, markers }) {
  const objects = items.map(({ key, versionId, etag }) =>
    element('Object', [
      element('Key', key),
      versionId === undefined ? '' : element('VersionId', versionId),
      etag === undefined ? '' : element('ETag', etag),
    ]),
  )
  const body = element('Delete', objects)
  const { query, headers } = bypassing(options)
  const root = await sendXml(client, {
    ...{ method: 'POST', bucket, query: { ...query, delete: '' }, body, signal },
    headers: { ...headers, 'x-amz-checksum-sha256': await checksumOf(body), 'content-type': 'application/xml' },
  })
  for (const result of root?.children ?? []) {
    const key = result.get('Key')
    if (result.name === 'Error')
      failed.push({
        key,
        versionId: result.get('VersionId'),
        code: result.get('Code'),
        message: result.get('Message'),
      })
    // The removal of a marker by its id is reported with a marker, too.
    else if (result.get('DeleteMarker') === 'true' && result.get('VersionId') === undefined)
      markers.push({ key, versionId: result.get('DeleteMarkerVersionId') })
  }
}

async function deleteByAddress(client, place, options, signal, { failed, markers }) {
  const { key, versionId, etag } = place
  const { query, headers: given } = bypassing(options)
  const condition = etag === undefined ? {} : { 'if-match': etag }
  try {
    const { headers } = await send(client, {
      ...{ ...place, method: 'DELETE', query, signal },
      headers: { ...given, ...condition },
    })
    if (versionId === undefined && headers.get('x-amz-delete-marker') === 'true')
      markers.push({ key, versionId: headers.get('x-amz-version-id') })
  } catch (error) {
    if (signal?.aborted) throw error
    failed.push({ key, versionId, code: error.code, message: error.message })
  }
}

/**
 * Parts of a request that passes by a retention. Parameters that begin with `x-` change nothing and stand in the log of
 * the bucket: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html#LogFormatCustom
 * @param options { bypass?, reason? }
 */
export function bypassing({ bypass, reason } = {}) {
  return {
    query: { 'x-reason': reason || undefined },
    headers: bypass ? { 'x-amz-bypass-governance-retention': 'true' } : {},
  }
}
