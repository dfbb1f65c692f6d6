import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { isForS3, misdirected } from '../../common/misdirected.js'
import { Query } from '../../common/query.js'
import { escapeXml } from '../../common/xml.js'
import { authorize } from '../access/authorize.js'
import type { Context } from '../api/context.js'
import type { Limits } from '../api/limits.js'
import type { AnyOperation } from '../api/operation.js'
import type { Reply, RequestHead, S3Request } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import { type Addressing, clientAt } from '../http/addressing.js'
import { ArrivedRequest } from '../http/arrived-request.js'
import { openBody } from '../http/body/open-body.js'
import { toS3Error } from '../http/error-reply.js'
import { unicodeHeader } from '../http/header-text.js'
import { refuseSecondHost } from '../http/read-request.js'
import type { OperationTable, Selected } from '../plugins/table.js'
import {
  bucketOfHost,
  type Redirect,
  redirectByRule,
  redirectOfAll,
  type WebHost,
  type WebsiteConfiguration,
} from '../s3/bucket/website.js'
import { REDIRECT } from '../s3/object/attributes.js'
import { requestId } from './access-log.js'
import type { Contexts } from './context.js'
import type { Steps } from './handle.js'
import { missingInstead } from './refuse.js'
import { runOperation } from './run-operation.js'
import type { CallerAdmission } from './traffic/traffic.js'

interface WebsiteDeps extends Pick<Steps, 'observe' | 'admit' | 'withCors' | 'send' | 'ended'> {
  readonly table: Pick<OperationTable, 'rows'>
  readonly contexts: Pick<Contexts, 'anonymous'>
  readonly limits: Limits
  readonly addressing: Addressing
  readonly settings: Pick<BucketSettings, 'get'>
  /** Names below which each bucket is a host. */
  readonly domains: readonly string[]
}

const WRONG_PORT = misdirected('the port of the websites of buckets')

/** Headers of a visitor that the object, or a policy, may depend on. */
const PASSED = /^(?:range|if-.*|referer|user-agent|origin)$/
const CONDITIONS = /^(?:range|if-.*)$/
/** Further headers of a preflight that are passed on. Other requests have no use for them. */
const OF_PREFLIGHT = /^access-control-request-(?:method|headers)$/

/** The operation that answers at the S3 endpoint, by the method of a visitor. */
const OPERATIONS = { GET: 'GetObject', HEAD: 'HeadObject', OPTIONS: 'PreflightObject' } as const

interface Outcome {
  readonly seen: Seen
  readonly reply: Reply
  /** The error that the reply states, if it states one. */
  readonly failure?: S3Error
}

/** What answers one visitor. */
interface WebRequest extends WebHost {
  readonly id: string
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly method: keyof typeof OPERATIONS
  readonly bucket: string
  /** Decoded, without its first slash. */
  readonly key: string
  /** Path and query, encoded. */
  readonly target: string
  readonly website: WebsiteConfiguration
}

/** An object as an unsigned request may see it. */
interface Seen {
  readonly head: RequestHead
  readonly selected: Selected
  context?: Context
  reply?: Reply
  failure?: S3Error
}

/**
 * Serves buckets as websites: https://docs.aws.amazon.com/AmazonS3/latest/userguide/WebsiteHosting.html. Every answer is
 * that of unsigned GET and HEAD requests, whatever a visitor sends. On a port of its own, because pages run scripts
 * here.
 */
export function createWebsites(deps: WebsiteDeps): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  return (incoming, outgoing) =>
    deps.observe(incoming, outgoing, () => {
      void serve(incoming, outgoing)
    })

  /** Never rejects. */
  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    incoming.on('error', () => {})
    outgoing.on('error', () => {})
    const id = requestId()
    const started = performance.now()
    const { address: remote, secure } = clientAt(incoming, deps.addressing)
    const host = incoming.headers.host ?? ''
    const bucket = bucketOfHost(host, deps.domains)
    // The query of a page is ignored, also where it looks like a signature.
    const forS3 = isForS3(incoming.headers, '')
    let seen: Seen | undefined
    let failure: S3Error | undefined
    let reply: Reply
    let admission: CallerAdmission | undefined
    try {
      if (forS3) throw new S3Error('InvalidRequest', { message: WRONG_PORT.message })
      const { method } = incoming
      refuseSecondHost(incoming.rawHeaders)
      if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS')
        throw new S3Error('MethodNotAllowed', { headers: { allow: Object.keys(OPERATIONS).join(', ') } })
      const target = incoming.url ?? '/'
      const key = keyOf(target)
      const request = { id, incoming, outgoing, method, bucket, key, target, secure, host } as const
      seen = lookAt(request, key, remote)
      admission = deps.admit(seen.head, incoming) // SlowDown
      const website = await deps.settings.get(bucket, 'website')
      if (!website) throw new S3Error('NoSuchWebsiteConfiguration', { fields: { BucketName: bucket } })
      ;({ seen, reply, failure } =
        method === 'OPTIONS'
          ? await preflight({ ...request, website }, seen)
          : await answer({ ...request, website }, remote))
    } catch (thrown) {
      failure = toS3Error(thrown)
      reply = forS3 ? wrongPort() : page(failure, id)
    }
    const answered = performance.now()
    if (seen) reply = await deps.withCors(seen.head, reply)
    const facing = () => ({ id, resource: incoming.url ?? '/', form: 'xml' }) as const
    const sent = await deps.send(incoming, outgoing, { ...reply, ownOrigin: true }, { id, remote }, facing)
    admission?.leave(sent.bytes)
    const { head, selected, context } = seen ?? {}
    deps.ended({
      ...{ id, incoming, outgoing, head, selected, context, reply, started, answered, sent, remote },
      ...{ caller: undefined, received: 0, length: 0, failure: sent.failure ?? failure },
      operation: `WEBSITE.${incoming.method}.OBJECT`,
    })
  }

  /** A browser asks whether a page of another origin may read the answer: by the rules of the bucket, in any case. */
  async function preflight(request: WebRequest, seen: Seen): Promise<Outcome> {
    await read(seen, request)
    const { failure } = seen
    return {
      seen,
      reply: seen.reply ?? page(failure ?? new S3Error('InternalError'), request.id),
      ...(failure && { failure }),
    }
  }

  async function answer(request: WebRequest, remote: string): Promise<Outcome> {
    const { website, key, target, id } = request
    const { index } = website
    const asked = key === '' || key.endsWith('/') ? `${key}${index ?? ''}` : key
    const seen = lookAt(request, asked, remote)
    const first = redirectOfAll(website, target, request) ?? redirectByRule(website, key, undefined, request)
    if (first) return { seen, reply: redirect(first) }
    await read(seen, request)
    const { reply, failure } = seen
    if (reply) {
      const elsewhere = reply.headers[REDIRECT]
      if (elsewhere === undefined) return { seen, reply }
      discard(reply)
      return { seen, reply: redirect({ status: 301, location: String(elsewhere) }) }
    }
    const error = failure ?? new S3Error('InternalError')
    if (asked === key && index !== undefined && (error.code === 'NoSuchKey' || error.code === 'AccessDenied')) {
      const folder = lookAt({ ...request, method: 'HEAD' }, `${key}/${index}`, remote)
      await read(folder, request)
      if (folder.reply) return { seen, reply: redirect({ status: 302, location: folderOf(target) }) }
    }
    const byRule = redirectByRule(website, key, error.status, request)
    if (byRule) return { seen, reply: redirect(byRule), failure: error }
    const document = await errorDocument(request, error, remote)
    return { seen, reply: document ? withError(document, error) : page(error, id), failure: error }
  }

  /** The object for errors of clients; undefined for none that everybody may read. */
  async function errorDocument(request: WebRequest, error: S3Error, remote: string): Promise<Reply | undefined> {
    const { error: key } = request.website
    if (key === undefined || error.status < 400 || error.status >= 500) return undefined
    const seen = lookAt(request, key, remote, CONDITIONS)
    await read(seen, request)
    return seen.reply && { ...seen.reply, status: error.status }
  }

  function lookAt(
    { id, method, bucket, host, secure, incoming }: Omit<WebRequest, 'website' | 'outgoing'>,
    key: string,
    remoteAddress: string,
    without?: RegExp,
  ): Seen {
    const row = deps.table.rows.find(({ operation }) => operation.name === OPERATIONS[method])
    if (!row) throw new S3Error('InternalError')
    const path = `/${bucket}/${key}`
    const head: RequestHead = {
      ...{ id, method, host, hostBucket: bucket, signedHosts: [host], secure, remoteAddress },
      ...{ target: path, rawPath: path, path, rawQuery: '', query: new Query('') },
      ...{ headers: passed(incoming.headers, method, without), rawHeaders: [], secrets: [] },
      ...{ resource: 'object', bucket, key },
    }
    return { head, selected: { ...row, params: {} } }
  }

  /** Reads as an unsigned request to the S3 endpoint does, by the same decision. */
  async function read(seen: Seen, { incoming, outgoing }: WebRequest): Promise<void> {
    const { head, selected } = seen
    const operation: AnyOperation = selected.operation
    try {
      const context = deps.contexts.anonymous(operation, head)
      seen.context = context
      await authorize(selected, head, context)
      const body = openBody(incoming, head, { kind: 'unsigned' }, deps.limits)
      const request = new ArrivedRequest(head, selected, body, outgoing) as S3Request
      seen.reply = await runOperation(operation, request, context)
    } catch (thrown) {
      const failure = toS3Error(thrown)
      const { context } = seen
      seen.failure = context ? await missingInstead(failure, 's3:GetObject', head, context) : failure
    }
  }
}

/** Throws InvalidURI. */
function keyOf(target: string): string {
  try {
    return decodeURIComponent((target.split('?')[0] ?? '').replace(/^\//, ''))
  } catch {
    throw new S3Error('InvalidURI')
  }
}

/** The path with a slash at its end, and the query. */
function folderOf(target: string): string {
  const [path = '', ...query] = target.split('?')
  // Two slashes at its begin would name a host.
  return `/${path.replace(/^\/+/, '')}/${query.length > 0 ? `?${query.join('?')}` : ''}`
}

function passed(
  headers: IncomingHttpHeaders,
  method: WebRequest['method'],
  without: RegExp | undefined,
): IncomingHttpHeaders {
  const isPassed = (name: string) => PASSED.test(name) || (method === 'OPTIONS' && OF_PREFLIGHT.test(name))
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isPassed(name) && !without?.test(name)))
}

function redirect({ status, location }: Redirect): Reply {
  return { status, headers: { location, 'content-length': 0 } }
}

function discard({ body }: Reply): void {
  if (typeof body === 'object' && 'download' in body) body.download.discard()
}

function wrongPort(): Reply {
  const { status, type, body } = WRONG_PORT
  return { status, headers: { 'content-type': type }, body }
}

/** An error as a page, as S3 has it. */
function page(error: S3Error, id: string): Reply {
  const { status, code, message, fields } = error
  const title = `${status} ${code}`
  const items = Object.entries({ Code: code, Message: message, ...fields, RequestId: id, HostId: id })
  const list = items.map(([name, value]) => `<li>${escapeXml(name)}: ${escapeXml(String(value))}</li>`).join('\n')
  const body = `<html>\n<head><title>${title}</title></head>\n<body>\n<h1>${title}</h1>\n<ul>\n${list}\n</ul>\n<hr/>\n</body>\n</html>\n`
  const headers = { 'content-type': 'text/html; charset=utf-8', ...error.headers }
  return withError({ status, headers, body }, error)
}

/** Longest message in a header, characters. */
const MAX_MESSAGE = 1024

/** Adds the headers in which websites state an error, whatever document comes with it. */
function withError(reply: Reply, { code, message, fields }: S3Error): Reply {
  const { Key: key } = fields
  return {
    ...reply,
    headers: {
      ...reply.headers,
      'x-amz-error-code': code,
      'x-amz-error-message': unicodeHeader(message.slice(0, MAX_MESSAGE)),
      'x-amz-error-detail-key': typeof key === 'string' ? unicodeHeader(key) : undefined,
    },
  }
}
