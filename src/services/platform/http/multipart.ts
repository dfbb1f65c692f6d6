import busboy from 'busboy'
import { PlatformError } from '../errors.js'
import type { PlatformLimits } from '../limits.js'
import type { Field, UploadedFile } from './fields.js'

/**
 * Parses a multipart form that is in memory. Throws PlatformError: 400 when it is malformed or cut off, 413 when a part
 * is too large.
 */
export function parseMultipart(
  contentType: string,
  body: Buffer,
  { maxFieldBytes, maxFileBytes, maxFields }: PlatformLimits,
): Promise<{ fields: Field[]; uploads: Map<string, UploadedFile> }> {
  return new Promise((resolve, reject) => {
    const malformed = (): void => reject(new PlatformError(400, 'The body is not a multipart form.'))
    const tooLarge = (name: string): void => reject(new PlatformError(413, `The part ${name} is too large.`))
    const fields: Field[] = []
    const uploads = new Map<string, UploadedFile>()
    let parser: busboy.Busboy
    try {
      parser = busboy({
        headers: { 'content-type': contentType },
        defParamCharset: 'utf8',
        limits: { fieldSize: maxFieldBytes, fileSize: maxFileBytes, parts: maxFields },
      })
    } catch {
      return malformed()
    }
    parser.on('field', (name, value, { valueTruncated, nameTruncated }) => {
      if (valueTruncated || nameTruncated) tooLarge(name)
      fields.push([name, value])
    })
    parser.on('file', (name, stream, { filename }) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('limit', () => tooLarge(name))
      stream.on('error', malformed)
      stream.on('end', () => {
        if (uploads.has(name)) reject(new PlatformError(400, `The field ${name} is given twice.`))
        uploads.set(name, { name: filename ?? '', content: Buffer.concat(chunks) })
      })
    })
    parser.on('partsLimit', () => reject(new PlatformError(400, `A body has at most ${maxFields} fields.`)))
    parser.on('error', malformed)
    parser.on('close', () => resolve({ fields, uploads }))
    parser.end(body)
  })
}
