import busboy from 'busboy'
import { S3Error } from '../errors/s3-error.js'
import type { RequestBody } from '../request/body.js'
import { FormFields, MAX_FIELD_BYTES, refuseReplaced } from './form-fields.js'

/** Of a file that is sent as plain text, without a file name: it is read whole. */
const MAX_TEXT_FILE_BYTES = 1024 * 1024
/** Everything ahead of the file, and everything after it, framing included, bytes. */
const MAX_AROUND_BYTES = MAX_TEXT_FILE_BYTES + 4 * MAX_FIELD_BYTES

export interface FormFile {
  /** As the browser told it, perhaps with folders; empty when it told none. */
  readonly filename: string
  readonly content: AsyncIterable<Buffer>
}

/**
 * Parses a form as it arrives: fields first, then the file, with its bytes under back-pressure. When the file begins nothing more is taken from the client
 * until `go`. Fields that come after the file are ignored, as S3 does.
 */
export class FormStream {
  readonly fields = new FormFields()
  /** The file, once all fields ahead of it are known; undefined if the form ends without one. Never rejects. */
  readonly file: Promise<FormFile | undefined>
  /** Settles when the form has arrived to its end and every digest that was declared for the request was found right. */
  readonly ended: Promise<void>
  readonly #body: RequestBody
  readonly #parser: busboy.Busboy
  readonly #found: (file: FormFile | undefined) => void
  readonly #gate = new Gate()
  #hasFile = false
  #inFile = false
  #around = 0
  #failure: Error | undefined
  #waiting: ((error?: Error) => void) | undefined

  /** Throws S3Error PreconditionFailed, MalformedPOSTRequest. */
  constructor(body: RequestBody, contentType: string | undefined) {
    this.#body = body
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

  /** Lets the file's bytes come. */
  go(): void {
    this.#gate.open()
  }

  /** Gives the form up. Safe at any time; the first reason stays. */
  stop(error: Error): void {
    this.#failure ??= error
    this.#gate.refuse(this.#failure)
    this.#waiting?.(this.#failure)
    this.#parser.destroy(this.#failure)
  }

  #listen(): void {
    this.#parser.on('field', (name: string | undefined, value, info) => {
      this.#guard(() => {
        if (this.#hasFile) return
        if (name === undefined || info.nameTruncated) throw malformed('A field of the form has no usable name.')
        if (name.toLowerCase() === 'file') return this.#takeTextFile(value, info.valueTruncated)
        if (info.valueTruncated) throw new S3Error('MaxPostPreDataLengthExceededError')
        this.fields.add(name, value)
      })
    })
    this.#parser.on('file', (name: string | undefined, content, info) => {
      content.on('error', () => {})
      this.#guard(() => {
        if (name?.toLowerCase() !== 'file') {
          throw new S3Error('InvalidArgument', {
            message: 'The file must be in the field "file", and no other field may have a file name.',
            fields: { ArgumentName: name ?? '' },
          })
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
    this.#found({ filename, content: this.#checked(content) })
  }

  /** Where the form breaks off the parser ends the file with an error of its own. */
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
        message: 'A file that is sent without a file name can have 1 MiB: send a file name along.',
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

  /** What is thrown in an event of the parser must not reach the parser. */
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
    // Counted by pieces of the connection, of which one may hold some of the file too: the bound is a loose one.
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
    return busboy({
      headers: { 'content-type': contentType },
      defParamCharset: 'utf8',
      preservePath: true,
      limits: { files: 1, fieldNameSize: 512, fieldSize: MAX_TEXT_FILE_BYTES, headerPairs: 32 },
    })
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

/** Open until it is closed once; then passed, or refused, for good. */
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
