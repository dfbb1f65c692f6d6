import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { RequestHead } from '../../../request/s3-request.js'

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
