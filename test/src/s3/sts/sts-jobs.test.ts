import t from 'tap'
import { z } from 'zod'
import { defineCall } from '../../../../src/plugins/calls/define-call.js'
import { definePlugin } from '../../../../src/plugins/define-plugin.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { until } from '../../../support/waiting.js'
import { type Credentials, startSts } from './sts-scene.js'

const KIND = 'probe:Order'

/** A plugin whose job decides about more than its order: it does what the policy calls probe:More. */
function probe(gate: Promise<void>) {
  const order = defineCall({
    name: 'Order',
    source: 'docs/test.md',
    summary: 'Orders a job.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-probe' },
    body: z.strictObject({}),
    result: z.object({ Done: z.boolean() }),
    job: KIND,
    spends: false,
    order: async ({ request }) => ({ resource: `/${request.bucket}`, input: {} }),
  })
  const more = defineCall({
    name: 'More',
    source: 'docs/test.md',
    summary: 'Does more.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-probe-more' },
    result: z.object({}),
    answer: async () => ({}),
  })
  return definePlugin({
    name: 'probe',
    create: () => ({
      operations: [order, more],
      jobs: [
        {
          name: KIND,
          async run({ context, signal, job }) {
            await Promise.race([gate, new Promise((resolve) => signal.addEventListener('abort', resolve))])
            signal.throwIfAborted()
            await context.checks.requireAction('probe:More', { bucket: job.resource.slice(1) })
            return { Done: true }
          },
        },
      ],
    }),
  })()
}

t.test('a job may do no more than the session that ordered it, also after a restart', async (t) => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => (open = resolve))
  const scene = await startSts(t, { plugins: [probe(gate)] })
  const token = await scene.newUser('jobs@example.com')
  const all = await scene.assume(token)
  await scene.s3(all).createBucket({ Bucket: 'orders' })
  const Policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: KIND, Resource: '*' }],
  })
  const narrow = await scene.assume(token, { Policy })
  const order = async (keys: Credentials) => {
    const answer = await signedRequest(scene.endpoint, keys, {
      method: 'POST',
      path: '/orders',
      query: { 'x-probe': '', format: 'json' },
      headers: { 'content-type': 'application/json', 'x-amz-client-token': keys.accessKeyId, prefer: 'wait=0' },
      body: '{}',
    })
    t.equal(answer.status, 202, answer.body)
    return JSON.parse(answer.body).JobId as string
  }
  const [limited, free] = [await order(narrow), await order(all)]
  await scene.restart()
  open()
  const ended = (id: string) =>
    until(`the job ${id} has ended`, async () => {
      const { body } = await signedRequest(scene.endpoint, all, {
        method: 'GET',
        path: `/-/jobs/v1/${id}`,
        query: { format: 'json' },
      })
      const job = JSON.parse(body)
      return ['Complete', 'Failed'].includes(job.Status) && job
    })
  t.match(await ended(free), { Status: 'Complete' })
  t.match(await ended(limited), { Status: 'Failed', FailureReasons: [{ FailureCode: 'AccessDenied' }] })
})
