import { S3Error } from '../../common/errors/s3-error.js'
import type { BodyFacts, BodyOptions, ByteSink } from '../body/body.js'
import type { DeclaredDigests } from '../body/declared-digests.js'
import { Digests } from '../body/digests.js'
import type { FormFile, FormStream } from './form-stream.js'

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
