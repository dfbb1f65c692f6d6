import { S3Error } from '../../common/errors/s3-error.js'
import type { S3Request } from '../s3-request.js'
import { FormStream } from './form-stream.js'

/** A form whose file is still to be read. */
export interface FileForm {
  /** The text of a field before the file, by its name in lower case. */
  field(name: string): string | undefined
  /** As the client sent it, possibly with folders; '' if it sent none. */
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
