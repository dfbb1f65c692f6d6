import { isDeeper } from '../../../common/json.js'
import { receive } from '../../http/receive.js'
import { Blocks } from '../../http/reply.js'
import { PlatformError } from '../errors.js'
import { type Field, Fields, type UploadedFile } from './fields.js'
import { MultipartParser, type Parts } from './multipart.js'
import type { Exchange } from './route.js'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a body of JSON (an object of texts, numbers and booleans), of a urlencoded or of a multipart form; an empty
 * body has no fields. The body is in memory, within the limits of the platform. Throws PlatformError: 400 when it is
 * malformed, 408 when it takes too long, 413 when it is too large, 415 for another type.
 * @param files true when the endpoint takes files, in a multipart form
 */
export async function readFields(exchange: Exchange, { files = false } = {}): Promise<Fields> {
  const { maxFieldBytes, maxFileBytes, maxFields, bodyMs, uploadMs } = exchange.context.limits
  const header = exchange.request.headers['content-type'] ?? ''
  const type = header.split(';')[0]?.trim().toLowerCase()
  const small = { most: maxFieldBytes, longestMs: bodyMs }
  const { fields, uploads } =
    type === 'multipart/form-data'
      ? await readMultipart(
          exchange,
          header,
          files ? { most: maxFieldBytes + maxFileBytes, longestMs: uploadMs } : small,
        )
      : { fields: await readText(exchange, type, small), uploads: new Map<string, UploadedFile>() }
  if (fields.length + uploads.size > maxFields) throw new PlatformError(400, `A body has at most ${maxFields} fields.`)
  return new Fields(fields, uploads)
}

async function readMultipart(exchange: Exchange, header: string, bounds: BodyBounds): Promise<Parts> {
  let parser: MultipartParser | undefined
  await receiveBody(exchange, bounds, (chunk) => {
    try {
      parser ??= new MultipartParser(header, exchange.context.limits)
    } catch (error) {
      if (error instanceof PlatformError) return error
      throw error
    }
    return parser.write(chunk)
  })
  return parser?.end() ?? { fields: [], uploads: new Map() }
}

async function readText(exchange: Exchange, type: string | undefined, bounds: BodyBounds): Promise<Field[]> {
  const blocks = new Blocks()
  await receiveBody(exchange, bounds, (chunk) => {
    blocks.add(chunk)
    return undefined
  })
  if (blocks.size === 0) return []
  switch (type) {
    case 'application/json':
      return jsonFields(text(Buffer.concat(blocks.all())))
    case 'application/x-www-form-urlencoded':
      return formFields(text(Buffer.concat(blocks.all())))
    default:
      throw new PlatformError(
        415,
        'Send a body of the type application/json, application/x-www-form-urlencoded or multipart/form-data.',
      )
  }
}

function text(body: Buffer): string {
  try {
    return decoder.decode(body)
  } catch {
    throw new PlatformError(400, 'The body is not UTF-8.')
  }
}

function jsonFields(body: string): Field[] {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    throw new PlatformError(400, 'The body is not JSON.')
  }
  const flat = typeof value === 'object' && value !== null && !Array.isArray(value) && !isDeeper(value, 1)
  if (!flat) throw new PlatformError(400, 'The body must be a JSON object of texts, numbers and booleans.')
  return Object.entries(value as object).flatMap(([name, member]) => (member === null ? [] : [[name, String(member)]]))
}

const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/

function formFields(body: string): Field[] {
  const decode = (part: string): string => {
    try {
      return decodeURIComponent(part.replaceAll('+', ' '))
    } catch {
      throw new PlatformError(400, 'The form is not percent-encoded UTF-8.')
    }
  }
  if (BROKEN_ESCAPE.test(body)) throw new PlatformError(400, 'The form is not percent-encoded UTF-8.')
  return body
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
    })
}

/** How much of a body is taken. */
interface BodyBounds {
  /** Bytes. */
  readonly most: number
  /** Time from the first byte that is asked for to the last, ms; a body that stops arriving ends earlier. */
  readonly longestMs: number
}

/**
 * Receives the body of a request, chunk by chunk. Throws PlatformError: 408 when the body takes too long, 413 when it
 * is too large; ReceiveError when it stops arriving.
 * @param take returns the reason to receive no more, which is thrown
 */
async function receiveBody(
  { context, request, body }: Pick<Exchange, 'context' | 'request' | 'body'>,
  { most, longestMs }: BodyBounds,
  take: (chunk: Buffer) => PlatformError | undefined,
): Promise<void> {
  const tooLarge = (): PlatformError => new PlatformError(413, `The body may have at most ${most} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > most) throw tooLarge()
  const { limits, monotonicMs } = context
  const begun = monotonicMs()
  let size = 0
  let refusal: PlatformError | undefined
  body.open()
  await receive(
    request,
    undefined,
    {
      write(chunk) {
        size += chunk.length
        // Each chunk asks for the time: one that does not arrive is a stall, which has a limit of its own.
        if (size > most) refusal = tooLarge()
        else if (monotonicMs() - begun >= longestMs) {
          refusal = new PlatformError(408, `The body took more than ${longestMs / 1000} s.`)
        } else refusal = take(chunk)
        return refusal === undefined
      },
      ready: () => Promise.reject(refusal),
    },
    limits.bodyIdleMs,
  )
}
