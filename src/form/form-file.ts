import { S3Error } from '../errors/s3-error.js'
import type { BodyFacts, BodyOptions, ByteSink } from '../request/body.js'
import type { DeclaredDigests } from '../request/declared-digests.js'
import { Digests } from '../request/digests.js'
import type { FormFile, FormStream } from './form-stream.js'

/** Bytes that the file may have. */
export interface SizeRange {
  readonly min: number
  readonly max: number
}

/** The bytes of a form's file as something to store: only once the whole form has arrived, and everything declared was found right, are they good. */
export class FileSource {
  /** A form does not tell it. */
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

  /** Throws S3Error EntityTooLarge, EntityTooSmall, BadDigest, MalformedPOSTRequest, IncompleteBody, and what `sink` throws. */
  async stream(sink: ByteSink, options: BodyOptions = {}): Promise<BodyFacts> {
    const digests = new Digests(this.#declared, options)
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
