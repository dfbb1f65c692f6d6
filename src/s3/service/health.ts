import { z } from 'zod'
import { S3Error } from '../../common/errors/s3-error.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import { problemOf, requireReady } from './ready.js'

/** The health calls are public, because load balancers have no key pair. */
const shared = {
  source: 'docs/operations.md#health',
  access: 'public',
  action: 'none',
  ownRules: true,
  presignable: true,
} as const

/** Answers as long as the process does. */
export const live = defineCall({
  ...shared,
  name: 'Live',
  summary: 'Answers as long as the process does.',
  on: { method: 'GET', resource: 'service', path: '/-/live' },
  result: z.object({ status: z.literal('live') }),
  answer: async () => ({ status: 'live' as const }),
})

/**
 * Answers 200 only if the gateway accepts the log-in and the store of records is readable, so that a load balancer can
 * route requests elsewhere otherwise.
 */
export const ready = defineCall({
  ...shared,
  name: 'Ready',
  summary:
    'Answers 200 while the gateway accepts the log-in, the store of records answers, and the data folder can be written and has room, else 503.',
  on: { method: 'GET', resource: 'service', path: '/-/ready' },
  result: z.object({
    status: z.literal('ready'),
    problem: z.string().optional().describe('Reason why some requests are refused, although most are served.'),
  }),
  async answer(_, context) {
    if (context.server.closing()) throw new S3Error('ServiceUnavailable', { message: 'The server is shutting down.' })
    await requireReady(context)
    const problem = await problemOf(context)
    return { status: 'ready' as const, ...(problem !== undefined && { problem }) }
  },
})
