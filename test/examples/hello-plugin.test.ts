import t from 'tap'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'

t.test('hello-plugin: a route of the service and a sub-resource of buckets', async (t) => {
  const server = await startDealgate(t, {
    data: t.testdir(),
    args: ['--plugin', './dist/examples/hello-plugin/index.js'],
  })
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const ask = (method: string, path: string, query: Record<string, string> = {}) =>
    signedRequest(server.endpoint, keys, { method, path, query })

  const greeting = await ask('GET', '/-/hello/v1/greeting')
  t.equal(greeting.status, 200)
  t.same(JSON.parse(greeting.body), { Text: `Hello, ${server.accessKey}!` })

  t.match(await ask('GET', '/photos', { 'x-hello': '' }), { status: 404, code: 'NoSuchBucket' })
  await ask('PUT', '/photos')
  const bucket = await ask('GET', '/photos', { 'x-hello': '' })
  t.equal(bucket.status, 200)
  t.match(bucket.body, '<Text>Hello, photos!</Text>', 'XML is what S3 speaks of buckets')
  t.same(JSON.parse((await ask('GET', '/photos', { 'x-hello': '', format: 'json' })).body), { Text: 'Hello, photos!' })

  const unsigned = await fetch(`${server.endpoint}/-/hello/v1/greeting`)
  t.equal(unsigned.status, 403)
})
