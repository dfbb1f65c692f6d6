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
  const call = { jsonrpc: '2.0', method: 'web.ListBuckets' }
  for (const id of ['1', '', 7, 1.5])
    t.match(await send({ ...call, id }), { jsonrpc: '2.0', id, result: { buckets: [] } })
  for (const params of [undefined, null, '', {}, [], [{}], [{}, 'more']])
    t.match(await send({ ...call, id: 1, params }), { result: { buckets: [] } })
  t.equal(await send(call), '', 'no id, no answer')
  t.equal(await send({ ...call, id: null }), '')
  t.equal(await send({ ...call, method: 'web.No' }), '')
  await send({ jsonrpc: '2.0', method: 'web.MakeBucket', params: [{ BUCKETNAME: 'told' }] })
  t.match(await send({ ...call, id: 1 }), { result: { buckets: [{ name: 'told' }] } }, 'but done')

  const failure = (code: number, message: string | RegExp, id: unknown = 1): object => ({
    jsonrpc: '2.0',
    error: { code, message, data: null },
    id,
  })
  for (const id of [true, [1], { a: 1 }]) {
    t.same(await send({ ...call, id }), {
      jsonrpc: '2.0',
      error: { code: -32600, message: 'id must be a string, a number or null', data: null },
      id: null,
    })
  }
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  const nested = [
    `{"jsonrpc":"2.0","method":"web.ListBuckets","id":${deep}}`,
    `{"jsonrpc":"2.0","method":"web.MakeBucket","id":1,"params":{"bucketName":${deep}}}`,
    deep,
  ]
  for (const body of nested) t.match(await send(body), failure(-32700, /nested more than 16 levels/, null))
  t.match(await send({ ...call, id: 1, params: 'a' }), failure(-32600, /params/))
  t.match(await send({ ...call, id: 1, params: ['a'] }), failure(-32600, /params/))
  const ill = { ...call, id: 1, method: 'web.MakeBucket', params: { bucketName: 5 } }
  t.match(await send(ill), failure(-32600, /bucketName/))
  t.match(await send({ ...call, id: 1, jsonrpc: '1.0' }), failure(-32600, 'jsonrpc must be 2.0'))
  t.match(await send({ ...call, id: 1, method: 'web.No' }), failure(-32000, `rpc: can't find method "web.No"`))
  t.match(await send({ ...call, id: 1, method: 'up.Login' }), failure(-32000, `rpc: can't find service "up.Login"`))
  const alone = 'rpc: service/method request ill-formed: "Login"'
  t.match(await send({ ...call, id: 1, method: 'Login' }), failure(-32000, alone))
  t.match(await send({ ...call, id: 1, method: 'web.login' }), failure(-32000, /find method/))
  for (const broken of ['{', '', '[]', '5', '"\xff']) t.match(await send(broken), failure(-32700, /./, null), broken)
  t.match(JSON.parse((await client.rpcRaw(Buffer.from([0x22, 0xff, 0x22]))).text), failure(-32700, /UTF-8/, null))

  for (const type of ['text/plain', '', 'application/jsonx']) {
    const refused = await client.rpcRaw('{}', { 'content-type': type })
    t.match(refused, { status: 415, text: `rpc: unrecognized Content-Type: ${type}` })
  }
  const typed = await client.rpcRaw(JSON.stringify({ ...call, id: 1 }), { 'content-type': 'application/json; x=y' })
  t.match(typed, { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } })
  t.equal((await client.rpcRaw(Buffer.alloc(1024 * 1024 + 1, ' '))).status, 400)
  const endless = await client.send('/gateway/webrpc', {
    method: 'POST',
    headers: { ...client.headers(), 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    body: Buffer.alloc(1024 * 1024 + 1, ' '),
  })
  t.equal(endless.status, 400, 'also when its length is not told')
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
  for (const [params, message] of [
    [change({ currentSecretKey: 'wrong-one' }), 'Current access key or secret key is incorrect'],
    [change({ currentAccessKey: 'wrong-one' }), 'Current access key or secret key is incorrect'],
    [change({ newAccessKey: 'ab' }), 'access key must be minimum 3 or more characters long'],
    [change({ newSecretKey: 'short' }), 'secret key must be minimum 8 or more characters long'],
    [change({ newAccessKey: 'a/b c' }), 'Invalid arguments specified'],
  ] as const)
    t.equal((await client.failure('SetAuth', params)).message, message)
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
  const dotted = ['a..b', 'a.-b', '1.2.3.4']
  for (const bucketName of ['ab', 'Upper', 'a_b', '-ab', 'ab-', ...dotted, 'x'.repeat(64), 'gateway', '', 'a/b'])
    t.match(await client.failure('MakeBucket', { bucketName }), {
      message: `Bucket Name ${bucketName} is invalid. Lowercase letters, period, hyphen, numerals are the only allowed characters and should be minimum 3 characters in length.`,
      data: { code: 'InvalidBucketName' },
    })
  const good = ['zzz', 'a.b.c', '1-2', 'x'.repeat(63), '1.2.3.4.5']
  for (const bucketName of good) await client.call('MakeBucket', { bucketName })
  const { buckets } = await client.call('ListBuckets')
  const names: string[] = buckets.map(({ name }: { name: string }) => name)
  t.same(names, [...good].sort(), 'by name')
  t.match(await client.failure('MakeBucket', { bucketName: 'zzz' }), {
    message: 'Your previous request to create the named bucket succeeded and you already own it.',
    data: { code: 'BucketAlreadyOwnedByYou' },
  })
  const missing = { message: 'The specified bucket missing does not exist.', data: { code: 'NoSuchBucket' } }
  for (const [method, more] of [
    ['DeleteBucket', {}],
    ['ListObjects', {}],
    ['ListAllBucketPolicies', {}],
    ['SetBucketPolicy', { policy: 'none' }],
    ['RemoveObject', { objects: ['x'] }],
  ] as const)
    t.match(await client.failure(method, { bucketName: 'missing', ...more }), missing, method)
  t.match(await client.put('missing', 'x', ''), { status: 404, text: 'The specified bucket does not exist' })
  t.match(await client.put('NO', 'x', ''), { status: 400, text: 'The specified bucket is not valid' })
  await client.call('SetBucketPolicy', { bucketName: 'zzz', prefix: '', policy: 'readonly' })
  const deletion = client.call('DeleteBucket', { bucketName: 'zzz' })
  const outcomes = await Promise.allSettled([client.put('zzz', 'late', 'x'), deletion])
  const deleted = outcomes[1].status === 'fulfilled'
  const stored = outcomes[0].status === 'fulfilled' && outcomes[0].value.status === 200
  t.not(deleted, stored, 'a bucket is not deleted under an upload that was acknowledged')
  if (deleted) {
    await client.call('MakeBucket', { bucketName: 'zzz' })
    t.same((await client.call('ListAllBucketPolicies', { bucketName: 'zzz' })).policies, [], 'its policies went')
  }
})

t.test('listing a level, a page, everything', async (t) => {
  const client = await startGateway(t)
  const bucketName = 'bucket'
  await client.call('MakeBucket', { bucketName })
  for (const key of ['a', 'a/1', 'a/2/x', 'b', 'c/', 'c/1', 'd//x', 'e-1', 'e-2', '\u{10000}', '\uffff'])
    await client.put(bucketName, key, 'x', { 'content-type': 'a/b' })
  const level = await client.call('ListObjects', { bucketName, prefix: '' })
  t.equal(level.writable, true)
  t.notOk('isTruncated' in level, 'nothing beyond the specification unless asked for')
  t.match(level.objects, [
    { name: 'a', size: 1, contentType: 'a/b', etag: '9dd4e461268c8034f5c8564e155c67a6', generation: /^[0-9a-f]{32}$/ },
    { name: 'a/', size: 0, contentType: '', isPrefix: true, lastModified: /^20/ },
    { name: 'b' },
    { name: 'c/', isPrefix: true },
    { name: 'd/' },
    { name: 'e-1' },
    { name: 'e-2' },
    { name: '\uffff' },
    { name: '\u{10000}' },
  ])
  const list = (params: object): Promise<string[]> => client.names(bucketName, params)
  t.same(await list({ prefix: 'a/' }), ['a/1', 'a/2/'])
  t.same(await list({ prefix: 'c/' }), ['c/', 'c/1'])
  t.same(await list({ prefix: 'd/' }), ['d//'])
  t.same(await list({ prefix: 'e' }), ['e-1', 'e-2'])
  t.same(await list({ prefix: 'e', delimiter: '-' }), ['e-'])
  t.same(await list({ prefix: 'zz' }), [])
  t.same(await list({ marker: 'b' }), ['c/', 'd/', 'e-1', 'e-2', '\uffff', '\u{10000}'])
  t.same(await list({ marker: 'c/' }), ['d/', 'e-1', 'e-2', '\uffff', '\u{10000}'], 'a prefix marker passes all below')
  t.same(await list({ marker: 'c/', delimiter: '' }), ['c/1', 'd//x', 'e-1', 'e-2', '\uffff', '\u{10000}'])
  const page = await client.call('ListObjects', { bucketName, prefix: '', maxKeys: 2 })
  t.match(page, { objects: [{ name: 'a' }, { name: 'a/' }], isTruncated: true, nextMarker: 'a/' })
  const last = await client.call('ListObjects', { bucketName, prefix: '', maxKeys: 2, marker: 'e-2' })
  t.equal(last.isTruncated, false)
  t.notOk('nextMarker' in last)
  for (const maxKeys of [0, 1001, -1, 1.5, '5'])
    t.equal((await client.failure('ListObjects', { bucketName, maxKeys })).code, -32600, `maxKeys ${maxKeys}`)
})
