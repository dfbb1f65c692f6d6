import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'

/** Names and values of all fields ahead of the file together, bytes: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html */
export const MAX_FIELD_BYTES = 20 * 1024

/** Fields that become a header of the same name. `acl` has a shorter name in forms. */
const HEADERS =
  /^(cache-control|content-(disposition|encoding|language|md5|type)|expires|x-(?:amz|cloud)-(?!algorithm$|credential$|date$|signature$|security-token$).*)$/

/** The fields of a form ahead of its file. Names are lower-case: they are the same in any case. */
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
    this.#bytes += Buffer.byteLength(name) + Buffer.byteLength(value)
    if (this.#bytes > MAX_FIELD_BYTES) throw new S3Error('MaxPostPreDataLengthExceededError')
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

  /** Puts the name of the file in for `${filename}`. */
  substitute(filename: string): void {
    for (const [name, value] of this.#values) {
      if (name !== 'policy' && value.includes(FILENAME))
        this.#values.set(
          name,
          value.replaceAll(FILENAME, () => filename),
        )
    }
  }

  /** The fields that say of the object what headers say of it in a PUT, as headers: UTF-8 in latin-1 characters. Throws InvalidArgument. */
  headers(): IncomingHttpHeaders {
    const headers: IncomingHttpHeaders = {}
    for (const [name, value] of this.#values) {
      const header = name === 'acl' ? 'x-amz-acl' : name
      if (!HEADERS.test(header)) continue
      // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly those that no header can hold
      if (/[\0-\x08\x0a-\x1f\x7f]/.test(value) || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(header)) {
        throw new S3Error('InvalidArgument', {
          message: `The field ${header} cannot be kept: no header could hold it.`,
          fields: { ArgumentName: header },
        })
      }
      headers[header] = Buffer.from(value).toString('latin1')
    }
    return headers
  }
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: S3's variable, word for word
const FILENAME = '${filename}'

/** The parser puts U+FFFD where bytes are no UTF-8: such a text is not what was sent. */
export function refuseReplaced(text: string, name: string): void {
  if (!text.includes('\ufffd')) return
  throw new S3Error('InvalidArgument', {
    message: 'The form holds a name or value that is not valid UTF-8.',
    fields: { ArgumentName: name },
  })
}
