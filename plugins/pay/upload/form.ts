import { PassThrough } from 'node:stream'
import { S3Error, type S3Request } from 'dealgate'

/** Most bytes in front of the content of the file: the texts of the form. */
const MAX_HEAD = 64 * 1024
/** Most bytes behind the form. */
const MAX_EPILOGUE = 1024

/** A form whose file is still to be read. */
export interface FileForm {
  /** The texts, the first of each name. */
  readonly fields: ReadonlyMap<string, string>
  readonly fileName: string
  /** The bytes of the file. The body of the request is complete and verified when they end. */
  content(): AsyncIterable<Buffer>
  /** Gives up what was not read. */
  close(): void
}

/** The boundary of a request with a multipart form; undefined for any other body. */
export function boundaryOf({ headers }: Pick<S3Request, 'headers'>): string | undefined {
  const type = String(headers['content-type'] ?? '')
  if (!/^multipart\/form-data\s*;/i.test(type)) return undefined
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(type) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw malformed('it has no boundary')
  return boundary
}

/**
 * Reads a form up to its part `file`, which must be the last one, so that the file can be passed on as it arrives.
 * Throws S3Error MalformedPOSTRequest, and as the body does.
 */
export async function openForm({ body }: Pick<S3Request, 'body'>, boundary: string): Promise<FileForm> {
  const through = new PassThrough()
  body
    .stream(
      (chunk) =>
        new Promise((taken, failed) => {
          // The body uses its buffers again once a chunk is taken.
          through.write(Buffer.from(chunk), (error) => (error ? failed(error) : taken()))
        }),
    )
    .then(
      () => through.end(),
      (error) => through.destroy(error),
    )
  const chunks = through[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const close = (): void => void through.destroy()
  try {
    return { ...(await readHead(chunks, boundary)), close }
  } catch (error) {
    close()
    throw error
  }
}

async function readHead(chunks: AsyncIterator<Buffer>, boundary: string): Promise<Omit<FileForm, 'close'>> {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  const fields = new Map<string, string>()
  // The first delimiter needs no line before it.
  let held: Buffer = Buffer.from('\r\n')
  const more = async (): Promise<void> => {
    const { done, value } = await chunks.next()
    if (done) throw malformed('it ends before its file does')
    held = Buffer.concat([held, value])
    if (held.length > MAX_HEAD + value.length) throw malformed(`its texts have more than ${MAX_HEAD} bytes`)
  }
  for (;;) {
    const start = await find(delimiter, 0)
    const head = await find('\r\n\r\n', start + delimiter.length)
    const { name, fileName } = dispositionOf(held.subarray(start + delimiter.length, head).toString('utf8'))
    held = held.subarray(head + 4)
    if (name === 'file' && fileName !== undefined) {
      return { fields, fileName, content: () => untilDelimiter(held, chunks, delimiter) }
    }
    const end = await find(delimiter, 0)
    if (!fields.has(name)) fields.set(name, held.subarray(0, end).toString('utf8'))
    held = held.subarray(end)
  }

  async function find(what: Buffer | string, from: number): Promise<number> {
    for (;;) {
      const at = held.indexOf(what, from)
      if (at >= 0) return at
      await more()
    }
  }
}

/** Name of a part, and of its file. Throws at the end of the form, too: it had no file. */
function dispositionOf(headers: string): { readonly name: string; readonly fileName: string | undefined } {
  if (headers.startsWith('--')) throw malformed('it has no part "file"')
  const line = headers.split('\r\n').find((one) => /^content-disposition:/i.test(one)) ?? ''
  const parameter = (name: string): string | undefined =>
    new RegExp(`;\\s*${name}="((?:[^"\\\\]|\\\\.)*)"`, 'i').exec(line)?.[1] ??
    new RegExp(`;\\s*${name}=([^\\s;"]+)`, 'i').exec(line)?.[1]
  const name = parameter('name')
  if (name === undefined) throw malformed('a part has no name')
  return { name, fileName: parameter('filename')?.replaceAll('%22', '"') }
}

async function* untilDelimiter(first: Buffer, chunks: AsyncIterator<Buffer>, delimiter: Buffer): AsyncIterable<Buffer> {
  let held = first
  for (;;) {
    const at = held.indexOf(delimiter)
    if (at >= 0) {
      if (at > 0) yield held.subarray(0, at)
      return endOf(held.subarray(at + delimiter.length), chunks)
    }
    // A delimiter may begin in what is held, and end in the next chunk.
    const sure = held.length - delimiter.length + 1
    if (sure > 0) {
      yield held.subarray(0, sure)
      held = held.subarray(sure)
    }
    const { done, value } = await chunks.next()
    if (done) throw malformed('it ends before its file does')
    held = Buffer.concat([held, value])
  }
}

/** Reads what is behind the file: the end of the form, and of the body, which is verified then. */
async function endOf(first: Buffer, chunks: AsyncIterator<Buffer>): Promise<void> {
  let rest = first
  for (;;) {
    const { done, value } = await chunks.next()
    if (done) break
    rest = Buffer.concat([rest, value])
    if (rest.length > MAX_EPILOGUE) break
  }
  if (rest.length > MAX_EPILOGUE || !rest.toString('latin1').startsWith('--')) {
    throw malformed('the part "file" must be the last one')
  }
}

function malformed(reason: string): S3Error {
  return new S3Error('MalformedPOSTRequest', { message: `The form cannot be used: ${reason}.` })
}
