import { createHash } from 'node:crypto'
import type { Context } from '../context.js'
import { quoted } from '../operations/common/etags.js'
import type { Resource, S3Request } from '../request/s3-request.js'
import type { Reply } from '../response/reply.js'
import type { AnsweredCall, Document } from './call.js'
import { documentReply, versionHeader } from './document-reply.js'
import { formatOf } from './format.js'
import { invalidArgument } from './names.js'
import { pageRequest, takePage, tokenOf } from './paging.js'
import type { Asked, PreparedCall } from './prepare.js'
import { rawOf } from './raw.js'

type Call = AnsweredCall<Resource, Document, Document, Document>

/** Asks a call and answers what it says, or a page of it. */
export async function answerNow(
  call: Call,
  { shape, root }: PreparedCall,
  { frame, body, query }: Asked,
  request: S3Request,
  context: Context,
): Promise<Reply> {
  const format = formatOf(request)
  const binding = [request.plugin, call.name, request.bucket, request.key, request.params, query]
  if (frame.token !== undefined && call.pages === undefined) {
    throw invalidArgument('continuation-token', 'is no parameter of this call, whose answer has one page')
  }
  const page = pageRequest(frame, binding)
  const result = await call.answer({ request, body, query, page }, context)
  const status = call.status?.(result) ?? 200
  if (frame.raw) return rawReply(result, request.plugin)
  const document = call.pages === undefined ? result : await paged(result, call.pages)
  const form = { format, root, plugin: request.plugin, shape }
  return withValidators(request, documentReply(form, document, versionHeader(request.plugin), status))

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

/** What can be read as an object of the virtual bucket has what clients look for in an object. Made at this moment, it has changed at this moment. */
function withValidators(request: S3Request, reply: Reply): Reply {
  if (request.resource !== 'service' || request.method === 'POST' || reply.status !== 200) return reply
  const etag = quoted(createHash('md5').update(String(reply.body)).digest('hex'))
  return { ...reply, headers: { ...reply.headers, etag, 'last-modified': new Date().toUTCString() } }
}

function rawReply(result: Document, plugin: string): Reply {
  const raw = rawOf(result)
  if (raw === undefined) throw invalidArgument('raw', 'is no parameter of this call, which has nothing but its result')
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
