import type { Logger } from '../../common/log.js'
import type { RequestHead } from '../../request/s3-request.js'
import type { BucketSettings } from '../../state/records/bucket-settings.js'
import type { Reply, ReplyHeaders } from '../reply.js'
import { CORS_VARY, corsAnswer } from './cors-answer.js'

/** Adds CORS headers to a response, successful or not, for browsers whose page has another origin. Never rejects. */
export type WithCors = (head: RequestHead, reply: Reply) => Promise<Reply>

/** @param outputMetadata matches user metadata that plugins add to responses */
export function withCors(settings: BucketSettings, log: Logger, outputMetadata: (name: string) => boolean): WithCors {
  return async (head, reply) => {
    const { origin } = head.headers
    if (head.bucket === undefined || head.method === 'OPTIONS') return reply
    try {
      const rules = await settings.get(head.bucket, 'cors')
      if (!rules) return reply
      // A cached answer to an <img> must not serve a later fetch() from another origin.
      if (origin === undefined) return { ...reply, headers: { ...reply.headers, vary: CORS_VARY } }
      const answer = corsAnswer(rules, { origin, method: head.method })
      const headers = answer ? exposing(answer, ownHeaders(reply, outputMetadata)) : { vary: CORS_VARY }
      return { ...reply, headers: { ...reply.headers, ...headers } }
    } catch (err) {
      const facts = { err, requestId: head.id, bucket: head.bucket }
      log.warn(facts, 'sent a response without CORS headers: could not read the rules')
      return reply
    }
  }
}

/** Exposed with every response that has headers beyond S3. */
const COMMON = [
  'ETag',
  'x-amz-request-id',
  'x-amz-restore',
  'x-amz-storage-class',
  'x-dealgate-job-id',
  'x-dealgate-next-continuation-token',
]

/**
 * Lists the headers to expose even if no rule of the bucket names them, because they are no S3 headers: without them a
 * page could not use extensions. Empty for plain S3 responses.
 */
function ownHeaders({ headers }: Reply, outputMetadata: (name: string) => boolean): string[] {
  const own = Object.keys(headers).filter(
    (name) =>
      name === 'x-amz-restore' ||
      name.startsWith('x-dealgate-') ||
      (name.startsWith('x-amz-meta-') && outputMetadata(name.slice('x-amz-meta-'.length))),
  )
  return own.length === 0 ? [] : [...new Set([...COMMON, ...own])]
}

function exposing(answer: ReplyHeaders, names: readonly string[]): ReplyHeaders {
  if (names.length === 0) return answer
  const told = String(answer['access-control-expose-headers'] ?? '')
  const known = told.toLowerCase().split(/\s*,\s*/)
  const more = names.filter((name) => !known.includes(name.toLowerCase()))
  return { ...answer, 'access-control-expose-headers': [...(told ? [told] : []), ...more].join(', ') }
}
