import { S3Error } from '../../../common/errors/s3-error.js'
import { openMultipart } from '../../../common/multipart.js'
import type { BodyFacts, BodyOptions, ByteSink, S3Request } from '../../api/request.js'
import type { DeclaredDigests } from '../body/declared-digests.js'
import { Digests } from '../body/digests.js'
import { malformed, refuseReplaced } from './form-fields.js'
import { type FormFile, FormStream } from './form-stream.js'

/** Allowed size of the file, bytes. */
export interface SizeRange {
  readonly min: number
  readonly max: number
}

/** The bytes of a form's file. They are valid only after the complete form has arrived and every digest matches. */
export class FileSource {
  /** A form does not declare the length of its file. */
  readonly length = undefined
  readonly #form: FormStream
  readonly #file: FormFile
  readonly #declared: DeclaredDigests
  readonly #size: SizeRange

  constructor(form: FormStream, file: FormFile, declared: DeclaredDigests, size: SizeRange) {
    this.#form = form
    this.#file = file
    this.#declared = declared
    this.#size = size
  }

  /**
   * Rethrows errors of `sink`.
   * @throws S3Error EntityTooLarge, EntityTooSmall, BadDigest, MalformedPOSTRequest, IncompleteBody
   */
  async stream(sink: ByteSink, options: BodyOptions = {}): Promise<BodyFacts> {
    const digests = await Digests.of(this.#declared, options)
    const { min, max } = this.#size
    let size = 0
    this.#form.go()
    for await (const chunk of this.#file.content) {
      size += chunk.length
      if (size > max) throw new S3Error('EntityTooLarge', { fields: { ProposedSize: size, MaxSizeAllowed: max } })
      digests.update(chunk)
      await sink(chunk)
    }
    await this.#form.ended
    if (size < min) throw new S3Error('EntityTooSmall', { fields: { ProposedSize: size, MinSizeAllowed: min } })
    return digests.finish(size, [])
  }
}

/** Most fields of a form. */
const MAX_FIELDS = 200

/** A field of a form: its name and its text; for a file, also the name that the client gives it. */
interface SmallField {
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
    const bounds = { maxParts: MAX_FIELDS, maxFieldBytes: bytes.length, maxFileBytes: bytes.length }
    const parser = openMultipart(contentType, bounds, false)
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

/** A form whose file is still to be read. */
export interface FileForm {
  /** The text of a field before the file, by its name in lower case. */
  field(name: string): string | undefined
  /** Name of the file that the client sent, possibly with folders; '' if it sent none. */
  readonly fileName: string
  /** The bytes of the file. The body of the request is complete and verified when they end. */
  content(): AsyncIterable<Buffer>
  /** Gives up what was not read. */
  close(): void
}

/** True for a request whose body is a multipart form by its Content-Type. */
export function isForm({ headers }: Pick<S3Request, 'headers'>): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(String(headers['content-type'] ?? '').trim())
}

/**
 * Reads a form up to its part `file`, which must be the last one, so that the file can be passed on as it arrives.
 * Throws S3Error MalformedPOSTRequest, MaxPostPreDataLengthExceededError and InvalidArgument, and as the body does.
 */
export async function openForm({ body, headers }: Pick<S3Request, 'body' | 'headers'>): Promise<FileForm> {
  const form = new FormStream(body, String(headers['content-type'] ?? ''), { lastIsFile: true })
  const file = await form.file
  if (file === undefined) {
    await form.ended
    throw new S3Error('MalformedPOSTRequest', { message: 'The form has no part "file".' })
  }
  return {
    field: (name) => form.fields.get(name),
    fileName: file.filename,
    async *content() {
      form.go()
      yield* file.content
      await form.ended
    },
    close: () => form.stop(new S3Error('MalformedPOSTRequest', { message: 'The form was not read to its end.' })),
  }
}
