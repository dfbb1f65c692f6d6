import { isDeeper } from '../../../common/json-depth.js'
import { receive } from '../../http/receive.js'
import { PlatformError } from '../errors.js'
import type { Exchange } from './exchange.js'
import { type Field, Fields, type UploadedFile } from './fields.js'
import { parseMultipart } from './multipart.js'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a body of JSON (an object of texts, numbers and booleans), of a urlencoded or of a multipart form; an empty
 * body has no fields. The body is in memory, within the limits of the platform. Throws PlatformError: 400 when it is
 * malformed, 413 when it is too large, 415 for another type.
 * @param files true when the endpoint takes files, in a multipart form
 */
export async function readFields(exchange: Exchange, { files = false } = {}): Promise<Fields> {
  const { maxFieldBytes, maxFileBytes, maxFields } = exchange.context.limits
  const header = exchange.request.headers['content-type'] ?? ''
  const type = header.split(';')[0]?.trim().toLowerCase()
  const body = await collect(
    exchange,
    files && type === 'multipart/form-data' ? maxFieldBytes + maxFileBytes : maxFieldBytes,
  )
  if (body.length === 0) return new Fields([])
  const { fields, uploads } = await parsed(type, header, body, exchange)
  if (fields.length + uploads.size > maxFields) throw new PlatformError(400, `A body has at most ${maxFields} fields.`)
  return new Fields(fields, uploads)
}

interface Parsed {
  readonly fields: readonly Field[]
  readonly uploads: ReadonlyMap<string, UploadedFile>
}

async function parsed(type: string | undefined, header: string, body: Buffer, exchange: Exchange): Promise<Parsed> {
  const uploads = new Map<string, UploadedFile>()
  switch (type) {
    case 'application/json':
      return { fields: jsonFields(text(body)), uploads }
    case 'application/x-www-form-urlencoded':
      return { fields: formFields(text(body)), uploads }
    case 'multipart/form-data':
      return parseMultipart(header, body, exchange.context.limits)
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

async function collect({ context, request, body }: Exchange, most: number): Promise<Buffer> {
  const tooLarge = (): PlatformError => new PlatformError(413, `The body may have at most ${most} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > most) throw tooLarge()
  body.open()
  const chunks: Buffer[] = []
  let size = 0
  await receive(
    request,
    undefined,
    {
      write(chunk) {
        chunks.push(chunk)
        size += chunk.length
        return size <= most
      },
      ready: () => Promise.reject(tooLarge()),
    },
    context.limits.bodyIdleMs,
  )
  return Buffer.concat(chunks)
}
