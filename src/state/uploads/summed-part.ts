import { crc32 } from 'node:zlib'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { PartRecord, PartWriter } from '../../api/uploads.js'

/** CRC-32 of the bytes of parts from their end to the record that keeps it, by upload and file. */
export class PartSums {
  readonly #sums = new Map<string, number>()

  /** A writer whose bytes are summed as they were given, whatever becomes of them on a disk. */
  summed(uploadId: string, part: PartWriter): PartWriter {
    let sum = 0
    let name: string | undefined
    return {
      write(chunk) {
        sum = crc32(chunk, sum)
        return part.write(chunk)
      },
      finish: async () => {
        const file = await part.finish()
        name = nameOf(uploadId, file)
        this.#sums.set(name, sum)
        return file
      },
      discard: () => {
        if (name !== undefined) this.#sums.delete(name)
        return part.discard()
      },
    }
  }

  /** The record with its sum. */
  of(uploadId: string, part: PartRecord): PartRecord {
    const crc = this.#sums.get(nameOf(uploadId, part.file))
    return crc === undefined ? part : { ...part, crc }
  }

  /** The record has it now. */
  kept(uploadId: string, { file }: PartRecord): void {
    this.#sums.delete(nameOf(uploadId, file))
  }
}

function nameOf(uploadId: string, file: string): string {
  return `${uploadId}/${file}`
}

/**
 * Reads a part and gives its last chunk only once all of them are as they were written. A part of an earlier version
 * has no sum.
 * @throws S3Error InternalError for other bytes
 */
export async function readSummed(
  { crc, partNumber }: PartRecord,
  read: (sink: (chunk: Buffer) => void | Promise<void>) => Promise<void>,
  sink: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  if (crc === undefined) return read(sink)
  let sum = 0
  let held: Buffer | undefined
  await read((chunk) => {
    sum = crc32(chunk, sum)
    const before = held
    held = chunk
    return before === undefined ? undefined : sink(before)
  })
  if (sum !== crc)
    throw new S3Error('InternalError', {
      message: `The bytes of part ${partNumber} are not those that were uploaded. Upload the part again.`,
      cause: new Error('The CRC-32 of a staged part differs.'),
    })
  if (held !== undefined) await sink(held)
}
