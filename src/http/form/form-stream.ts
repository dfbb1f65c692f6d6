import type busboy from 'busboy'
import { S3Error } from '../../../common/errors/s3-error.js'
import { openMultipart } from '../../../common/multipart.js'
import type { RequestBody } from '../../api/request.js'
import { FormFields, MAX_FIELD_BYTES, refuseReplaced } from './form-fields.js'

/** Largest file without a file name, bytes. The parser takes it for a text field and buffers it. */
const MAX_TEXT_FILE_BYTES = 1024 * 1024
/** The file, and fields with a file name. */
const MAX_FILES = 100
/** Everything before the file, and everything after it, including framing, bytes. */
const MAX_AROUND_BYTES = MAX_TEXT_FILE_BYTES + 4 * MAX_FIELD_BYTES

export interface FormFile {
  /** Name of the file that the browser sent, possibly with folders; '' if it sent none. */
  readonly filename: string
  readonly content: AsyncIterable<Buffer>
}

/**
 * Parses a form as it arrives: fields first, then the file, whose bytes are subject to back-pressure. When the file
 * begins, the parser pauses until `go`. Like S3, ignores fields after the file unless `lastIsFile`.
 */
export class FormStream {
  readonly fields = new FormFields()
  /** Resolves when all fields before the file are known; to undefined if the form has no file. Never rejects. */
  readonly file: Promise<FormFile | undefined>
  /** Resolves when the complete form has arrived and every digest declared for the request matches. */
  readonly ended: Promise<void>
  readonly #body: RequestBody
  readonly #parser: busboy.Busboy
  readonly #found: (file: FormFile | undefined) => void
  readonly #gate = new Gate()
  readonly #lastIsFile: boolean
  /** Fields whose values are still arriving. */
  readonly #readingFields: Promise<void>[] = []
  #hasFile = false
  #inFile = false
  #around = 0
  #failure: Error | undefined
  #waiting: ((error?: Error) => void) | undefined

  /**
   * Throws S3Error PreconditionFailed, MalformedPOSTRequest.
   * @param lastIsFile fields after the file make the form malformed
   */
  constructor(body: RequestBody, contentType: string | undefined, { lastIsFile = false } = {}) {
    this.#body = body
    this.#lastIsFile = lastIsFile
    this.#parser = openParser(contentType)
    let found: (file: FormFile | undefined) => void = () => {}
    this.file = new Promise((resolve) => {
      found = resolve
    })
    this.#found = found
    this.#listen()
    this.ended = this.#feed()
    this.ended.catch(() => {}).finally(() => found(undefined))
  }

  /** Resumes the parser at the file. */
  go(): void {
    this.#gate.open()
  }

  /** Aborts the form. May be called at any time; the first error is kept. */
  stop(error: Error): void {
    this.#failure ??= error
    this.#gate.refuse(this.#failure)
    this.#waiting?.(this.#failure)
    this.#parser.destroy(this.#failure)
  }

  #listen(): void {
    this.#parser.on('field', (name: string | undefined, value, info) => {
      this.#guard(() => {
        if (this.#hasFile && this.#lastIsFile) throw malformed('The part "file" of the form must be the last one.')
        if (this.#hasFile) return
        if (name === undefined) throw malformed('A field of the form has no usable name.')
        if (name.toLowerCase() === 'file') return this.#takeTextFile(value, info.valueTruncated)
        if (info.valueTruncated) throw new S3Error('MaxPostPreDataLengthExceededError')
        this.fields.add(name, value)
      })
    })
    this.#parser.on('file', (name: string | undefined, content, info) => {
      content.on('error', () => {})
      this.#guard(() => {
        if (name?.toLowerCase() !== 'file') {
          if (this.#hasFile && this.#lastIsFile) throw malformed('The part "file" of the form must be the last one.')
          if (this.#hasFile) content.resume()
          else this.#readingFields.push(this.#takeField(name, content))
          return
        }
        this.#takeFile(info.filename ?? '', content)
        this.#inFile = true
        content.once('end', () => {
          this.#inFile = false
          this.#around = 0
        })
      })
    })
    this.#parser.on('filesLimit', () => this.stop(oneFile()))
    this.#parser.on('error', (error) => this.stop(asS3Error(error)))
  }

  #takeFile(filename: string, content: AsyncIterable<Buffer>): void {
    if (this.#hasFile) throw oneFile()
    refuseReplaced(filename, 'file')
    this.#hasFile = true
    this.#gate.close()
    const file = { filename, content: this.#checked(content) }
    void Promise.all(this.#readingFields).then(() => this.#failure ?? this.#found(file))
  }

  /** Takes a field that has a file name, as browsers send a Blob and Python's requests all that is in `files`. */
  async #takeField(name: string | undefined, content: AsyncIterable<Buffer>): Promise<void> {
    try {
      let value = Buffer.alloc(0)
      for await (const chunk of content) {
        value = Buffer.concat([value, chunk])
        if (value.length > MAX_FIELD_BYTES) throw new S3Error('MaxPostPreDataLengthExceededError')
      }
      if (name === undefined) throw malformed('A field of the form has no usable name.')
      this.fields.add(name, value.toString())
    } catch (error) {
      this.stop(asS3Error(error))
    }
  }

  /** Converts errors: if the form ends early, the parser ends the file with its own error. */
  async *#checked(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
    try {
      yield* content
    } catch (error) {
      this.stop(asS3Error(error))
      throw this.#failure
    }
  }

  #takeTextFile(text: string, truncated: boolean): void {
    if (truncated) {
      throw new S3Error('EntityTooLarge', {
        message: 'A file without a file name must not be larger than 1 MiB: send a file name.',
        fields: { MaxSizeAllowed: MAX_TEXT_FILE_BYTES },
      })
    }
    refuseReplaced(text, 'file')
    const bytes = Buffer.from(text)
    this.#takeFile(
      '',
      (async function* () {
        if (bytes.length > 0) yield bytes
      })(),
    )
  }

  /** Keeps errors of event listeners from the parser. */
  #guard(run: () => void): void {
    if (this.#failure) return
    try {
      run()
    } catch (error) {
      this.stop(error as Error)
    }
  }

  async #feed(): Promise<void> {
    try {
      await this.#body.stream((chunk) => this.#write(chunk))
      await this.#end()
    } catch (error) {
      this.stop(error as Error)
      throw this.#failure
    }
  }

  #write(chunk: Buffer): void | Promise<void> {
    if (this.#failure) throw this.#failure
    const free = this.#parser.write(chunk)
    this.#around += chunk.length
    // Counts whole chunks of the connection, which may also contain bytes of the file: the bound is approximate.
    if (!this.#inFile && this.#around > MAX_AROUND_BYTES) this.stop(new S3Error('MaxPostPreDataLengthExceededError'))
    if (this.#failure) throw this.#failure
    if (this.#gate.closed) return this.#gate.passed.then(() => (free ? undefined : this.#drained()))
    return free ? undefined : this.#drained()
  }

  #drained(): Promise<void> {
    if (!this.#parser.writableNeedDrain) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const settle = (error?: Error) => {
        this.#waiting = undefined
        this.#parser.off('drain', settle)
        if (error) reject(error)
        else resolve()
      }
      this.#waiting = settle
      this.#parser.once('drain', () => settle())
    })
  }

  #end(): Promise<void> {
    if (this.#failure) throw this.#failure
    return new Promise((resolve, reject) => {
      this.#waiting = (error) => (error ? reject(error) : resolve())
      this.#parser.once('close', () => (this.#failure ? reject(this.#failure) : resolve()))
      this.#parser.end()
    })
  }
}

function openParser(contentType: string | undefined): busboy.Busboy {
  if (contentType === undefined || !/^multipart\/form-data\s*(;|$)/i.test(contentType.trim())) {
    throw new S3Error('PreconditionFailed', {
      fields: { Condition: 'Bucket POST must be of the enclosure-type multipart/form-data' },
    })
  }
  try {
    return openMultipart(contentType, { maxFiles: MAX_FILES, maxFieldBytes: MAX_TEXT_FILE_BYTES }, true)
  } catch (cause) {
    throw malformed(undefined, cause)
  }
}

function asS3Error(error: unknown): S3Error {
  return error instanceof S3Error ? error : malformed(undefined, error)
}

function malformed(message?: string, cause?: unknown): S3Error {
  return new S3Error('MalformedPOSTRequest', { message, cause })
}

export function oneFile(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'POST requires exactly one file upload per request.',
    fields: { ArgumentName: 'file' },
  })
}

/** Initially open. Once closed, `passed` resolves on `open` or rejects on `refuse`, and stays so. */
class Gate {
  readonly passed: Promise<void>
  closed = false
  #pass: () => void = () => {}
  #refuse: (error: Error) => void = () => {}

  constructor() {
    this.passed = new Promise((resolve, reject) => {
      this.#pass = resolve
      this.#refuse = reject
    })
    this.passed.catch(() => {})
  }

  close(): void {
    this.closed = true
  }

  open(): void {
    this.closed = false
    this.#pass()
  }

  refuse(error: Error): void {
    this.#refuse(error)
  }
}
