import type { Logger } from '../log.js'
import type { RequestHead } from '../request/s3-request.js'
import type { Reply, ReplyHeaders } from '../response/reply.js'
import type { BucketSettings } from '../state/bucket-settings.js'
import { CORS_VARY, corsAnswer } from './cors-answer.js'

/** Adds to the answer of a request, be it good or an error, what a browser needs in order to show it to a page of another origin. Never rejects. */
export type WithCors = (head: RequestHead, reply: Reply) => Promise<Reply>

/** @param outputMetadata names of user metadata that plugins tell */
export function withCors(settings: BucketSettings, log: Logger, outputMetadata: (name: string) => boolean): WithCors {
  return async (head, reply) => {
    const { origin } = head.headers
    if (origin === undefined || head.bucket === undefined || head.method === 'OPTIONS') return reply
    try {
      const rules = await settings.get(head.bucket, 'cors')
      if (!rules) return reply
      const answer = corsAnswer(rules, { origin, method: head.method })
      const headers = answer ? exposing(answer, ownHeaders(reply, outputMetadata)) : { vary: CORS_VARY }
      return { ...reply, headers: { ...reply.headers, ...headers } }
    } catch (err) {
      log.warn({ err, bucket: head.bucket }, 'an answer goes without CORS headers: the rules could not be read')
      return reply
    }
  }
}

/** What an answer that tells of more than S3 does is read with. */
const COMMON = ['ETag', 'x-amz-request-id', 'x-amz-restore', 'x-amz-storage-class', 'x-dealgate-job-id']

/** Headers of this answer that no rule of a bucket can be expected to name: without them a page could not use what goes beyond S3. None for S3's own answers. */
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
