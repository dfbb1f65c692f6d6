import { S3Error } from '../errors/s3-error.js'
import type { Gateway, Upload, UploadResult } from '../gateway/gateway.js'
import type { BodyFacts } from '../request/body.js'
import type { ObjectChecksum } from '../state/state.js'
import type { StoreParts } from './create-store.js'
import { MARKER_STAMP } from './describe.js'
import type { PutRequest, PutResult, Source, Store } from './store.js'

/**
 * Streams the source to the gateway and commits it once it is verified. The last bytes are held back until then: the gateway, which knows the exact length,
 * cannot take the object for complete before (DESIGN section 4, promise 1). Precondition, last bytes and record happen under the key's lock, so that
 * conditional writes are atomic among the clients of this proxy, and the lock is never held at the pace of a slow client.
 */
export async function put(parts: StoreParts, find: Store['find'], request: PutRequest): Promise<PutResult> {
  const { gateway, state, limits } = parts
  const { bucket, key, precondition } = request
  await refuseKey(gateway, key)
  if (precondition) precondition(await find(bucket, key))

  const features = await gateway.features()
  const options = { md5: !features.objectHead && request.etag === undefined, checksum: request.wantChecksum }
  const attributes = { ...request.attributes, etag: request.etag }
  const marker = key.endsWith('/') && !features.anyKey

  return withKnownLength(parts, request, async (source, length) => {
    if (length > request.maxBytes) throw tooLarge(length, request.maxBytes)
    if (marker && length > 0)
      throw new S3Error('InvalidArgument', {
        message: 'The gateway cannot store this key: a name that ends in "/" can only hold an empty object there.',
      })
    const upload = gateway.upload(bucket, key, length, attributes)
    try {
      const { facts, rest } = await streamHoldingBack(
        source,
        upload,
        length <= limits.smallBodyBytes ? length : 0,
        options,
      )
      return await state.locks.withKey(bucket, key, async () => {
        if (precondition) precondition(await find(bucket, key))
        if (rest) await upload.write(rest)
        return record(parts, request, facts, await upload.commit(), marker)
      })
    } catch (error) {
      upload.abort()
      throw error
    }
  })
}

/** Sends all but the last bytes, or, for a small body, collects it: what it returns in `rest` still has to be written. */
async function streamHoldingBack(
  source: Source,
  upload: Upload,
  collectBytes: number,
  options: { md5: boolean; checksum?: ObjectChecksum['algorithm'] },
): Promise<{ facts: BodyFacts; rest: Buffer | undefined }> {
  const small: Buffer[] = []
  let held: Buffer | undefined
  const facts = await source.stream((chunk) => {
    if (chunk.length === 0) return
    if (collectBytes > 0) {
      small.push(chunk)
      return
    }
    const previous = held
    held = chunk
    return previous && upload.write(previous)
  }, options)
  const rest = small.length > 1 ? Buffer.concat(small) : (small[0] ?? held)
  return { facts, rest }
}

async function record(
  parts: StoreParts,
  request: PutRequest,
  facts: BodyFacts,
  result: UploadResult,
  marker: boolean,
): Promise<PutResult> {
  const { bucket, key } = request
  const etag = request.etag ?? result.etag ?? facts.md5?.toString('hex')
  if (etag === undefined) throw new Error('neither the gateway nor the body gave an MD5')
  const checksum: ObjectChecksum | undefined =
    request.checksum ?? (facts.checksum && { ...facts.checksum, type: 'FULL_OBJECT' })
  const gatewayTellsAll = result.etag === etag && !checksum && !request.partSizes && !request.tags && !request.archive
  if (!gatewayTellsAll) {
    const stamp = marker ? MARKER_STAMP : result.stamp
    if (request.partChecksums) await parts.partChecksums.set({ bucket, key, stamp }, request.partChecksums)
    await parts.state.objects.set({
      bucket,
      key,
      stamp,
      size: facts.size,
      etag,
      contentType: request.attributes.contentType ?? 'binary/octet-stream',
      headers: request.attributes.headers,
      metadata: request.attributes.metadata,
      checksum,
      partSizes: request.partSizes,
      tags: request.tags,
      archive: request.archive,
      uploadId: request.uploadId,
    })
  }
  await parts.hooks.objectStored({ ...request.event, bucket, key, size: facts.size, etag, time: Date.now() })
  return { etag, lastModified: result.lastModified, size: facts.size, checksum }
}

/** The gateway wants the exact length beforehand: a body that does not say it goes through a file on disk first. */
async function withKnownLength<T>(
  parts: StoreParts,
  request: PutRequest,
  run: (source: Source, length: number) => Promise<T>,
): Promise<T> {
  const { source, maxBytes } = request
  if (source.length !== undefined) return run(source, source.length)
  const spool = await parts.state.spool()
  try {
    const facts = await source.stream(
      (chunk) => {
        if (spool.size + chunk.length > maxBytes) throw tooLarge(spool.size + chunk.length, maxBytes)
        return spool.write(chunk)
      },
      { md5: true, checksum: request.wantChecksum },
    )
    const spooled: Source = {
      length: facts.size,
      async stream(sink) {
        await spool.read(sink)
        return facts
      },
    }
    return await run(spooled, facts.size)
  } finally {
    await spool.discard()
  }
}

async function refuseKey(gateway: Gateway, key: string): Promise<void> {
  const why = await gateway.refusesKey(key)
  if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
}

function tooLarge(size: number, maxBytes: number): S3Error {
  return new S3Error('EntityTooLarge', { fields: { ProposedSize: size, MaxSizeAllowed: maxBytes } })
}
