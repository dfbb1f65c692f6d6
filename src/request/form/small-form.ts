import busboy from 'busboy'
import { S3Error } from '../../common/errors/s3-error.js'
import { refuseReplaced } from './form-fields.js'

/** Most fields of a form. */
const MAX_FIELDS = 200

/** A field of a form: its name and its text; for a file, also the name that the client gives it. */
export interface SmallField {
  readonly name: string
  readonly text: string
  readonly fileName?: string | undefined
}

/**
 * Parses a multipart form that is in memory; files must be text. Throws S3Error MalformedPOSTRequest, and
 * InvalidArgument for text that is not UTF-8.
 * @param contentType with its boundary
 */
export async function readSmallForm(bytes: Buffer, contentType: string): Promise<readonly SmallField[]> {
  const found: SmallField[] = []
  const add = (field: SmallField): void => {
    refuseReplaced(field.name, field.name)
    refuseReplaced(field.text, field.name)
    found.push(field)
  }
  try {
    const parser = busboy({
      headers: { 'content-type': contentType },
      defParamCharset: 'utf8',
      // The parser calls a field too large at its limit, not above it.
      limits: { parts: MAX_FIELDS + 1, fieldSize: bytes.length + 1, fieldNameSize: 1024, fileSize: bytes.length + 1 },
    })
    await new Promise<void>((resolve, reject) => {
      parser.on('field', (name, text) =>
        settle(reject, () => add({ name: String(name ?? ''), text: String(text ?? '') })),
      )
      parser.on('file', (name, stream, { filename }) => {
        const chunks: Buffer[] = []
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('error', reject)
        stream.on('end', () =>
          settle(reject, () => add({ name, text: Buffer.concat(chunks).toString('utf8'), fileName: filename })),
        )
      })
      parser.on('partsLimit', () => reject(malformed()))
      parser.on('error', reject)
      parser.on('close', resolve)
      parser.end(bytes)
    })
  } catch (cause) {
    throw cause instanceof S3Error ? cause : malformed(cause)
  }
  return found
}

function settle(reject: (error: unknown) => void, run: () => void): void {
  try {
    run()
  } catch (error) {
    reject(error)
  }
}

function malformed(cause?: unknown): S3Error {
  return new S3Error('MalformedPOSTRequest', cause === undefined ? {} : { cause })
}
