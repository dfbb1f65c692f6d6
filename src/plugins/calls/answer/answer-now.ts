import type { Resource, S3Request } from '../../../request/s3-request.js'
import type { Reply, ReplyHeaders } from '../../../response/reply.js'
import { withValidators } from '../../../response/validators.js'
import type { Context } from '../../../server/context.js'
import { formatOf, requireJson, wantsCsv } from '../codec/format.js'
import { invalidArgument } from '../codec/names.js'
import type { AnsweredCall, Document } from '../declare/call.js'
import type { Asked, PreparedCall } from '../declare/prepare.js'
import { rawOf } from '../declare/raw.js'
import { jobAddress } from '../declare/service-address.js'
import { csvReply, documentReply, versionHeader } from './document-reply.js'
import { expand, expansionsOf } from './expand.js'
import { pageRequest, takePage, tokenOf } from './paging.js'

type Call = AnsweredCall<Resource, Document, Document, Document>

/** Runs a call and answers with its result, or with one page of it. */
export async function answerNow(
  call: Call,
  { shape, root }: PreparedCall,
  { frame, body, query }: Asked,
  request: S3Request,
  context: Context,
): Promise<Reply> {
  const csv = call.csv && wantsCsv(request, call.csv.usual === true) ? call.csv.list : undefined
  const format = call.jsonOnly ? requireJson(request) : csv === undefined ? formatOf(request) : 'json'
  const binding = [request.plugin, call.name, request.bucket, request.key, request.params, query]
  if (frame.token !== undefined && call.pages === undefined) {
    throw invalidArgument('continuation-token', 'is not a parameter of this call, whose result has only one page')
  }
  const page = pageRequest(frame, binding)
  const expansions = expansionsOf(call, frame.expand, context)
  const result = await call.answer({ request, body, query, page }, context)
  const status = call.status?.(result) ?? 200
  if (frame.raw) return rawReply(result, request.plugin)
  const whole = call.pages === undefined ? result : await paged(result, call.pages)
  const document = await expand(call, expansions, whole, context)
  const headers = { ...versionHeader(request.plugin), ...jobHeaders(call, result, request) }
  const reply =
    csv === undefined
      ? documentReply({ format, root, plugin: request.plugin, shape }, document, headers, status)
      : csvReply(shape, csv, document, headers)
  // The document can also be read as an object of the virtual bucket.
  return request.resource === 'service' && request.method !== 'POST' && status === 200 ? withValidators(reply) : reply

  async function paged(whole: Document, name: string): Promise<Document> {
    const { items, next } = await takePage(whole[name], page)
    return {
      ...whole,
      [name]: items,
      IsTruncated: next !== undefined,
      ...(next !== undefined && { NextContinuationToken: tokenOf(next, binding) }),
    }
  }
}

function jobHeaders(call: Call, result: Document, request: S3Request): ReplyHeaders {
  const id = call.jobId?.(result)
  return id === undefined ? {} : { 'x-dealgate-job-id': id, location: jobAddress(request, id) }
}

function rawReply(result: Document, plugin: string): Reply {
  const raw = rawOf(result)
  if (raw === undefined) throw invalidArgument('raw', 'is not a parameter of this call, whose result holds everything')
  const text = typeof raw === 'string'
  return {
    status: 200,
    headers: {
      'content-type': text ? 'text/plain; charset=utf-8' : 'application/json',
      'cache-control': 'no-store',
      ...versionHeader(plugin),
    },
    body: text ? raw : `${JSON.stringify(raw)}\n`,
  }
}
