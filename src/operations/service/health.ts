import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import type { Reply } from '../../response/reply.js'
import { withValidators } from '../common/validators.js'

const SOURCE = 'docs/operations.md#health'

/** Answers as long as the process does. */
export const live = defineOperation({
  name: 'Live',
  source: SOURCE,
  access: 'public',
  on: { method: 'GET', resource: 'service', path: '/-/live', head: true },
  async run() {
    return statusReply('live')
  },
})

/** Answers 200 only when the gateway takes our log-in, so that a load balancer sends requests elsewhere meanwhile. */
export const ready = defineOperation({
  name: 'Ready',
  source: SOURCE,
  access: 'public',
  on: { method: 'GET', resource: 'service', path: '/-/ready', head: true },
  async run(_request, context) {
    if (context.closing()) throw new S3Error('ServiceUnavailable', { message: 'The server is shutting down.' })
    await context.gateway.ready()
    return statusReply('ready')
  },
})

function statusReply(status: string): Reply {
  const body = `${JSON.stringify({ status })}\n`
  return withValidators({ status: 200, headers: { 'content-type': 'application/json' }, body })
}
