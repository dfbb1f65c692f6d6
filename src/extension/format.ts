import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'
import type { RequestHead } from '../request/s3-request.js'

export type Format = 'json' | 'xml'

type Head = Pick<RequestHead, 'method' | 'resource' | 'path' | 'query' | 'headers'>

/**
 * In which form a call answers: what `format` says, else what is accepted, else what was sent, else JSON for resources of the service and XML for those of S3. Throws
 * InvalidArgument for another `format`.
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
  // Bytes that are read are told to the user as they are; anything else is for the client itself.
  const reads = head.method === 'GET' || head.method === 'HEAD'
  return asked(head) ?? (reads && head.resource === 'service' ? 'json' : usual(head))
}

/** In which form a request is told what went wrong, whether or not it got as far as a call: that of its answer for extensions, XML for S3. */
export function errorFormatOf(head: Head): Format {
  if (!isExtension(head)) return 'xml'
  const wanted = head.query.get('format')
  return wanted === 'json' || wanted === 'xml' ? wanted : (asked(head) ?? usual(head))
}

/** The format that a media type says; undefined for others. */
export function formatOfType(type: string | undefined): Format | undefined {
  const essence = type?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^(?:application|text)\/(?:[\w.-]+\+)?json$/.test(essence)) return 'json'
  if (/^(?:application|text)\/(?:[\w.-]+\+)?xml$/.test(essence)) return 'xml'
  return undefined
}

function asked({ headers }: Head): Format | undefined {
  return accepted(headers.accept) ?? formatOfType(headers['content-type'])
}

/** AWS's SDKs say that they are one, and understand as clients of S3 nothing but XML. */
function usual({ resource, headers }: Head): Format {
  return resource === 'service' && headers['amz-sdk-invocation-id'] === undefined ? 'json' : 'xml'
}

/** What lies below `/-/`, and sub-resources `?x-...`. */
function isExtension({ resource, path, query }: Head): boolean {
  if (resource === 'service') return path.startsWith('/-/')
  return query.entries.some(([name, value]) => value === '' && /^x-(?!amz-|cloud-|id$)/i.test(name))
}

/** The one that is wanted most of those that are named; `*` names none. https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1 */
function accepted(accept: IncomingHttpHeaders['accept']): Format | undefined {
  let best: { format: Format; q: number } | undefined
  for (const range of accept?.split(',') ?? []) {
    const format = formatOfType(range)
    const q = Number(/;\s*q\s*=\s*([\d.]+)/i.exec(range)?.[1] ?? 1)
    if (format && q > (best?.q ?? 0)) best = { format, q }
  }
  return best?.format
}
