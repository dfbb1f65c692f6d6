import t, { type Test } from 'tap'
import { featuresOf } from '../../../services/gateway/legacy/quirks.js'
import { legacy, parseQuirks, type QuirkName } from '../../../services/index.js'
import { startInProcess } from '../../support/server/in-process.js'
import { Client, MOZILLA, startGateway, twoAccounts } from './client.js'

async function quirky(t: Test, ...quirks: QuirkName[]): Promise<Client> {
  const client = await startGateway(t, { quirks })
  await client.call('MakeBucket', { bucketName: 'bucket' })
  return client
}

/** Tests what a quirk of that name does to a gateway with an empty bucket. */
function quirk(name: QuirkName, body: (t: Test, client: Client) => Promise<void>): void {
  t.test(name, async (t) => body(t, await quirky(t, name)))
}

async function fill(client: Client, ...keys: string[]): Promise<void> {
  for (const key of keys) t.equal((await client.put('bucket', key, key.endsWith('/') ? '' : 'x')).status, 200)
}

const isConsolePage = { status: 200, headers: { 'content-type': /^text\/html/ } }

t.test('names', async (t) => {
  t.same(parseQuirks('none'), [])
  t.same(parseQuirks('legacy,erasure-folders'), [...legacy, 'erasure-folders'])
  t.same(parseQuirks('no-head, null-arrays'), ['no-head', 'null-arrays'])
  t.throws(() => parseQuirks('no-head,nonsense'), { name: 'RangeError', message: /"nonsense".*no-head/ })
})

t.test('a quirk withdraws the features that it contradicts', async (t) => {
  const ofVersions = ['versions', 'locks']
  const inexact = ['exact-remove', 'any-key', 'write-fences', ...ofVersions]
  const all = featuresOf(new Set(), new Set())
  for (const [name, ...withdrawn] of [
    ['unsorted-listing', 'paged-listing', ...ofVersions],
    ['no-head', 'object-head', ...ofVersions],
    ['random-etags', 'paged-listing', 'object-head', 'write-fences', ...ofVersions],
    ['folder-prefixes', 'paged-listing', ...inexact],
    ['strict-keys', 'any-key', ...ofVersions],
    ['history-only', 'deal-eviction'],
    ['moving-creation-date', 'fixed-creation-date'],
    ['untold-quotas', 'upload-quota', 'bucket-quota', 'bucket-numbers'],
    ['no-versions', ...ofVersions],
    ['short-url-tokens'],
  ] as [QuirkName, ...string[]][]) {
    const left = featuresOf(new Set([name]), new Set())
    t.same(new Set(all.filter((feature) => !left.includes(feature))), new Set(withdrawn), name)
  }
})

/** Calls of which a gateway without something of its own knows nothing. */
for (const [name, ...methods] of [
  ['untold-quotas', 'UploadQuota', 'BucketQuota', 'SetBucketQuota', 'BucketNumbers'],
  ['forgotten-stores', 'StateEpoch'],
  ['no-object-records', 'SetObjectRecord'],
  ['no-versions', 'SetBucketVersioning', 'ListObjectVersions', 'SetObjectLock'],
] as const)
  quirk(name, async (t, client) => {
    for (const method of methods)
      t.match(await client.failure(method), { message: `rpc: can't find method "web.${method}"` })
    await client.put('bucket', 'key', 'x', { 'x-cloud-record': 'r' })
    const { headers } = await client.head('bucket', 'key', { 'x-cloud-with-record': '1' })
    t.equal(headers['x-cloud-record'], name === 'no-object-records' ? undefined : 'r')
  })

quirk('one-level-listing', async (t, client) => {
  await fill(client, 'a/x', 'b', 'c')
  const asked = { marker: 'b', maxKeys: 1, delimiter: '' }
  t.same(await client.names('bucket', asked), ['a/', 'b', 'c'])
  t.notOk('isTruncated' in (await client.call('ListObjects', { bucketName: 'bucket', ...asked })))
})

t.test('no-text-params', async (t) => {
  const client = await startGateway(t, { quirks: ['no-text-params'] })
  const { text } = await client.rpcRaw('{"jsonrpc":"2.0","id":1,"method":"web.ListBuckets","params":""}')
  t.match(JSON.parse(text), { error: { code: -32600 } })
})

quirk('folder-prefixes', async (t, client) => {
  await fill(client, 'empty/', 'filled/', 'filled/x', 'n/e/')
  const level = await client.call('ListObjects', { bucketName: 'bucket', prefix: '' })
  t.match(
    level.objects,
    ['empty/', 'filled/', 'n/'].map((name) => ({ name, isPrefix: true })),
    'a prefix only',
  )
  t.same(await client.names('bucket', { prefix: 'empty/' }), [])
  t.equal((await client.get('bucket', 'empty/')).status, 200)
  t.equal((await client.get('bucket', 'filled/')).status, 404)
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['empty/', 'n/e/'] })
  t.same(await client.names('bucket', { delimiter: '' }), ['empty/', 'filled/', 'filled/x', 'n/e/'], 'left alone')
  await fill(client, 'n/e/x')
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['filled/x', 'n/e/x'] })
  t.same(await client.names('bucket', { delimiter: '' }), ['empty/'], 'gone with the last object beneath')
})

t.test('a removal with a guard is refused, and removes nothing, where the interface has no guards', async (t) => {
  for (const name of ['recursive-remove', 'folder-prefixes', 'erasure-folders'] as const) {
    const client = await quirky(t, name)
    await fill(client, 'kept')
    for (const guard of [{ alone: true }, { newerNoncurrent: 0 }, { noncurrentSince: '2026-01-01T00:00:00Z' }])
      await t.rejects(
        client.call('RemoveObject', { bucketName: 'bucket', objects: ['kept'], ...guard }),
        `${name}: ${JSON.stringify(guard)}`,
      )
    t.same(await client.names('bucket'), ['kept'])
  }
})

t.test('erasure-folders', async (t) => {
  const client = await quirky(t, 'erasure-folders', 'recursive-remove')
  await fill(client, 'empty/', 'filled/', 'filled/x')
  t.same(await client.names('bucket'), ['empty/', 'filled/'])
  t.same(await client.names('bucket', { prefix: 'filled/' }), ['filled/', 'filled/x'], 'at the head of its own level')
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['filled/x'] })
  t.same(await client.names('bucket', { prefix: 'filled/' }), ['filled/'], 'stays without what was beneath it')
  await fill(client, 'filled/x')
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['filled__XLDIR__'] })
  t.same(await client.names('bucket', { prefix: 'filled/' }), ['filled/x'], 'removed by its name on the drives')
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['empty/'] })
  t.same(await client.names('bucket'), ['filled/'], 'or with all beneath it')
})

quirk('root-name-listings', async (t, client) => {
  await fill(client, 'k1', 'k10', 'f/x', 'f/y')
  t.same(await client.names('bucket', { prefix: 'k1' }), ['k1/', 'k10/'])
  t.same(await client.names('bucket', { prefix: 'f' }), [])
  for (const [prefix, names] of [
    ['', ['f/', 'k1', 'k10']],
    ['f/', ['f/x', 'f/y']],
    ['f/x', ['f/x']],
  ] as const)
    t.same(await client.names('bucket', { prefix }), names, prefix)
})

quirk('fs-json-listings', async (t, client) => {
  const list = (prefix: string) => client.failure('ListObjects', { bucketName: 'bucket', prefix })
  t.same(await client.names('bucket', { prefix: 'none/' }), [])
  await fill(client, 'fs.json', 'a/x')
  t.match(await list('none/'), { message: 'Object exists on : bucket as directory none/' })
  t.same(await client.names('bucket', { prefix: 'a/' }), ['a/x'])
})

quirk('raw-disposition', async (t, client) => {
  await fill(client, 'bell\u0007', 'bell\u0007/x')
  await t.rejects(client.get('bucket', 'bell\u0007'), { code: 'HPE_INVALID_HEADER_TOKEN' })
  t.equal((await client.get('bucket', 'bell\u0007/x')).text, 'x')
  const target = `/gateway/download/bucket/bell%07?token=${client.token}&response-content-disposition=attachment`
  t.match(await client.send(target, { headers: client.headers() }), { status: 200, text: 'x' })
  const { host } = new URL(client.url)
  const { url } = await client.call('PresignedGet', { host, bucket: 'bucket', object: 'bell\u0007' })
  await t.rejects(client.send(url.slice(host.length)), { code: 'HPE_INVALID_HEADER_TOKEN' }, 'by a share link, too')
})

t.test('folder-clash-texts', async (t) => {
  const client = await quirky(t, 'folder-clash-texts', 'strict-keys')
  await fill(client, 'a', 'd/x')
  t.match(await client.put('bucket', 'a/b', 'x'), { status: 500, text: 'Parent is object bucket/a' })
  t.match(await client.put('bucket', 'd', 'x'), { status: 500, text: 'Prefix access is denied: bucket/d' })
})

quirk('unsorted-listing', async (t, client) => {
  await fill(client, 'a/x', 'b', 'c/x', 'd')
  t.same(await client.names('bucket'), ['b', 'd', 'a/', 'c/'])
  const keys = Array.from({ length: 1001 }, (_, index) => `k${1000 + index}`)
  for (let at = 0; at < keys.length; at += 100)
    await Promise.all(keys.slice(at, at + 100).map((key) => client.put('bucket', key, '')))
  await client.put('bucket', 'z/x', '')
  await client.put('bucket', 'zz', '')
  const names = await client.names('bucket')
  t.same(names.slice(997, 1001), ['k1995', 'a/', 'c/', 'k1996'], 'in every thousand')
  t.same(names.slice(-2), ['zz', 'z/'])
})

t.test('null-arrays', async (t) => {
  const client = await startGateway(t, { quirks: ['null-arrays'] })
  t.equal((await client.call('ListBuckets')).buckets, null)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  t.match(await client.call('ListObjects', { bucketName: 'bucket' }), { objects: null, writable: true })
  t.match(await client.call('ListObjects', { bucketName: 'bucket', maxKeys: 5 }), { objects: null })
  t.equal((await client.call('ListAllBucketPolicies', { bucketName: 'bucket' })).policies, null)
})

quirk('year-one-prefixes', async (t, client) => {
  await fill(client, 'a/x', 'b')
  const { objects } = await client.call('ListObjects', { bucketName: 'bucket' })
  t.same(objects[0], { name: 'a/', lastModified: '0001-01-01T00:00:00Z', size: 0, contentType: '' })
  t.same(Object.keys(objects[1]).sort(), ['contentType', 'lastModified', 'name', 'size'])
})

quirk('code-zero-errors', async (t, client) => {
  t.same(await client.failure('DeleteBucket', { bucketName: 'missing' }), {
    code: 0,
    message: 'The specified bucket missing does not exist.',
    data: null,
  })
  const keys = { currentAccessKey: 'a', currentSecretKey: 'b', newAccessKey: 'new', newSecretKey: 'new-secret' }
  t.same(await client.failure('SetAuth', keys), {
    code: -32000,
    message: 'Current access key or secret key is incorrect',
    data: null,
  })
  const missing = await client.get('bucket', 'missing')
  t.match(missing, { status: 404, text: 'The specified key does not exist.' })
  t.notOk('x-cloud-error-code' in missing.headers)
})

quirk('fs3-texts', async (t, client) => {
  const got = await client.get('bucket', 'none')
  t.equal(got.status, 404)
  const message = 'The specified object does not exist.'
  t.same(JSON.parse(got.body.toString()), { data: {}, status: 'fail', message })
  const denied = await client.failure('Login', { username: 'nobody-here', password: 'not-the-password' })
  t.equal(denied.message, 'Authentication failed, check your FS3 credentials')
})

quirk('missing-bucket-texts', async (t, client) => {
  for (const [method, message] of [
    ['DeleteBucket', 'The specified bucket missing does not exist.'],
    ['ListObjects', 'Bucket not found: missing'],
    ['ListAllBucketPolicies', 'The specified bucket does not exist'],
  ] as const)
    t.match(await client.failure(method, { bucketName: 'missing' }), { message })
})

quirk('ignore-range', async (t, client) => {
  const { headers } = await client.put('bucket', 'key', 'whole')
  for (const asked of [
    { range: 'bytes=0-0' },
    { 'if-none-match': headers.etag as string },
    { 'if-match': '"x"' },
  ] as Record<string, string>[]) {
    const answer = await client.get('bucket', 'key', asked)
    t.match(answer, { status: 200, text: 'whole', headers: { 'accept-ranges': 'bytes' } })
  }
})

quirk('no-head', async (t, client) => {
  await fill(client, 'key')
  for (const key of ['key', 'missing']) t.match(await client.head('bucket', key), isConsolePage)
})

quirk('no-upload-etag', async (t, client) => {
  const up = await client.put('bucket', 'key', 'x', { 'x-cloud-etag': 'mine-1' })
  t.same(Object.keys(up.headers).sort(), ['connection', 'content-length', 'date'])
  const { headers } = await client.get('bucket', 'key')
  t.equal(headers.etag, '"9dd4e461268c8034f5c8564e155c67a6"', 'one given is ignored')
  t.notOk(Object.keys(headers).some((name) => name.startsWith('x-cloud-')))
})

quirk('random-etags', async (t, client) => {
  const etags = new Set<unknown>()
  for (let turn = 0; turn < 3; turn++) {
    await fill(client, 'key')
    const { headers } = await client.get('bucket', 'key')
    t.match(headers.etag, /^"[0-9a-f]{32}-1"$/)
    t.equal((await client.get('bucket', 'key')).headers.etag, headers.etag)
    etags.add(headers.etag)
  }
  t.equal(etags.size, 3)
})

quirk('forced-disposition', async (t, client) => {
  await client.put('bucket', 'a/na"me', 'x', { 'content-disposition': 'inline', 'cache-control': 'public' })
  t.match((await client.get('bucket', 'a/na"me')).headers, {
    'content-disposition': 'attachment; filename="na\\"me"',
    'cache-control': 'no-store',
  })
  const override = `token=${client.token}&response-content-disposition=inline`
  const overridden = await client.send(`/gateway/download/bucket/a/na%22me?${override}`)
  t.equal(overridden.headers['content-disposition'], 'inline')
})

quirk('html-without-token', async (t, client) => {
  await fill(client, 'key')
  const target = '/gateway/download/bucket/key'
  t.match(await client.send(target, { headers: client.headers() }), isConsolePage)
  t.match(await client.send('/gateway/anything'), isConsolePage)
  t.match(await client.send('/gateway/upload/bucket/key', { headers: client.headers() }), isConsolePage, 'wrong method')
  t.match(await client.send(`${target}?token=`), { status: 403 })
  t.match(await client.send(`${target}?token=${client.token}`), { status: 200, text: 'x' })
})

quirk('require-mozilla', async (t, client) => {
  await fill(client, 'key')
  for (const headers of [{}, { 'user-agent': 'aws-cli' }] as Record<string, string>[]) {
    t.match(await client.send('/gateway/webrpc', { method: 'POST', headers }), { status: 403, text: /AccessDenied/ })
    const refused = await client.send(`/gateway/download/bucket/key?token=${client.token}`, { headers })
    t.match(refused, { status: 403, text: /<Code>AllAccessDisabled<\/Code>/ })
  }
  t.equal((await client.get('bucket', 'key', { 'user-agent': MOZILLA })).status, 200)
})

quirk('recursive-remove', async (t, client) => {
  const keys = ['a', 'd/', 'd/1', 'd/e/2', 'dd', 'z']
  const remove = async (...objects: string[]): Promise<string[]> => {
    await fill(client, ...keys)
    await client.call('RemoveObject', { bucketName: 'bucket', objects })
    return client.names('bucket', { delimiter: '' })
  }
  t.same(await remove('d/'), ['a', 'dd', 'z'], 'all beneath a prefix')
  t.same(await remove('a', 'd/', 'z'), ['dd', 'z'], 'a prefix ends the list')
  t.same(await remove('a', 'missing', 'z'), ['d/', 'd/1', 'd/e/2', 'dd', 'z'], 'so does a missing key')
  t.same(await remove(''), [], 'the empty name is the whole bucket')
})

quirk('short-url-tokens', async (t, client) => {
  const { token } = await client.call('CreateURLToken')
  const { exp, iat } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
  t.equal(exp - iat, 60)
})

t.test('telling-log-ins', async (t) => {
  const { url } = await startGateway(t, { quirks: ['telling-log-ins'], accessKey: 'owner', secretKey: 'very-secret' })
  for (const [username, password, message] of [
    ['other', 'very-secret', 'The access key ID you provided does not exist in our records'],
    ['owner', 'very-wrong', 'Authentication failed, check your access credentials'],
    ['ow', 'very-secret', 'access key must be minimum 3 or more characters long'],
    ['owner', 'short', 'secret key must be minimum 8 or more characters long'],
  ])
    t.match(await new Client(url, 'gateway').failure('Login', { username, password }), { message })
})

quirk('expired-401', async (t, client) => {
  client.token = 'stale'
  for (const target of ['/gateway/webrpc', '/gateway/upload/bucket/key', '/gateway/nothing', '/bucket/key'])
    t.match(await client.send(target, { headers: client.headers() }), { status: 401, text: '' }, target)
})

quirk('strict-keys', async (t, client) => {
  const put = (key: string, body = 'x') => client.put('bucket', key, body)
  const noSuchKey = { status: 404, text: 'The specified key does not exist.' }
  for (const key of ['a/../b', '..', 'a/./b', './a'])
    t.match(await put(key), { status: 400, text: /<Code>XMinioInvalidResourceName<\/Code>/ }, key)
  for (const key of ['/a', 'a//b', 'a\\b', `a/${'x'.repeat(256)}`, 'folder/']) t.match(await put(key), noSuchKey, key)
  for (const key of [`a/${'x'.repeat(255)}`, 'a..b', '.hidden']) t.equal((await put(key)).status, 200, key)

  await put('file')
  t.equal((await put('file/below')).status, 400, 'beneath an object')
  t.equal((await put('file/', '')).status, 400)
  await put('dir/file')
  const isDirectory = { status: 409, text: 'Object name already exists as a directory.' }
  t.match(await put('dir'), isDirectory)
  t.equal((await put('dir/file')).status, 200, 'again')
  t.match(await client.get('bucket', 'dir'), noSuchKey)

  t.equal((await put('empty/', '')).status, 200, 'a directory object')
  t.match(await put('empty'), isDirectory)
  await put('filled/', '')
  await put('filled/x')
  const level = await client.call('ListObjects', { bucketName: 'bucket', prefix: '' })
  const isPrefix = (name: string) => level.objects.find((object: { name: string }) => object.name === name).isPrefix
  t.same([isPrefix('empty/'), isPrefix('filled/')], [undefined, true], 'one with something in it is a prefix')
  t.same(await client.names('bucket', { prefix: 'filled/' }), ['filled/x'], 'and is not in itself')
  t.same(await client.names('bucket', { prefix: 'empty/' }), [])
  await put('upper/', '')
  await put('upper/a/b/', '')
  await put('upper/a/b/x')
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['filled/x', 'upper/a/b/x'] })
  t.same(await client.names('bucket'), ['.hidden', 'a..b', 'a/', 'dir/', 'empty/', 'file'], 'folders go with the last')
  t.same(await client.names('bucket', { prefix: '/' }), [])
  t.match(await client.failure('ListObjects', { bucketName: 'bucket', prefix: 'a//b' }), {
    message: 'Object name invalid: bucket#a//b',
  })
  const { url } = await client.call('PresignedGet', { host: 'h', bucket: 'bucket', object: 'a//b/' })
  t.match(url, /^h\/bucket\/a\/b\?/, 'paths in links are cleaned')
})

quirk('small-metadata', async (t, client) => {
  const name = 'x-cloud-meta-a'
  t.equal((await client.put('bucket', 'key', '', { [name]: 'x'.repeat(2048 - name.length) })).status, 200)
  const refused = {
    status: 400,
    headers: { 'content-type': 'application/xml' },
    text: /Your metadata headers exceed the maximum allowed metadata size\./,
  }
  t.match(await client.put('bucket', 'key', '', { [name]: 'x'.repeat(2049 - name.length) }), refused)
  t.match(await client.put('bucket', 'key', '', { 'x-other': 'x'.repeat(8192) }), refused)
})

quirk('query-metadata', async (t, client) => {
  const target = '/gateway/upload/bucket/key?x-cloud-meta-a=from%20query&content-type=a/b'
  await client.send(target, { method: 'PUT', headers: { ...client.headers(), 'content-length': 0 } })
  const { headers } = await client.get('bucket', 'key')
  t.match(headers, { 'x-cloud-meta-a': 'from query', 'content-type': 'a/b' })
})

quirk('moving-creation-date', async (t, client) => {
  const date = async (): Promise<string> => (await client.call('ListBuckets')).buckets[0].creationDate
  const remove = (...objects: string[]) => client.call('RemoveObject', { bucketName: 'bucket', objects })
  for (const [what, change, moves] of [
    ['a key at the root', () => fill(client, 'a'), true],
    ['the first key in a folder', () => fill(client, 'd/a'), true],
    ['a second one', () => fill(client, 'd/b'), false],
    ['one of two gone', () => remove('d/a'), false],
    ['the folder gone', () => remove('d/b'), true],
  ] as const) {
    const before = await date()
    await change()
    t.equal((await date()) > before, moves, what)
  }
})

t.test('taken-names', async (t) => {
  const { owner, other, keys } = await twoAccounts(t, { quirks: ['taken-names'] })
  await owner.call('MakeBucket', { bucketName: 'mine' })
  for (const client of [owner, other]) {
    const refused = await client.failure('MakeBucket', { bucketName: 'mine' })
    t.match(refused, { message: /you already own it/, data: { code: 'BucketAlreadyOwnedByYou' } })
  }
  t.same((await other.call('ListBuckets')).buckets, [], 'it is not named among its own')

  const identity = { accessKeyId: 's3-key', secretAccessKey: 's3-secret' }
  const gateway = { url: owner.url, account: keys }
  const { s3 } = await startInProcess(t, 'full', { gateway, identities: [identity] })
  await t.rejects(s3.createBucket({ Bucket: 'mine' }), { name: 'BucketAlreadyExists' }, 'the proxy knows better')
  for (const what of ['new', 'its own']) await t.resolves(s3.createBucket({ Bucket: 'own' }), what)
})

t.test('foreign-auth-failures', async (t) => {
  const { owner, other } = await twoAccounts(t, { quirks: ['foreign-auth-failures'] })
  await owner.call('MakeBucket', { bucketName: 'mine' })
  await owner.put('mine', 'private/key', 'x')
  await owner.call('SetBucketPolicy', { bucketName: 'mine', prefix: 'open/', policy: 'readwrite' })
  const refused = { status: 403, text: 'Authentication failed, check your access credentials' }
  t.match(await other.put('mine', 'private/key', 'y'), refused)
  t.match(await other.get('mine', 'private/key'), refused)
  t.match(await other.failure('ListObjects', { bucketName: 'mine', prefix: 'private/' }), {
    message: 'Do not have enough permissions to access this resource',
  })
  t.equal((await other.put('mine', 'open/key', 'z')).status, 200, 'what the bucket allows is not refused')
})

t.test('all of them', async (t) => {
  const client = await quirky(t, ...legacy)
  t.equal((await client.call('ServerInfo')).GatewayFeatures, undefined, 'a gateway that never heard of features')
  await fill(client, 'a', 'dir/b')
  t.same(await client.names('bucket'), ['a', 'dir/'])
  const { status, headers, text } = await client.get('bucket', 'dir/b', { range: 'bytes=5-' })
  t.match([status, text, headers['content-disposition']], [200, 'x', 'attachment; filename="b"'])
  t.same(await client.failure('MakeBucket', { bucketName: 'bucket' }), {
    code: 0,
    message: 'Your previous request to create the named bucket succeeded and you already own it.',
    data: null,
  })
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['dir/'] })
  t.same(await client.names('bucket'), ['a'])
})
