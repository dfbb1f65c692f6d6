import t from 'tap'
import { defineOperation } from '../../src/plugins/forms/operation.js'
import { definePlugin } from '../../src/plugins/forms/plugin.js'
import { empty } from '../../src/response/reply.js'
import { startInProcess } from '../support/server/in-process.js'
import { send } from '../support/sign/send.js'

const noisy = definePlugin({
  name: 'noisy',
  create: () => ({
    operations: [
      defineOperation({
        name: 'MakeNoise',
        source: 'test',
        access: 'signed',
        action: 'noisy:MakeNoise',
        on: { method: 'GET', resource: 'bucket', query: ['x-noisy'] },
        async run(_, context) {
          context.log.info('noise')
          return empty()
        },
      }),
    ],
  }),
})

t.test('lines that an operation logs have the id of the request', async (t) => {
  const { endpoint, lines } = await startInProcess(t, 'full', { plugins: [noisy()] })
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  t.equal((await send(owner, { method: 'PUT', target: '/noise' })).status, 200)
  const { status, headers } = await send(owner, { method: 'GET', target: '/noise?x-noisy=' })
  t.equal(status, 200)
  t.match(
    lines.filter(({ msg }) => msg === 'noise'),
    [{ requestId: String(headers['x-amz-request-id']) }],
  )
})
