import t from 'tap'
import { defineOperation } from '../../src/plugins/forms/operation.js'
import { definePlugin } from '../../src/plugins/forms/plugin.js'
import { empty } from '../../src/response/reply.js'
import { Between } from '../support/gateway/between.js'
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

t.test('so have lines about the gateway', async (t) => {
  const { endpoint, lines, gateway, restart } = await startInProcess(t, 'legacy')
  const between = await Between.start(t, gateway)
  await restart({ gateway: { url: between.url, account: gateway.account } })
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  const request = async (method: string, target: string, body?: Buffer) => {
    const answer = await send(owner, { method, target, ...(body && { body }) })
    return { ...answer, id: String(answer.headers['x-amz-request-id']) }
  }
  const lineOf = (msg: string) => lines.filter((line) => line.msg === msg).at(-1)
  await request('PUT', '/bucket')

  between.fate = ({ body }) => (body.includes('web.ListBuckets') ? { status: 418, body: 'a teapot' } : 'pass')
  const strange = await request('GET', '/')
  t.equal(strange.status, 500)
  const failed = lineOf('request failed')
  t.equal(failed?.requestId, strange.id)
  t.match(JSON.stringify(failed), /unknown answer of the object gateway: 418 a teapot/)

  between.fate = ({ path }) => (path.includes('/download/') ? { status: 200, type: 'text/html', body: '<p>' } : 'pass')
  const put = await request('PUT', '/bucket/key', Buffer.from('x'))
  t.equal(put.status, 200)
  t.match(lineOf('could not confirm an upload yet: the object gateway does not show the object'), { requestId: put.id })
})
