import t from 'tap'
import { anyOrder } from '../../support/gateway/write-order.js'
import { ALL_FEATURES, RpcFailure, type Script, scriptedGateway as start, withFeatures } from './scripted-gateway.js'

const policiesOf = (policies: unknown): Script => ({ rpc: { 'web.ListAllBucketPolicies': () => ({ policies }) } })

t.test('the forms in which gateways tell their policies', async (t) => {
  const list = async (policies: unknown) => (await start(t, policiesOf(policies))).client().listPolicies('photos')
  t.same(await list(null), [])
  t.same(await list([]), [])
  const told = [
    { bucket: 'photos', prefix: 'z/', policy: 'writeonly' },
    { bucket: 'photos', prefix: 'a*', policy: 'readonly' },
    { bucket: 'photos', prefix: 'photos/b/*', policy: 'readwrite' },
    { bucket: 'photos', prefix: 'photos/*', policy: 'readonly' },
    { bucket: 'photos', prefix: 'photos/c', policy: 'readonly' },
    { bucket: 'photos', prefix: 'n', policy: 'none' },
  ]
  t.same(await list(told), [
    { prefix: '', policy: 'readonly' },
    { prefix: 'a', policy: 'readonly' },
    { prefix: 'b/', policy: 'readwrite' },
    { prefix: 'photos/c', policy: 'readonly' },
    { prefix: 'z/', policy: 'writeonly' },
  ])
  for (const odd of [{}, [{ prefix: 'a' }], [{ prefix: 'a', policy: 'custom' }], ['a']])
    await t.rejects(list(odd), { code: 'InternalError' }, JSON.stringify(odd))
})

t.test('calls without a log-in carry none, and their refusal says nothing of accounts', async (t) => {
  const refuse = () => {
    throw new RpcFailure('Authentication failed, check your access credentials')
  }
  const gateway = await start(t, {
    rpc: { ...withFeatures(...ALL_FEATURES), 'web.ListObjects': refuse, 'web.RemoveObject': refuse },
    rest: (_, response) =>
      response
        .writeHead(403, { 'content-type': 'text/plain' })
        .end('Authentication failed, check your access credentials'),
  })
  const nobody = gateway.anonymous()
  const denied = { code: 'AccessDenied', message: 'Access Denied' }
  await t.rejects(nobody.list('photos', { prefix: '', delimiter: '', after: '', limit: 1 }), denied)
  await t.rejects(nobody.bucketExists('photos'), denied)
  await t.rejects(nobody.remove('photos', 'a', anyOrder()), denied)
  await t.rejects(nobody.stat('photos', 'a'), denied)
  await t.rejects(nobody.download('photos', 'a'), denied)
  const attributes = { contentType: undefined, headers: {}, metadata: {} }
  const small = nobody.upload('photos', 'a', 1, attributes)
  await small.write(Buffer.from('x'))
  await t.rejects(small.commit(anyOrder()), denied)
  const large = nobody.upload('photos', 'a', 300_000, attributes)
  await t.rejects(async () => large.write(Buffer.alloc(100_000)), denied)
  large.abort()
  for (const call of [
    nobody.listBuckets(),
    nobody.makeBucket('abc'),
    nobody.deleteBucket('photos'),
    nobody.listPolicies('photos'),
    nobody.setPolicy('photos', '', 'readonly'),
    nobody.presignedGet('photos', 'a', 1, 'h'),
  ])
    await t.rejects(async () => void (await call), denied)
  const acts = gateway.calls.filter(({ method }) => method === 'web.ListObjects' || method === 'web.RemoveObject')
  t.ok(acts.length >= 3 && acts.every(({ headers }) => headers.authorization === undefined))
  t.ok(gateway.transfers.length >= 4)
  for (const { request } of gateway.transfers) {
    t.equal(request.headers.authorization, undefined)
    if (request.method !== 'PUT') t.match(request.url, /\?token=$/)
  }
})

t.test('an empty list for a caller who may write is no permission to list', async (t) => {
  const script = (policy: string): Script => ({
    rpc: {
      ...withFeatures(...ALL_FEATURES),
      'web.ListObjects': () => ({ objects: null, writable: true }),
      'web.ListAllBucketPolicies': () => ({ policies: [{ bucket: 'photos', prefix: '', policy }] }),
    },
  })
  const query = { prefix: '', delimiter: '', after: '', limit: 10 }
  await t.rejects((await start(t, script('writeonly'))).anonymous().list('photos', query), { code: 'AccessDenied' })
  t.same((await (await start(t, script('readwrite'))).anonymous().list('photos', query)).entries, [])
})

t.test('links', async (t) => {
  let url = ''
  const gateway = await start(t, { rpc: { 'web.PresignedGet': () => ({ url }) } })
  const link = (key: string) => gateway.client().presignedGet('photos', key, 60, 'share.test')
  url = 'share.test/photos/a%20b/%C3%A4%2B.txt?X-Cloud-Signature=1'
  t.equal(await link('a b/ä+.txt'), url)
  t.match(gateway.calls.at(-1)?.params, { bucket: 'photos', object: 'a b/ä+.txt', expiry: 60, host: 'share.test' })
  url = 'share.test/photos/a/b?X-Cloud-Signature=1'
  await t.rejects(link('a//b'), { code: 'InvalidRequest' }, 'the gateway has cleaned the path')
  await t.rejects(link('a/b/'), { code: 'InvalidRequest' })
  url = 'other.test/photos/a?X-Cloud-Signature=1'
  await t.rejects(link('a'), { code: 'InvalidRequest' })
})
