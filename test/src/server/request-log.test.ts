import t, { type Test } from 'tap'
import { empty } from '../../../src/http/reply.js'
import { defineOperation, definePlugin } from '../../../src/plugins/define-plugin.js'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { Between } from '../../support/gateway/between.js'
import { bodyOf } from '../../support/programs/sdk.js'
import { startInProcess } from '../../support/server/in-process.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

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

/** A server whose log a test reads, and requests to it. */
async function startLogged(t: Test, mode: 'full' | 'legacy', options: Partial<ProxyOptions> = {}) {
  const started = await startInProcess(t, mode, options)
  const owner = { endpoint: started.endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  return {
    ...started,
    async request(method: string, target: string, body?: Buffer, headers: Record<string, string> = {}) {
      const answer = await send(owner, { method, target, headers, ...(body && { body }) })
      return { ...answer, id: String(answer.headers['x-amz-request-id']) }
    },
    linesOf: (msg: string) => started.lines.filter((line) => line.msg === msg),
  }
}

t.test('lines that an operation logs have the id of the request', async (t) => {
  const { request, linesOf } = await startLogged(t, 'full', { plugins: [noisy()] })
  t.equal((await request('PUT', '/noise')).status, 200)
  const { status, id } = await request('GET', '/noise?x-noisy=')
  t.equal(status, 200)
  t.match(linesOf('noise'), [{ requestId: id }])
})

t.test('so have lines about the gateway', async (t) => {
  const { request, linesOf, gateway, restart } = await startLogged(t, 'legacy')
  const between = await Between.start(t, gateway)
  await restart({ gateway: { url: between.url, account: gateway.account } })
  await request('PUT', '/bucket')

  between.fate = ({ body }) => (body.includes('web.ListBuckets') ? { status: 418, body: 'a teapot' } : 'pass')
  const strange = await request('GET', '/')
  t.equal(strange.status, 500)
  const failed = linesOf('request failed')
  t.match(failed, [{ requestId: strange.id }])
  t.match(JSON.stringify(failed), /unknown answer of the object gateway: 418 a teapot/)

  between.fate = ({ path }) => (path.includes('/download/') ? { status: 200, type: 'text/html', body: '<p>' } : 'pass')
  const put = await request('PUT', '/bucket/key', Buffer.from('x'))
  t.equal(put.status, 200)
  const unconfirmed = linesOf('could not confirm an upload yet: the object gateway does not show the object')
  t.match(unconfirmed, [{ requestId: put.id }])
  const looking = 'the outcome of a write cannot be found yet'
  await until('the gateway is asked again', () => linesOf(looking).length > 0)
  t.match(linesOf(looking), [{ requestId: put.id }])
})

t.test('so has the line about a log-in that the gateway refuses, once for all requests', async (t) => {
  const { request, linesOf, gateway, restart } = await startLogged(t, 'full')
  await restart({ gateway: { url: gateway.url, account: { ...gateway.account, secretKey: 'another-secret' } } })
  const first = await request('GET', '/')
  t.equal(first.status, 503)
  await request('GET', '/')
  const refused = linesOf('the object gateway refuses the log-in; requests are answered 503 until it accepts it')
  t.match(refused, [{ requestId: first.id, reason: /\w/ }])
  t.same(linesOf('request failed'), [])
})
/** The fields of a line: those in quotes and brackets count as one. */
const FIELD = /\[[^\]]*\]|"[^"]*"|\S+/g

t.test('the access log in the format of S3', async (t) => {
  const lines: string[] = []
  const accessLine = (line: string) => void lines.push(line)
  const { s3, endpoint, request } = await startLogged(t, 'full', { accessLog: true, accessFormat: 's3', accessLine })
  const named = { Bucket: 'logged', Key: 'in/a key "with" é' }
  await request('PUT', '/logged')
  await s3.putObject({ ...named, Body: 'abcd' })
  await bodyOf(s3, named)
  await t.rejects(s3.headObject({ Bucket: 'logged', Key: 'absent' }))
  await request('GET', '/logged?versioning=', undefined, { 'user-agent': 'two words "x"' })
  await fetch(`${endpoint}/logged/x?X-Amz-Signature=topsecret&X-Amz-Credential=topsecret`)
  await until('all requests are logged', () => lines.length === 6)
  const fields = lines.map((line) => line.match(FIELD) ?? [])
  for (const each of fields) t.equal(each.length, 26, each.join(' '))
  const [create, put, get, head, versioning, refused] = fields
  t.match(create?.[2], /^\[\d\d\/[A-Z][a-z]{2}\/20\d\d:\d\d:\d\d:\d\d \+0000\]$/)
  t.same(create?.slice(6, 8), ['REST.PUT.BUCKET', '-'])
  t.same(put?.slice(1, 2), ['logged'])
  t.same(put?.slice(3, 5), ['127.0.0.1', 'test-key'])
  t.equal(put?.[6], 'REST.PUT.OBJECT')
  t.equal(put?.[7], `in/${encodeURIComponent(encodeURIComponent('a key "with" é'))}`)
  t.same(put?.slice(9, 13), ['200', '-', '-', '4'])
  t.same(get?.slice(9, 13), ['200', '-', '4', '4'])
  t.equal(put?.[19], 'SigV4')
  t.equal(put?.[21], 'AuthHeader')
  t.same(head?.slice(9, 11), ['404', 'NoSuchKey'])
  t.equal(versioning?.[6], 'REST.GET.VERSIONING')
  t.equal(versioning?.[16], '"two%20words%20%22x%22"'.replaceAll('%20', ' '))
  t.equal(refused?.[21], 'QueryString')
  t.notMatch(lines.join('\n'), /topsecret/)
})
