import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Query } from '../../../common/query.js'
import type { Method, RequestHead } from '../../../src/api/request.js'

export interface HeadOptions {
  method?: string
  /** As on the request line. */
  target: string
  headers?: readonly (readonly [name: string, value: string])[]
}

/**
 * A head as the server would read it, for tests that need no socket. Bucket and key stay empty: nothing under test
 * looks at them.
 */
export function requestHead({ method = 'GET', target, headers = [] }: HeadOptions): RequestHead {
  const joined: IncomingHttpHeaders = {}
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    joined[lower] = joined[lower] === undefined ? value : `${joined[lower]}, ${value}`
  }
  return buildHead(method, target, joined, headers.flat())
}

export function headOf(incoming: IncomingMessage): RequestHead {
  return buildHead(incoming.method ?? '', incoming.url ?? '', incoming.headers, incoming.rawHeaders)
}

function buildHead(
  method: string,
  target: string,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
): RequestHead {
  const [rawPath = '', ...rest] = target.split('?')
  const rawQuery = rest.join('?')
  return {
    id: 'TEST',
    method: method as Method,
    target,
    rawPath,
    rawQuery,
    path: rawPath,
    query: new Query(rawQuery),
    headers,
    rawHeaders,
    secure: false,
    host: headers.host ?? '',
    hostBucket: undefined,
    signedHosts: [headers.host ?? ''],
    remoteAddress: '127.0.0.1',
    secrets: [],
    resource: 'service',
    bucket: undefined,
    key: undefined,
  }
}
