import { statSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { Client, connectTo, start, startGateway } from './client.js'

t.test('the protocol', async (t) => {
  const client = await startGateway(t)
  const send = async (message: unknown): Promise<unknown> => {
    const { status, text } = await client.rpcRaw(typeof message === 'string' ? message : JSON.stringify(message))
    t.equal(status, 200)
    return text === '' ? '' : JSON.parse(text)
  }
  const call = { jsonrpc: '2.0', id: 1, method: 'web.ListBuckets' }
  for (const id of ['1', '', 7, 1.5])
    t.match(await send({ ...call, id }), { jsonrpc: '2.0', id, result: { buckets: [] } })
  for (const params of [undefined, null, '', {}, [], [{}], [{}, 'more']])
    t.match(await send({ ...call, params }), { result: { buckets: [] } })
  for (const id of [undefined, null]) t.equal(await send({ ...call, id }), '', 'no id, no answer')
  await send({ jsonrpc: '2.0', method: 'web.MakeBucket', params: [{ BUCKETNAME: 'told' }] })
  t.match(await send(call), { result: { buckets: [{ name: 'told' }] } }, 'but done')

  const failure = (code: number, message: string | RegExp, id: unknown = 1): object => ({
    jsonrpc: '2.0',
    error: { code, message, data: null },
    id,
  })
  for (const id of [true, [1], { a: 1 }])
    t.same(await send({ ...call, id }), failure(-32600, 'id must be a string, a number or null', null))
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  for (const body of [
    `{"jsonrpc":"2.0","method":"web.ListBuckets","id":${deep}}`,
    `{"jsonrpc":"2.0","method":"web.MakeBucket","id":1,"params":{"bucketName":${deep}}}`,
  ])
    t.match(await send(body), failure(-32700, /nested more than 16 levels/, null))
  for (const [wrong, code, message] of [
    [{ params: 'a' }, -32600, /params/],
    [{ params: ['a'] }, -32600, /params/],
    [{ method: 'web.MakeBucket', params: { bucketName: 5 } }, -32600, /bucketName/],
    [{ jsonrpc: '1.0' }, -32600, 'jsonrpc must be 2.0'],
    [{ method: 'web.No' }, -32000, `rpc: can't find method "web.No"`],
    [{ method: 'up.Login' }, -32000, `rpc: can't find service "up.Login"`],
    [{ method: 'Login' }, -32000, 'rpc: service/method request ill-formed: "Login"'],
    [{ method: 'web.login' }, -32000, /find method/],
  ] as const)
    t.match(await send({ ...call, ...wrong }), failure(code, message))
  for (const broken of ['{', '', '[]', '5']) t.match(await send(broken), failure(-32700, /./, null), broken)
  t.match(JSON.parse((await client.rpcRaw(Buffer.from([0x22, 0xff, 0x22]))).text), failure(-32700, /UTF-8/, null))

  for (const type of ['text/plain', '', 'application/jsonx'])
    t.equal((await client.rpcRaw('{}', { 'content-type': type })).status, 415, type)
  const typed = await client.rpcRaw(JSON.stringify(call), { 'content-type': 'application/json; x=y' })
  t.match(typed, { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } })
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }] as Record<string, string>[])
    t.equal((await client.rpcRaw(Buffer.alloc(1024 * 1024 + 1, ' '), headers)).status, 400, 'too large')
  t.match(await client.send('/gateway/webrpc'), { status: 405, headers: { allow: 'POST' } })
  t.equal((await client.send('/gateway/nothing')).status, 404)
  for (const [method, path] of [
    ['POST', 'offlinedeals/b'],
    ['GET', ''],
  ] as const) {
    const answer = await client.send(`/gateway/${path}`, { method })
    t.match([answer.status, JSON.parse(answer.text)], [501, { status: 'fail', message: /not implemented/ }], path)
  }
})

t.test('who may call', async (t) => {
  const client = await startGateway(t, { accessKey: 'owner', secretKey: 'very-secret' })
  const stranger = new Client(client.url, 'gateway')
  const ofBuckets = ['ListBuckets', 'MakeBucket', 'DeleteBucket', 'ListAllBucketPolicies', 'SetBucketPolicy']
  const others = ['CreateURLToken', 'PresignedGet', 'SetAuth', 'StorageInfo', 'ServerInfo', 'StateEpoch']
  for (const method of [...ofBuckets, ...others])
    t.match(await stranger.failure(method), { message: 'JWT token missing', data: { code: 'AccessDenied' } }, method)
  const login = decodeJwt(client.token as string)
  t.match(login, { accessKey: 'owner' })
  t.equal((login.exp as number) - (login.iat as number), 24 * 60 * 60)
  const { token } = await client.call('CreateURLToken')
  const url = decodeJwt(token)
  t.equal((url.exp as number) - (url.iat as number), 5 * 60)

  const own = client.token as string
  const [header, payload] = own.split('.')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  for (const forged of ['x', `${header}.${payload}.`, `${none}.${payload}.`, `${own.slice(0, -4)}AAAA`]) {
    stranger.token = forged
    t.match(await stranger.rpcRaw('{}'), { status: 401, text: /Authentication failed/ })
  }
  const basic = await client.send('/gateway/webrpc', { headers: { authorization: 'Basic b3duZXI6eA==' } })
  t.match(basic, { status: 400, text: /<Code>InvalidRequest<\/Code>/ })
})

t.test('changing the keys', async (t) => {
  const data = temporaryFolder(t)
  const services = await start(data)
  const client = await connectTo(services)
  const old = await services.gateway.credentials()
  const mode = (path: string): string => (statSync(join(data, path)).mode & 0o777).toString(8)
  t.same([mode('.'), mode('gateway'), mode('gateway/index.db')], ['700', '700', '600'])
  const change = (more: object, pair = old): object => {
    const { accessKey: currentAccessKey, secretKey: currentSecretKey } = pair
    return { currentAccessKey, currentSecretKey, newAccessKey: 'new-owner', newSecretKey: 'new-secret', ...more }
  }
  for (const [wrong, message] of [
    [{ currentSecretKey: 'wrong-one' }, 'Current access key or secret key is incorrect'],
    [{ currentAccessKey: 'wrong-one' }, 'Current access key or secret key is incorrect'],
    [{ newAccessKey: 'ab' }, 'access key must be minimum 3 or more characters long'],
    [{ newSecretKey: 'short' }, 'secret key must be minimum 8 or more characters long'],
    [{ newAccessKey: 'a/b c' }, 'Invalid arguments specified'],
  ] as const)
    t.equal((await client.failure('SetAuth', change(wrong))).message, message)
  const result = await client.call('SetAuth', change({}))
  t.match(result, { token: /./, uiVersion: /./, peerErrMsgs: null })
  t.equal((await client.rpcRaw('{}')).status, 401, 'the old token is dead')
  client.token = result.token
  await client.call('ListBuckets')
  const next = { accessKey: 'new-owner', secretKey: 'new-secret' }
  t.same(await services.gateway.credentials(), next)
  const former = await client.failure('Login', { username: old.accessKey, password: old.secretKey })
  t.match(former, { data: { code: 'AccessDenied' } })
  await services.stop()

  const again = await start(data)
  t.same(await again.gateway.credentials(), next, 'kept')
  await again.stop()
  const configured = { accessKey: 'configured', secretKey: 'configured-secret' }
  const third = await start(data, configured)
  t.same(await third.gateway.credentials(), configured, 'a newly configured pair counts')
  const owner = await connectTo(third)
  await owner.call('SetAuth', change({}, configured))
  await third.stop()
  const fourth = await start(data, configured)
  t.same(await fourth.gateway.credentials(), next, 'a rotated one stands until another is configured')
  await fourth.stop()
  for (const wrong of [{ accessKey: 'only' }, { secretKey: 'only-secret' }, { accessKey: 'ab', secretKey: 'x' }])
    await t.rejects(start(data, wrong), { name: 'RangeError' })
})

t.test('buckets', async (t) => {
  const client = await startGateway(t)
  for (const bucketName of ['ab', 'Upper', 'a_b', '-ab', 'ab-', 'a..b', '1.2.3.4', 'x'.repeat(64), 'gateway', ''])
    t.match(await client.failure('MakeBucket', { bucketName }), {
      message: new RegExp(`^Bucket Name ${bucketName} is invalid\\. Lowercase letters`),
      data: { code: 'InvalidBucketName' },
    })
  const good = ['zzz', 'a.b.c', '1-2', 'x'.repeat(63), '1.2.3.4.5']
  for (const bucketName of good) await client.call('MakeBucket', { bucketName })
  const { buckets } = await client.call('ListBuckets')
  t.same(
    buckets.map(({ name }: { name: string }) => name),
    [...good].sort(),
  )
  for (const [method, more] of [
    ['DeleteBucket', {}],
    ['ListObjects', {}],
    ['ListAllBucketPolicies', {}],
    ['SetBucketPolicy', { policy: 'none' }],
    ['RemoveObject', { objects: ['x'] }],
  ] as const)
    t.match(await client.failure(method, { bucketName: 'missing', ...more }), { data: { code: 'NoSuchBucket' } })
  t.match(await client.put('missing', 'x', ''), { status: 404, text: 'The specified bucket does not exist' })
  t.match(await client.put('NO', 'x', ''), { status: 400, text: 'The specified bucket is not valid' })
  await client.call('SetBucketPolicy', { bucketName: 'zzz', prefix: '', policy: 'readonly' })
  await client.call('DeleteBucket', { bucketName: 'zzz' })
  await client.call('MakeBucket', { bucketName: 'zzz' })
  t.same((await client.call('ListAllBucketPolicies', { bucketName: 'zzz' })).policies, [], 'its policies went')
})
