import { randomUUID } from 'node:crypto'
import type { S3Error } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { Job, NewJob } from '../../api/jobs.js'
import type { Document } from '../../api/operation.js'
import type { Reply, ReplyHeaders, Resource, S3Request } from '../../api/request.js'
import { withValidators } from '../../http/reply.js'
import { type AnsweredCall, changesOf, jobAddress, rawOf } from './call.js'
import { expand, expansionsOf, pageRequest, takePage, tokenOf } from './expand.js'
import { csvDocument, type Format, formatOf, requireJson, wantsCsv, xmlDocument } from './format.js'
import type { CallInput, PreparedCall } from './prepare.js'
import { invalidArgument, type Shape } from './shape.js'

type Call = AnsweredCall<Resource, Document, Document, Document>

/** Runs a call and answers with its result, or with one page of it. */
export async function answerNow(
  call: Call,
  { shape, root }: PreparedCall,
  { frame, body, query }: CallInput,
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
  const raw = frame.raw ? rawOf(result) : undefined
  if (raw !== undefined) return rawReply(raw, request.plugin)
  // A call that changes something has done it: the answer must not say that it was refused.
  if (frame.raw && request.method === 'GET') throw noRaw()
  const whole = call.pages === undefined ? result : await paged(result, call.pages)
  const document = await expand(call, expansions, whole, context)
  const headers = { ...versionHeader(request.plugin), ...jobHeaders(call, result, request) }
  const changed = changesOf(result)
  const made =
    csv === undefined
      ? documentReply({ format, root, plugin: request.plugin, shape }, document, headers, status)
      : await csvReply(shape, csv, document, headers)
  const reply = changed ? { ...made, changed } : made
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

/** The refusal of `?raw=1` by a call whose result has no answer of a service beside it. */
export function noRaw(): S3Error {
  return invalidArgument('raw', 'is not a parameter of this call, whose result holds everything')
}

function rawReply(raw: unknown, plugin: string): Reply {
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

interface DocumentForm {
  readonly format: Format
  readonly root: string
  readonly plugin: string
  readonly shape: Shape
}

/**
 * Serializes a document as JSON or XML, with the same names. The reply must not be cached, because it depends on the
 * caller.
 */
export function documentReply(form: DocumentForm, document: Document, headers: ReplyHeaders = {}, status = 200): Reply {
  const { format, root, plugin, shape } = form
  const body = format === 'json' ? `${JSON.stringify(document)}\n` : xmlDocument(root, plugin, shape, document)
  return { status, headers: { 'content-type': `application/${format}`, 'cache-control': 'no-store', ...headers }, body }
}

/** Serializes the items of a list as CSV. The reply must not be cached. */
async function csvReply(shape: Shape, list: string, document: Document, headers: ReplyHeaders = {}): Promise<Reply> {
  const { NextContinuationToken: next } = document
  return {
    status: 200,
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'cache-control': 'no-store',
      ...(typeof next === 'string' && { 'x-dealgate-next-continuation-token': next }),
      ...headers,
    },
    body: await csvDocument(shape, list, document),
  }
}

/** Header of every reply of a call, errors included. */
export function versionHeader(plugin: string): Readonly<Record<string, string>> {
  return { 'x-dealgate-api-version': `${plugin}/1` }
}

/** What is known of a content before it arrives: it tells requests apart. */
interface ContentFacts {
  /** Bytes. */
  readonly length: number | undefined
  /** Digests that the client declares, each with its name. */
  readonly digests: readonly string[]
}

const DIGEST = /^(?:content-md5|x-amz-checksum-.+)$/

export function factsOfContent({ body, headers }: Pick<S3Request, 'body' | 'headers'>): ContentFacts {
  const declared = Object.entries(headers).filter(([name]) => DIGEST.test(name))
  const sha256 = String(headers['x-amz-content-sha256'] ?? '')
  // Signed chunks have a word in its place.
  const signed = /^[0-9a-f]{64}$/i.test(sha256) ? [`sha256 ${sha256.toLowerCase()}`] : []
  return { length: body.length, digests: [...declared.map(([name, value]) => `${name} ${value}`).sort(), ...signed] }
}

/**
 * Creates a held job, lets the call pass its content on, and starts the job with the input that the call resolves with.
 * Returns the job of an earlier request with the same token or signature as it is. Rethrows errors of `pass`.
 */
export async function passContent(
  asked: NewJob<unknown>,
  { jobs }: Pick<Context, 'jobs'>,
  pass: (held: Job) => Promise<object> | undefined,
): Promise<Job> {
  // An earlier job has another mark.
  const mark = randomUUID()
  const held = await jobs.create({ ...asked, input: { ...(asked.input as object), mark }, held: true })
  if ((held.input as { readonly mark?: unknown }).mark !== mark) return held
  let input: object | undefined
  try {
    input = await pass(held)
  } catch (error) {
    await jobs.drop(held.id)
    throw error
  }
  try {
    await jobs.release(held.id, input)
  } catch (error) {
    await jobs.leave(held.id)
    throw error
  }
  return held
}
