import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { HeldLock } from '../../../src/api/locks.js'
import type { ObjectRecord } from '../../../src/api/object-records.js'
import type { State } from '../../../src/api/state.js'
import type { PartRecord, UploadRecord } from '../../../src/api/uploads.js'

export function objectRecord(bucket: string, key: string, more: Partial<ObjectRecord> = {}): ObjectRecord {
  return {
    bucket,
    key,
    revision: 's1',
    size: 5,
    etag: '5d41402abc4b2a76b9719d911017c592',
    contentType: 'text/plain',
    headers: { 'cache-control': 'no-store' },
    metadata: { colour: ':blue:', nul: 'a\0b' },
    fence: 1,
    ...more,
  }
}

/** A lock that is held without a store of locks. A raise fails, as that of a lost lock does. */
export function heldLock(fence = 1): HeldLock {
  return {
    fence,
    ensure() {},
    leave() {},
    raise: async (beyond) => {
      throw new Error(`the lock is lost: ${beyond}`)
    },
  }
}

/** A lock that another process may hold by now. */
export function lostLock({ fence, leave }: HeldLock): HeldLock {
  const lost = () => {
    throw new S3Error('ServiceUnavailable')
  }
  return { fence, leave, ensure: lost, raise: async () => lost() }
}

export function uploadRecord(more: Partial<UploadRecord> = {}): UploadRecord {
  return {
    uploadId: randomUUID(),
    bucket: 'photos',
    key: 'big',
    initiated: Date.now(),
    accessKeyId: 'AKID',
    contentType: 'video/mp4',
    headers: {},
    metadata: {},
    ...more,
  }
}

/** Stages and records one part. */
export async function putPart(state: State, uploadId: string, partNumber: number, bytes: Buffer): Promise<PartRecord> {
  const writer = await state.uploads.openPart(uploadId, partNumber)
  await writer.write(bytes)
  const part = partRecord(partNumber, bytes.length, await writer.finish())
  await state.uploads.putPart(uploadId, part)
  return { ...part, crc: crc32(bytes) }
}

export function partRecord(partNumber: number, size: number, file: string): PartRecord {
  return { partNumber, size, etag: 'd41d8cd98f00b204e9800998ecf8427e', lastModified: 1_700_000_000_000, file }
}

export async function readPart(state: State, uploadId: string, part: PartRecord): Promise<Buffer> {
  const chunks: Buffer[] = []
  await state.uploads.readPart(uploadId, part, (chunk) => void chunks.push(chunk))
  return Buffer.concat(chunks)
}
