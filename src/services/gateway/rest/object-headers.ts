import { wholeSeconds } from '../../clock.js'
import type { HeaderList } from '../../http/reply.js'
import type { GatewayContext } from '../context.js'
import { headerText } from '../http/header-text.js'
import type { ObjectRow } from '../store/objects.js'

/** Query parameters of a download that override headers of the object. */
const OVERRIDES = [
  'content-type',
  'content-disposition',
  'content-encoding',
  'content-language',
  'cache-control',
  'expires',
] as const

/**
 * Headers that describe the object in a GET or HEAD response. Throws GatewayError when an override is not a valid
 * header value.
 */
export function objectHeaders({ names, quirks }: GatewayContext, row: ObjectRow, query: URLSearchParams): HeaderList {
  const values: Record<string, string> = { 'content-type': row.contentType, ...row.headers }
  if (quirks.has('forced-disposition')) {
    values['content-disposition'] = `attachment; filename="${lastElement(row.key)}"`
    values['cache-control'] = 'no-store'
  }
  for (const name of OVERRIDES) {
    const value = query.get(`response-${name}`)
    if (value !== null) values[name] = headerText(`response-${name}`, value)
  }
  const list: HeaderList = [
    ...['ETag', `"${row.etag}"`],
    ...['Last-Modified', new Date(wholeSeconds(row.modified) * 1000).toUTCString()],
    ...['Accept-Ranges', 'bytes'],
    ...['X-Content-Type-Options', 'nosniff'],
  ]
  if (!quirks.has('no-upload-etag')) {
    list.push(`${names.header}generation`, row.generation, `${names.header}last-modified`, row.modified)
  }
  if (row.writeId !== null) list.push(`${names.header}write-id`, row.writeId)
  if (row.bodyAt === 'network') list.push(`${names.header}storage-state`, 'cold')
  for (const [name, value] of Object.entries(values)) list.push(name, value)
  return list
}

/** The part of the key behind its last slash, for a quoted string; UTF-8 bytes, one character each. */
function lastElement(key: Buffer): string {
  const name = key.subarray(key.lastIndexOf('/') + 1).toString('latin1')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: headers cannot carry these characters
  return name.replace(/[\x00-\x1f\x7f]/g, '').replace(/["\\]/g, '\\$&')
}
