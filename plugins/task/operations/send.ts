import { actorOf } from 'dealgate/paid'
import {
  type Context,
  PageOf,
  type PageRequest,
  type S3Request,
  type ServiceAnswer,
  type ServiceCall,
} from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import type { TaskOptions } from '../options.js'
import { platform, type Refusals } from '../platform.js'
import { acting, type Need, TOKEN } from '../sign-in.js'

export interface SendOptions extends Partial<Refusals> {
  readonly need: Need | 'none'
  /** False for a request that must not be sent twice unseen; default true. */
  readonly mayRepeat?: boolean
}

/**
 * Sends a request of a client to the platform as the account that it acts with; resolves with an answer that reports
 * success. Throws S3Error.
 */
export function send(
  deps: TaskDeps,
  context: Pick<Context, 'caller'>,
  request: Pick<S3Request, 'headers' | 'signal'>,
  call: Omit<ServiceCall, 'token' | 'signal'>,
  { need, mayRepeat, ...refusals }: SendOptions,
): Promise<ServiceAnswer> {
  const run = async (token: string | undefined) => {
    const answer = await deps.client.send({ ...call, token, signal: request.signal })
    platform.successOf(answer, refusals)
    return answer
  }
  return platform.forClient(
    async () => (need === 'none' ? run(undefined) : acting(deps, actorOf(context, request, TOKEN), need, run)),
    mayRepeat,
  )
}

export const SOURCE = 'docs/task-plugin.md'

/** The platform's own names of a page, beside those of the frame. */
export const pageQuery = {
  limit: z.number().int().min(1).max(1000).optional().describe('Most records of a page, as the platform names it.'),
  offset: z
    .number()
    .int()
    .min(0)
    .max(1_000_000_000)
    .optional()
    .describe('Where the first page begins, as the platform counts it.'),
}

interface Wanted {
  readonly page: PageRequest
  readonly query: { readonly limit?: number | undefined; readonly offset?: number | undefined }
}

/** A page as the platform is asked for it. */
export interface Bounds {
  readonly limit: number
  readonly offset: number
}

/**
 * Gets the requested page of a list that the platform pages by `limit` and `offset`. A page may be shorter than the
 * client's `max-items`.
 * @param fetchPage `total` is the length of the whole list, if the platform states it
 */
export async function platformPage<Found extends { readonly items: readonly unknown[]; readonly total?: number }>(
  { offsets, pageSize }: Pick<TaskOptions, 'offsets' | 'pageSize'>,
  { page, query }: Wanted,
  fetchPage: (bounds: Bounds) => Promise<Found>,
): Promise<{ readonly page: PageOf<Found['items'][number]>; readonly found: Found }> {
  const [, from, size] = /^(\d{1,10})\.(\d{1,4})$/.exec(page.from ?? '') ?? []
  const limit = size === undefined ? (query.limit ?? Math.min(page.limit, pageSize)) : Number(size)
  const unit = offsets === 'pages' ? limit : 1
  const start = from === undefined ? (query.offset ?? 0) * unit : Number(from)
  const found = await fetchPage({ limit, offset: Math.floor(start / unit) })
  const end = start + found.items.length
  const more = found.total === undefined ? found.items.length >= limit : found.items.length > 0 && end < found.total
  return { page: new PageOf(found.items, more ? `${end}.${limit}` : undefined), found }
}
