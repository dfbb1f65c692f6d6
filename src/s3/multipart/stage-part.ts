import { S3Error } from '../../common/errors/s3-error.js'
import type { Source } from '../../objects/store.js'
import type { Context } from '../../server/context.js'
import type { PartRecord, UploadRecord } from '../../state/state.js'

/**
 * Writes the verified bytes of a part to disk, durably, before the answer, and only then replaces an earlier part of
 * that number.
 */
export async function stagePart(
  context: Context,
  upload: UploadRecord,
  partNumber: number,
  source: Source,
): Promise<PartRecord> {
  const { maxPutBytes } = context.limits
  if ((source.length ?? 0) > maxPutBytes) throw tooLarge(maxPutBytes)
  const writer = await context.state.uploads.openPart(upload.uploadId, partNumber, source.length, context)
  try {
    let written = 0
    const facts = await source.stream(
      (chunk) => {
        written += chunk.length
        if (written > maxPutBytes) throw tooLarge(maxPutBytes)
        return writer.write(chunk)
      },
      { md5: true, checksum: upload.checksum?.algorithm },
    )
    if (!facts.md5) throw new Error('the source gave no MD5')
    const part: PartRecord = {
      partNumber,
      size: facts.size,
      etag: facts.md5.toString('hex'),
      lastModified: Date.now(),
      checksum: facts.checksum,
      file: await writer.finish(),
    }
    await context.state.uploads.putPart(upload.uploadId, part, context)
    return part
  } catch (error) {
    await writer.discard()
    throw error
  }
}

function tooLarge(maxPutBytes: number): S3Error {
  return new S3Error('EntityTooLarge', { fields: { MaxSizeAllowed: maxPutBytes } })
}
