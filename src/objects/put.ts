import { createHash } from 'node:crypto'
import type { Gateway, Upload, UploadResult } from '../api/gateway.js'
import type { ObjectEvent } from '../api/hooks.js'
import type { HeldLock } from '../api/locks.js'
import type { BodyFacts, BodyOptions, ByteSink } from '../api/request.js'
import type { ObjectChecksum } from '../api/state.js'
import type { Precondition, PutRequest, PutResult, Source, Store, StoredObject } from '../api/store.js'
import { createChecksum, prepareChecksum } from '../common/checksums/checksums.js'
import { S3Error, slowDown } from '../common/errors/s3-error.js'
import type { Logging } from '../common/log.js'
import { clientOf } from '../common/quota.js'
import { MARKER_STAMP } from '../gateway/object-facts.js'
import { textOf } from './object-record.js'
import { confirmLater, lockUntilOutcome, type StoreDeps, serializedWrite } from './serialized-write.js'

/**
 * Streams the source to the gateway and commits it once it is verified. Holds the last bytes back until then: the
 * gateway knows the exact length and cannot treat the object as complete before (docs/design.md, promise 1). Checks
 * the precondition, sends the last bytes and writes the record under the key's lock, which makes conditional writes
 * atomic among the clients of this proxy. A slow client never holds the lock.
 * @param logger who gets the lines about the write
 */
export async function put(
  deps: StoreDeps,
  find: Store['find'],
  request: PutRequest,
  logger: Logging,
): Promise<PutResult> {
  const { gateway, state, limits } = deps
  const { bucket, key, precondition, attempt } = request
  await refuseKey(gateway, key)
  // The owner's lifecycle rules select objects by tags: they expire objects or make paid deals.
  if (request.tags?.length) await deps.requireOwner(bucket, { action: 's3:PutObjectTagging', key })
  const before = (precondition || attempt) && (await find(bucket, key))
  if (!isSameWrite(before, request)) precondition?.(before)

  const features = await gateway.features()
  const options = { md5: !features.objectHead && request.etag === undefined, checksum: request.wantChecksum }
  const { contentType, headers, metadata } = request.attributes
  let arrived: BodyFacts | undefined
  const attributes = {
    ...{ contentType, headers, metadata, etag: request.etag, writeId: request.writeId },
    record: () => textOf({ ...request, label: request.attributes.label, checksum: checksumOf(request, arrived) }),
  }
  const marker = key.endsWith('/') && !features.anyKey

  return withKnownLength(deps, request, async (source, length) => {
    if (length > request.maxBytes) throw tooLarge(length, request.maxBytes)
    if (marker && length > 0)
      throw new S3Error('InvalidArgument', {
        message: 'The gateway cannot store this object: under a key that ends in "/" it stores only empty objects.',
      })
    const upload = gateway.upload(bucket, key, length, attributes)
    try {
      let { facts, rest } = await streamHoldingBack(
        source,
        upload,
        length <= limits.smallBodyBytes ? length : 0,
        options,
      )
      arrived = facts
      return await lockUntilOutcome(
        (run) => state.locks.withKey(bucket, key, run, { waitMs: limits.keyWaitMs, logger }),
        async (lock) => {
          let found: StoredObject | undefined
          const condition: Precondition | undefined =
            precondition &&
            ((current) => {
              found = isSameWrite(current, request) ? current : undefined
              if (!found) precondition(current)
            })
          const result = await serializedWrite(
            lock,
            condition,
            () => find(bucket, key),
            async (order) => {
              if (found) {
                upload.abort()
                return { stamp: found.stamp, lastModified: found.lastModified }
              }
              // The outcome of the write may stay unknown for minutes: the bytes are not kept that long.
              const last = rest
              rest = undefined
              // Not earlier: a write whose last bytes were not sent has no effect. The key was looked up before the
              // upload, during which a gateway on one folder answers no lookup of it.
              await attempt?.begin(before?.stamp ?? null)
              try {
                if (last) await upload.write(last)
                return await upload.commit(order)
              } catch (error) {
                const isVoid = upload.unsent || (error instanceof S3Error && error.status < 500)
                // Without the lock, the attempt on record may be that of another server by now.
                if (isVoid && holds(lock)) await attempt?.failed()
                throw error
              }
            },
            logger,
          )
          return record({ deps, request, logger }, facts, result, marker, lock)
        },
        async (result, lock) => {
          await record({ deps, request, logger }, facts, result, marker, lock)
          await attempt?.landed()
        },
        logger,
      )
    } catch (error) {
      upload.abort()
      throw error
    }
  })
}

/** Sends all but the last bytes. A small body is collected instead. The caller has to write `rest`. */
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

function holds(lock: HeldLock): boolean {
  try {
    lock.ensure()
    return true
  } catch {
    return false
  }
}

interface Write {
  readonly deps: StoreDeps
  readonly request: PutRequest
  readonly logger: Logging
}

async function record(
  { deps, request, logger }: Write,
  facts: BodyFacts,
  result: UploadResult,
  marker: boolean,
  lock: HeldLock,
): Promise<PutResult> {
  const { bucket, key } = request
  const etag = request.etag ?? result.etag ?? facts.md5?.toString('hex')
  if (etag === undefined) throw new Error('neither the gateway nor the body has an MD5')
  const checksum = checksumOf(request, facts)
  const gatewayTellsAll =
    result.etag === etag &&
    !checksum &&
    !request.partSizes &&
    !request.tags &&
    !request.acl &&
    !request.archive &&
    !request.attributes.label &&
    !request.attributes.headers['x-amz-website-redirect-location'] &&
    !request.authorized
  if (!gatewayTellsAll) {
    const stamp = marker ? MARKER_STAMP : result.stamp
    // Another proxy may have written meanwhile, and this record must not replace its record.
    lock.ensure()
    if (request.partChecksums) await deps.partChecksums.set({ bucket, key, stamp }, request.partChecksums, lock)
    await deps.state.objects.set(
      {
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
        acl: request.acl,
        archive: request.archive,
        label: request.attributes.label,
        uploadId: request.uploadId,
        authorized: request.authorized,
      },
      lock,
    )
    if (result.confirmed) {
      logger.log.warn(
        { err: result.problem, bucket },
        'could not confirm an upload yet: the object gateway does not show the object',
      )
      void confirmLater(deps, logger, bucket, key, stamp, result.confirmed)
    }
  }
  const { size } = facts
  const { name, origin } = request.event
  // Without spreads, which cost more than the rest of this function.
  const event: ObjectEvent = { name, origin, bucket, key, size, etag, time: Date.now() }
  await deps.hooks.objectStored(request.authorized ? { ...event, authorized: request.authorized } : event)
  return { etag, lastModified: result.lastModified, size, checksum }
}

function checksumOf({ checksum }: PutRequest, facts: BodyFacts | undefined): ObjectChecksum | undefined {
  return checksum ?? (facts?.checksum && { ...facts.checksum, type: 'FULL_OBJECT' })
}

/**
 * True when an earlier attempt of this very request stored the present object, according to the gateway or the record.
 */
function isSameWrite(current: StoredObject | undefined, { writeId, uploadId }: PutRequest): boolean {
  if (writeId === undefined || !current) return false
  return current.writeId === writeId || (current.uploadId !== undefined && current.uploadId === uploadId)
}

/** The gateway requires the exact length in advance: a body of unknown length is spooled to a file first. */
async function withKnownLength<T>(
  deps: StoreDeps,
  request: PutRequest,
  run: (source: Source, length: number) => Promise<T>,
): Promise<T> {
  const { source, maxBytes } = request
  if (source.length !== undefined) return run(source, source.length)
  const { accessKeyId, remoteAddress } = request.event.origin
  const client = clientOf(accessKeyId, remoteAddress)
  let taken = 0
  const spool = await deps.state.spool()
  try {
    const facts = await source.stream(
      (chunk) => {
        if (spool.size + chunk.length > maxBytes) throw tooLarge(spool.size + chunk.length, maxBytes)
        if (!deps.spools.take(client, chunk.length)) throw noRoom()
        taken += chunk.length
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
    try {
      await spool.discard()
    } finally {
      deps.spools.give(client, taken)
    }
  }
}

async function refuseKey(gateway: Gateway, key: string): Promise<void> {
  const why = await gateway.refusesKey(key)
  if (why !== undefined) throw new S3Error('InvalidArgument', { message: why, fields: { ArgumentName: 'key' } })
}

function noRoom(): S3Error {
  return slowDown(
    'This client, or all clients together, send too many bytes without a declared length at once. Send fewer at a time, or declare the length (Content-Length, x-amz-decoded-content-length).',
  )
}

function tooLarge(size: number, maxBytes: number): S3Error {
  return new S3Error('EntityTooLarge', { fields: { ProposedSize: size, MaxSizeAllowed: maxBytes } })
}

/**
 * Forwards locally produced bytes to a sink and computes the requested digests: makes a `Source` of anything that can
 * feed a sink.
 */
export async function digesting(
  feed: (sink: ByteSink) => Promise<void>,
  sink: ByteSink,
  options: BodyOptions = {},
): Promise<BodyFacts> {
  const md5 = options.md5 ? createHash('md5') : undefined
  await prepareChecksum(options.checksum)
  const checksum = options.checksum && createChecksum(options.checksum)
  let size = 0
  await feed((chunk) => {
    size += chunk.length
    md5?.update(chunk)
    checksum?.update(chunk)
    return sink(chunk)
  })
  return {
    size,
    md5: md5?.digest(),
    checksum: checksum && options.checksum && { algorithm: options.checksum, value: checksum.digest() },
  }
}
