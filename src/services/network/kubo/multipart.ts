import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'

const READ_BYTES = 256 * 1024

export interface FileForm {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * A multipart form of one file, as the file commands of Kubo expect it, streamed from the disk.
 * @param size bytes of the file; sending fails when the size differs
 * @param onSent called with the number of bytes of the file sent so far
 */
export function fileForm(file: string, size: number, onSent: (bytes: number) => void): FileForm {
  const boundary = `dealgate-${randomUUID()}`
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="deal.car"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + size + tail.length),
    },
    body: (async function* () {
      yield head
      let sent = 0
      for await (const chunk of createReadStream(file, { highWaterMark: READ_BYTES })) {
        yield chunk as Uint8Array
        sent += (chunk as Uint8Array).length
        onSent(sent)
      }
      yield tail
    })(),
  }
}
