import { once } from 'node:events'
import type { Readable } from 'node:stream'
import busboy from 'busboy'
import type { BodySink } from '../../http/receive.js'
import { PaymentError } from '../errors.js'
import { type Field, Fields } from '../http.js'

/** Most bytes of a text part, and most parts. */
const MAX_TEXT_BYTES = 4096
const MAX_PARTS = 32
/** Most bytes of a form besides those of its file. A part that is skipped would else hold its place for ever. */
const MAX_OTHER_BYTES = 1024 * 1024

/** What a form brought besides its texts: the result of taking its file. */
export interface ReceivedForm<T> {
  readonly fields: Fields
  /** Undefined when the form has no file. */
  readonly file: { readonly name: string; readonly taken: T } | undefined
}

type Take<T> = (content: AsyncIterable<Uint8Array>, type: string) => Promise<T>

/**
 * Parses a multipart form as it arrives: its part `file` is passed on in chunks, as fast as they are taken. A second
 * one is refused; files of other names are skipped. Call `finish` at the end, or `abort`.
 */
export class UploadForm<T> implements BodySink {
  readonly #parser: busboy.Busboy
  readonly #fields: Field[] = []
  readonly #failed: Promise<never>
  #fail: (error: unknown) => void = () => {}
  #failure: unknown
  #received = 0
  #ofFile = 0
  #stream: Readable | undefined
  #file: { readonly name: string; readonly taken: Promise<T> } | undefined

  /**
   * Throws PaymentError `structure`.
   * @param contentType with the boundary
   * @param mostBytes of the file
   * @param take gets the chunks of the file, and its media type
   */
  constructor(contentType: string, mostBytes: number, take: Take<T>) {
    this.#failed = new Promise((_, reject) => {
      this.#fail = (error) => {
        this.#failure ??= error
        this.#stream?.destroy(error as Error)
        reject(error)
      }
    })
    this.#failed.catch(() => {})
    // The parser takes a file as large as its limit for one that is larger.
    const limits = { fieldSize: MAX_TEXT_BYTES, fileSize: mostBytes + 1, parts: MAX_PARTS }
    try {
      this.#parser = busboy({ headers: { 'content-type': contentType }, defParamCharset: 'utf8', limits })
    } catch {
      throw malformed()
    }
    this.#parser
      .on('field', (name, value, { valueTruncated }) => {
        if (name === undefined || value === undefined || valueTruncated) this.#fail(malformed())
        else this.#fields.push([name, value])
      })
      .on('file', (name, stream, { filename, mimeType }) =>
        this.#takeFile(name, { name: filename ?? '', type: mimeType }, stream, mostBytes, take),
      )
      .on('partsLimit', () => this.#fail(new PaymentError('value', `a form has at most ${MAX_PARTS} parts`)))
      .on('error', () => this.#fail(malformed()))
  }

  write(chunk: Buffer): boolean {
    this.#received += chunk.length
    // What of the file is still to be taken counts, too: it is little, because the parser waits for it.
    if (this.#received - this.#ofFile > MAX_OTHER_BYTES) {
      this.#fail(new PaymentError('large', `a form may have at most ${MAX_OTHER_BYTES} bytes besides its file`))
    }
    return this.#failure === undefined && this.#parser.write(chunk)
  }

  async ready(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    await Promise.race([once(this.#parser, 'drain'), this.#failed])
  }

  /** Resolves when the file has been taken. Rejects with PaymentError, or as `take` does. */
  async finish(): Promise<ReceivedForm<T>> {
    const closed = once(this.#parser, 'close')
    this.#parser.end()
    await Promise.race([closed, this.#failed])
    if (this.#failure !== undefined) throw this.#failure
    const file = this.#file && { name: this.#file.name, taken: await this.#file.taken }
    return { fields: new Fields(this.#fields), file }
  }

  /** Ends the taking of the file with this error, and waits for its end. */
  async abort(error: unknown): Promise<void> {
    this.#fail(error)
    await this.#file?.taken.catch(() => {})
  }

  #takeFile(
    field: string | undefined,
    { name, type }: { readonly name: string; readonly type: string },
    stream: Readable,
    mostBytes: number,
    take: Take<T>,
  ): void {
    stream.on('error', () => {})
    if (field !== 'file' || this.#file !== undefined) {
      stream.resume()
      // One of the two would be lost, and the client would pay for the other.
      if (field === 'file')
        this.#fail(new PaymentError('value', 'a form has one part `file`: upload each file by itself'))
      return
    }
    this.#stream = stream
    stream.on('limit', () => this.#fail(new PaymentError('large', `a file may have at most ${mostBytes} bytes`)))
    const taken = take(this.#counted(stream), type)
    taken.catch((error) => this.#fail(error))
    this.#file = { name, taken }
  }

  async *#counted(content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of content) {
      this.#ofFile += chunk.length
      yield chunk
    }
  }
}

function malformed(): PaymentError {
  return new PaymentError('structure', 'the body is not a multipart form')
}
