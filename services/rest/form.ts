import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type busboy from 'busboy'
import { type MultipartBounds, openMultipart } from '../../common/multipart.js'
import type { BodySink } from '../http/body-sink.js'
import { HttpError } from '../http/errors.js'
import type { Field } from './fields.js'

interface FormBounds extends Required<Omit<MultipartBounds, 'maxFiles'>> {
  /** Most bytes of the form besides its files; default: no bound. */
  readonly maxOtherBytes?: number
}

/** A file in a form, while it arrives. */
interface FilePart {
  readonly field: string
  /** Name of the file without folders, '' without one. */
  readonly name: string
  /** Its media type. */
  readonly type: string
  readonly content: AsyncIterable<Uint8Array>
}

/** The parts of a form, in their order. */
interface ReceivedForm<T> {
  readonly fields: readonly Field[]
  readonly files: readonly { readonly field: string; readonly name: string; readonly taken: T }[]
}

/**
 * Parses a multipart form as it arrives. Its files are passed on in chunks, as fast as they are taken. A form is
 * refused with HttpError: 400 when it is malformed or cut off, 413 when a part is too large. Call `finish` at the end,
 * or `abort`.
 */
export class MultipartForm<T> implements BodySink {
  readonly #bounds: FormBounds
  readonly #take: (part: FilePart) => Promise<T> | undefined
  readonly #parser: busboy.Busboy
  readonly #fields: Field[] = []
  readonly #files: { readonly field: string; readonly name: string; readonly taken: Promise<T> }[] = []
  readonly #failed: Promise<never>
  #fail: (error: unknown) => void = () => {}
  #failure: unknown
  #received = 0
  #ofFiles = 0
  #stream: Readable | undefined

  /**
   * Throws HttpError 400.
   * @param contentType with the boundary
   * @param take returns undefined to skip a file; throws to refuse the form
   */
  constructor(contentType: string, bounds: FormBounds, take: (part: FilePart) => Promise<T> | undefined) {
    this.#bounds = bounds
    this.#take = take
    this.#failed = new Promise((_, reject) => {
      this.#fail = (error) => {
        this.#failure ??= error
        this.#stream?.destroy(error as Error)
        reject(error)
      }
    })
    this.#failed.catch(() => {})
    try {
      this.#parser = openMultipart(contentType, bounds, false)
    } catch {
      throw malformed()
    }
    this.#parser
      .on('field', (name, value, { valueTruncated }) => this.#takeField(name, value, valueTruncated))
      .on('file', (name, stream, { filename, mimeType }) => this.#takeFile(name, filename ?? '', mimeType, stream))
      .on('partsLimit', () => this.#fail(new HttpError(400, `A form has at most ${bounds.maxParts} fields.`)))
      .on('error', () => this.#fail(malformed()))
  }

  /** Bytes of the form until now. */
  get received(): number {
    return this.#received
  }

  write(chunk: Buffer): boolean {
    this.#received += chunk.length
    const { maxOtherBytes = Number.POSITIVE_INFINITY } = this.#bounds
    // What of a file is still to be taken counts, too: it is little, because the parser waits for it.
    if (this.#received - this.#ofFiles > maxOtherBytes) {
      this.#fail(new HttpError(413, `A form may have at most ${maxOtherBytes} bytes besides its files.`))
    }
    return this.#failure === undefined && this.#parser.write(chunk)
  }

  async ready(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    await Promise.race([once(this.#parser, 'drain'), this.#failed])
  }

  /** Resolves when the files have been taken. Rejects with HttpError, or as `take` does. */
  async finish(): Promise<ReceivedForm<T>> {
    if (this.#failure !== undefined) throw this.#failure
    const closed = once(this.#parser, 'close')
    this.#parser.end()
    await Promise.race([closed, this.#failed])
    if (this.#failure !== undefined) throw this.#failure
    const files = await Promise.all(this.#files.map(async (file) => ({ ...file, taken: await file.taken })))
    return { fields: this.#fields, files }
  }

  /** Ends the taking of files with this error, and waits for its end. */
  async abort(error: unknown): Promise<void> {
    this.#fail(error)
    await Promise.allSettled(this.#files.map(({ taken }) => taken))
  }

  /** @param name,value undefined when the part has no name, or a charset that the parser does not know */
  #takeField(name: string | undefined, value: string | undefined, truncated: boolean): void {
    if (name === undefined || value === undefined) this.#fail(malformed())
    else if (truncated) this.#fail(tooLarge(name, this.#bounds.maxFieldBytes))
    else this.#fields.push([name, value])
  }

  #takeFile(field: string | undefined, name: string, type: string, stream: Readable): void {
    stream.on('error', () => {})
    try {
      if (field === undefined) throw malformed()
      const taken = this.#take({ field, name, type, content: this.#counted(stream) })
      if (taken === undefined) {
        stream.resume()
        return
      }
      this.#stream = stream
      stream.on('limit', () => this.#fail(tooLarge(field, this.#bounds.maxFileBytes)))
      taken.catch((error) => this.#fail(error))
      this.#files.push({ field, name, taken })
    } catch (error) {
      stream.resume()
      this.#fail(error)
    }
  }

  async *#counted(content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of content) {
      this.#ofFiles += chunk.length
      yield chunk
    }
  }
}

function malformed(): HttpError {
  return new HttpError(400, 'The body is not a multipart form.')
}

function tooLarge(name: string, most: number): HttpError {
  return new HttpError(413, `The part ${name} is too large: it may have at most ${most} bytes.`)
}
