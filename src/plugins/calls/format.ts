import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { element, escapeXml, XML_DECLARATION } from '../../../common/xml.js'
import type { Document } from '../../api/operation.js'
import type { RequestHead } from '../../api/request.js'
import type { Shape } from './shape.js'

export type Format = 'json' | 'xml'

type Head = Pick<RequestHead, 'resource' | 'path' | 'query' | 'headers'> & { readonly method: string }

/**
 * Returns the format of the answer of a call: that of `format`, else that of Accept, else that of Content-Type, else
 * JSON for resources of the service and XML for those of S3. Throws InvalidArgument for another `format`.
 */
export function formatOf(head: Head): Format {
  const wanted = head.query.get('format')
  if (wanted === 'json' || wanted === 'xml') return wanted
  if (wanted) {
    throw new S3Error('InvalidArgument', {
      message: 'format must be json or xml.',
      fields: { ArgumentName: 'format', ArgumentValue: wanted.slice(0, 100) },
    })
  }
  // Clients show the bytes of a read to the user as they are; they parse any other answer themselves.
  const reads = head.method === 'GET' || head.method === 'HEAD'
  return asked(head) ?? (reads && head.resource === 'service' ? 'json' : usual(head))
}

/**
 * Whether a call that has a list as CSV is asked for it.
 * @param usual whether it is the format for a request that names none
 */
export function wantsCsv({ query }: Pick<Head, 'query'>, usual: boolean): boolean {
  const wanted = query.get('format')
  return wanted === 'csv' || (usual && !wanted)
}

/**
 * Returns the format of a document that exists in JSON only, whatever Accept says. Throws InvalidArgument for another
 * `format`.
 */
export function requireJson({ query }: Pick<Head, 'query'>): 'json' {
  const wanted = query.get('format')
  if (!wanted || wanted === 'json') return 'json'
  throw new S3Error('InvalidArgument', {
    message: 'This document exists in JSON only: format must be json.',
    fields: { ArgumentName: 'format', ArgumentValue: wanted.slice(0, 100) },
  })
}

/** Returns the format of errors, also of requests that match no call: for extensions that of the answer, for S3 XML. */
export function errorFormatOf(head: Head): Format {
  if (!isExtension(head)) return 'xml'
  const wanted = head.query.get('format')
  return wanted === 'json' || wanted === 'xml' ? wanted : (asked(head) ?? usual(head))
}

/** Returns the format of a media type; undefined for other types. */
export function formatOfType(type: string | undefined): Format | undefined {
  const essence = type?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^(?:application|text)\/(?:[\w.-]+\+)?json$/.test(essence)) return 'json'
  if (/^(?:application|text)\/(?:[\w.-]+\+)?xml$/.test(essence)) return 'xml'
  return undefined
}

function asked({ headers }: Head): Format | undefined {
  return accepted(headers.accept) ?? formatOfType(headers['content-type'])
}

/** AWS SDKs identify themselves by a header, older ones by their names; as S3 clients they understand only XML. */
function usual({ resource, headers }: Head): Format {
  const isS3Client =
    headers['amz-sdk-invocation-id'] !== undefined || /^(?:aws-cli|boto3|botocore)\//i.test(headers['user-agent'] ?? '')
  return resource === 'service' && !isS3Client ? 'json' : 'xml'
}

/** Returns true for paths below `/-/` and for sub-resources `?x-...`. */
function isExtension({ resource, path, query }: Head): boolean {
  if (resource === 'service') return path.startsWith('/-/')
  return query.entries.some(([name, value]) => value === '' && /^x-(?!amz-|cloud-|id$)/i.test(name))
}

/**
 * Returns the named format with the highest weight; `*` names none.
 * https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
 */
function accepted(accept: IncomingHttpHeaders['accept']): Format | undefined {
  let best: { format: Format; q: number } | undefined
  for (const range of accept?.split(',') ?? []) {
    const format = formatOfType(range)
    const q = Number(/;\s*q\s*=\s*([\d.]+)/i.exec(range)?.[1] ?? 1)
    if (format && q > (best?.q ?? 0)) best = { format, q }
  }
  return best?.format
}

/**
 * Serializes the items of a list as CSV (https://www.rfc-editor.org/rfc/rfc4180): a row of names, and a row for each
 * item. Members that are lists or objects are left out; one that is absent or null is an empty cell.
 * A text that spreadsheets would take for a formula begins with `'`.
 * @param shape of the document that holds the list
 */
export async function csvDocument(shape: Shape, list: string, document: Document): Promise<string> {
  // Few servers are ever asked for CSV.
  const { stringify } = await import('csv-stringify/sync')
  const columns = columnsOf(shape, list)
  const rows = (document[list] as readonly Document[]).map((item) => columns.map((name) => cell(item[name])))
  // A lone carriage return or line feed ends a row, too, for many readers.
  const breaks = { record_delimiter: 'windows', quoted_match: /[\r\n]/ } as const
  return stringify([columns, ...rows], { ...breaks, escape_formulas: true })
}

/** A negative number is no formula: numbers stay numbers. */
function cell(value: unknown): string | number {
  if (typeof value === 'number') return value
  return value === undefined || value === null ? '' : String(value)
}

/** Names of the members of an item that are texts, numbers or booleans. Throws Error for what is no list of objects. */
export function columnsOf(shape: Shape, list: string): readonly string[] {
  const member = shape.kind === 'object' ? shape.members.get(list)?.shape : undefined
  const item = member?.kind === 'list' ? member.item : undefined
  if (item?.kind !== 'object') throw new Error(`"${list}" is not a list of objects`)
  return [...item.members]
    .filter(
      ([
        ,
        {
          shape: { kind },
        },
      ]) => kind !== 'list' && kind !== 'object',
    )
    .map(([name]) => name)
}

/** Returns the XML namespace of a plugin's documents. */
export function namespaceOf(plugin: string): string {
  return `urn:dealgate:${plugin}:1`
}

/** Serializes a document as XML, with the names that it has as JSON. Omits members that are undefined or null. */
export function xmlDocument(root: string, plugin: string, shape: Shape, document: Document): string {
  return `${XML_DECLARATION}<${root} xmlns="${namespaceOf(plugin)}">${content(shape, document)}</${root}>`
}

const ANY: Shape = { kind: 'any', nullable: true }

function content(shape: Shape, value: unknown): string {
  if (typeof value !== 'object' || value === null) return escapeXml(String(value ?? ''))
  if (Array.isArray(value)) return value.map((item) => one('member', ANY, item)).join('')
  return Object.entries(value)
    .map(([name, member]) => memberElement(shape, name, member))
    .join('')
}

function memberElement(shape: Shape, name: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  const known = shape.kind === 'object' ? shape.members.get(name)?.shape : undefined
  if (known) return elements(name, known, value)
  const rest = shape.kind === 'object' ? shape.rest : undefined
  // A name that is data may not be a valid element name.
  if (!rest && isElementName(name)) return elements(name, ANY, value)
  return `<Entry>${element('Name', name)}${elements('Value', rest ?? ANY, value)}</Entry>`
}

function elements(name: string, shape: Shape, value: unknown): string {
  if (!Array.isArray(value)) return one(name, shape, value)
  if (shape.kind !== 'list') return value.map((item) => one(name, ANY, item)).join('')
  const { element: inner } = shape
  if (inner === undefined) return value.map((item) => one(name, shape.item, item)).join('')
  return `<${name}>${value.map((item) => one(inner, shape.item, item)).join('')}</${name}>`
}

function one(name: string, shape: Shape, value: unknown): string {
  if (shape.kind === 'list' && Array.isArray(value)) return elements(name, shape, value)
  return `<${name}>${content(shape, value)}</${name}>`
}

/** Returns true for valid element names, except `Entry`, which has a meaning of its own. */
function isElementName(name: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(name) && !/^xml/i.test(name) && name !== 'Entry'
}
