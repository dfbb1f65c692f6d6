import { Blocks, type HttpExchange, readBody as readWhole, receiveBounded } from '../http/body.js'
import { HttpError } from '../http/errors.js'
import { type Field, jsonFields, textOf } from '../rest/fields.js'
import { MultipartForm } from '../rest/form.js'
import type { RouteFacts } from '../rest/routes.js'
import type { PlatformContext } from './context.js'
import { parsed } from './parsed.js'

/** Fields of a body, whatever its encoding. Names are those of the client: their case matters. */
export type Texts = Readonly<Record<string, string>>

export interface UploadedFile {
  /** Name that the client gives the file, without folders; '' for none. */
  readonly name: string
  /** Bytes of the file, in blocks of 64 KiB at most. */
  readonly content: readonly Buffer[]
}

interface Received {
  readonly fields: readonly Field[]
  readonly files: ReadonlyMap<string, UploadedFile>
}

/** What an endpoint takes. */
export interface BodyFacts extends Pick<RouteFacts, 'body' | 'files'> {
  /** Gives fields that clients spell differently the names of `body`. Throws HttpError 400. */
  readonly respelled?: ((texts: Texts) => Texts) | undefined
}

/**
 * Reads a body of JSON (an object of texts, numbers and booleans), of a urlencoded or of a multipart form; an empty
 * body has no fields. The body is in memory, within the limits of the platform. Rejects with HttpError: 400 when it is
 * malformed, 408 when it takes too long, 413 when it is too large, 415 for another type.
 */
export async function readBody(
  exchange: HttpExchange,
  context: Pick<PlatformContext, 'limits' | 'monotonicMs'>,
  { body, files, respelled = (texts) => texts }: BodyFacts,
): Promise<object> {
  const received = await receive(exchange, context, files !== undefined)
  const texts = textsOf(received.fields)
  const read = parsed(body, respelled(texts))
  return files === undefined ? read : { ...read, file: csvOf(texts, received.files) }
}

/** Throws HttpError 400 for a field that is given twice or has a text that cannot be stored. */
function textsOf(fields: readonly Field[]): Texts {
  const texts = new Map<string, string>()
  for (const [name, value] of fields) {
    if (texts.has(name)) throw givenTwice(name)
    // SQLite cuts texts at NUL.
    if (value.includes('\0') || !value.isWellFormed()) {
      throw new HttpError(400, `The field ${name} has characters that no text may have.`)
    }
    texts.set(name, value)
  }
  return Object.fromEntries(texts)
}

function givenTwice(name: string): HttpError {
  return new HttpError(400, `The field ${name} is given twice.`)
}

const MAX_FILE_NAME = 255

/** The CSV of a form, if it has one. Throws HttpError 400 for other files. */
function csvOf(texts: Texts, files: Received['files']): UploadedFile | undefined {
  if (Object.hasOwn(texts, 'file'))
    throw new HttpError(400, 'file is a text: send the CSV as a file of the form, with a name.')
  const other = [...files.keys()].find((name) => name !== 'file')
  if (other !== undefined) throw new HttpError(400, `The form has a file ${other}: send the CSV as file.`)
  const file = files.get('file')
  if (file === undefined) return undefined
  if (/\p{Cc}/u.test(file.name) || file.name.length > MAX_FILE_NAME) {
    throw new HttpError(400, `The name of the file has control characters or more than ${MAX_FILE_NAME} characters.`)
  }
  return file
}

async function receive(
  exchange: HttpExchange,
  { limits, monotonicMs: now }: Pick<PlatformContext, 'limits' | 'monotonicMs'>,
  withFiles: boolean,
): Promise<Received> {
  const { maxFieldBytes, maxFileBytes, maxFields, bodyIdleMs: idleMs } = limits
  const type = exchange.request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  const isForm = type === 'multipart/form-data'
  const bounds =
    isForm && withFiles
      ? { maxBytes: maxFieldBytes + maxFileBytes, totalMs: limits.uploadMs, idleMs, now }
      : { maxBytes: maxFieldBytes, totalMs: limits.bodyMs, idleMs, now }
  if (isForm) return receiveForm(exchange, limits, bounds)
  const fields = fieldsOf(type, await readWhole(exchange, bounds))
  if (fields.length > maxFields) throw new HttpError(400, `A body has at most ${maxFields} fields.`)
  return { fields, files: new Map() }
}

async function receiveForm(
  exchange: HttpExchange,
  { maxFieldBytes, maxFileBytes, maxFields: maxParts }: PlatformContext['limits'],
  bounds: Parameters<typeof receiveBounded>[1],
): Promise<Received> {
  const names = new Set<string>()
  const type = exchange.request.headers['content-type'] ?? ''
  const form = new MultipartForm(type, { maxFieldBytes, maxFileBytes, maxParts }, ({ field, content }) => {
    if (names.has(field)) throw givenTwice(field)
    names.add(field)
    return blocksOf(content)
  })
  try {
    await receiveBounded(exchange, bounds, form)
    if (form.received === 0) return { fields: [], files: new Map() }
    const { fields, files } = await form.finish()
    return { fields, files: new Map(files.map(({ field, name, taken }) => [field, { name, content: taken }])) }
  } catch (error) {
    await form.abort(error)
    throw error
  }
}

async function blocksOf(content: AsyncIterable<Uint8Array>): Promise<UploadedFile['content']> {
  const blocks = new Blocks()
  for await (const chunk of content) blocks.add(chunk)
  return blocks.all()
}

function fieldsOf(type: string | undefined, body: Buffer): readonly Field[] {
  if (body.length === 0) return []
  if (type === 'application/json') return jsonFields(body)
  if (type === 'application/x-www-form-urlencoded') return formFields(textOf(body))
  throw new HttpError(
    415,
    'Send a body of the type application/json, application/x-www-form-urlencoded or multipart/form-data.',
  )
}

const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/

function formFields(body: string): Field[] {
  const refusal = () => new HttpError(400, 'The form is not percent-encoded UTF-8.')
  const decode = (part: string): string => {
    try {
      return decodeURIComponent(part.replaceAll('+', ' '))
    } catch {
      throw refusal()
    }
  }
  if (BROKEN_ESCAPE.test(body)) throw refusal()
  return body
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
    })
}
