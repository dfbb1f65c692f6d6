import type { Logger } from '../log.js'
import type { RequestHead } from '../request/s3-request.js'
import type { Reply } from '../response/reply.js'
import type { BucketSettings } from '../state/bucket-settings.js'
import { CORS_VARY, corsAnswer } from './cors-answer.js'

/** Adds to the answer of a request, be it good or an error, what a browser needs in order to show it to a page of another origin. Never rejects. */
export type WithCors = (head: RequestHead, reply: Reply) => Promise<Reply>

export function withCors(settings: BucketSettings, log: Logger): WithCors {
  return async (head, reply) => {
    const { origin } = head.headers
    if (origin === undefined || head.bucket === undefined || head.method === 'OPTIONS') return reply
    try {
      const rules = await settings.get(head.bucket, 'cors')
      if (!rules) return reply
      const headers = corsAnswer(rules, { origin, method: head.method }) ?? { vary: CORS_VARY }
      return { ...reply, headers: { ...reply.headers, ...headers } }
    } catch (err) {
      log.warn({ err, bucket: head.bucket }, 'an answer goes without CORS headers: the rules could not be read')
      return reply
    }
  }
}
