import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { headerOf } from '../headers.js'

/**
 * Total of the names and values of all fields before the file, bytes.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html
 */
export const MAX_FIELD_BYTES = 20 * 1024

/** Fields that become a header of the same name. Only `acl` has another name in forms. */
const HEADERS =
  /^(cache-control|content-(disposition|encoding|language|md5|type)|expires|x-(?:amz|cloud)-(?!algorithm$|credential$|date$|signature$|security-token$).*)$/

/** The fields of a form before its file. Names are case-insensitive and kept in lower case. */
export class FormFields {
  readonly #values = new Map<string, string>()
  #bytes = 0

  get(name: string): string | undefined {
    return this.#values.get(name)
  }

  entries(): Iterable<[name: string, value: string]> {
    return this.#values.entries()
  }

  /** Throws S3Error MaxPostPreDataLengthExceededError, MalformedPOSTRequest, InvalidArgument. */
  add(name: string, value: string): void {
    this.#grow(Buffer.byteLength(name) + Buffer.byteLength(value))
    refuseReplaced(name, name)
    refuseReplaced(value, name)
    const lower = name.toLowerCase()
    if (this.#values.has(lower)) {
      throw new S3Error('InvalidArgument', {
        message: `The form has the field ${lower} more than once.`,
        fields: { ArgumentName: lower },
      })
    }
    this.#values.set(lower, value)
  }

  /** Replaces `${filename}` with the name of the file. Throws S3Error MaxPostPreDataLengthExceededError. */
  substitute(filename: string): void {
    const more = Buffer.byteLength(filename) - FILENAME.length
    for (const [name, value] of this.#values) {
      if (name === 'policy' || !value.includes(FILENAME)) continue
      this.#grow(more * (value.split(FILENAME).length - 1))
      this.#values.set(
        name,
        value.replaceAll(FILENAME, () => filename),
      )
    }
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_FIELD_BYTES) throw new S3Error('MaxPostPreDataLengthExceededError')
  }

  /**
   * Converts the fields that correspond to headers of PUT into headers. Values are latin-1 strings of UTF-8 bytes.
   * Throws InvalidArgument.
   */
  headers(): IncomingHttpHeaders {
    const headers: IncomingHttpHeaders = {}
    for (const [name, value] of this.#values) {
      const header = name === 'acl' ? 'x-amz-acl' : name
      if (!HEADERS.test(header)) continue
      headers[header] = headerOf('field', header, value)
    }
    return headers
  }
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: S3's variable, word for word
const FILENAME = '${filename}'

/** Refuses text with U+FFFD: the parser replaces invalid UTF-8 with it, so the text differs from what was sent. */
export function refuseReplaced(text: string, name: string): void {
  if (!text.includes('\ufffd')) return
  throw new S3Error('InvalidArgument', {
    message: 'The form holds a name or value that is not valid UTF-8.',
    fields: { ArgumentName: name },
  })
}

export function malformed(cause?: unknown): S3Error {
  return new S3Error('MalformedPOSTRequest', cause === undefined ? {} : { cause })
}
