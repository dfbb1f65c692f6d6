import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { OWN_ID } from '../../../../src/auth/credentials.js'
import { contentMd5 } from '../../../support/content/content.js'
import { until } from '../../../support/waiting.js'
import { enabled, startLogging } from './scene.js'

const PARTITIONED = (source: string) =>
  `<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>${source}</PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>`

t.test('every field of a request', async (t) => {
  const scene = await startLogging(t)
  const { as, arrived } = scene
  t.equal(await scene.set('logging', enabled('logs', 'a/')), '200 ')
  const key = 'in/a key "with" é'
  const put = await as.owner({
    method: 'PUT',
    path: `/source/${key}`,
    body: 'abcdef',
    headers: { 'user-agent': 'two words' },
  })
  await as.owner({ method: 'GET', path: `/source/${key}`, headers: { range: 'bytes=1-2', referer: 'http://a/b' } })
  await as.owner({ method: 'HEAD', path: `/source/${key}` })
  await as.owner({ method: 'GET', path: '/source/absent' })
  await as.anonymous({ method: 'GET', path: '/source/secret' })
  await as.owner({
    method: 'PUT',
    path: '/source/copy',
    headers: { 'x-amz-copy-source': `/source/${encodeURIComponent(key)}` },
  })
  const body =
    '<Delete><Object><Key>copy</Key></Object><Object><Key>other</Key><VersionId>strange</VersionId></Object></Delete>'
  await as.owner({ method: 'POST', path: '/source', query: { delete: '' }, body, headers: contentMd5(body) })

  const operation = (name: string) => arrived(name, (fields) => fields[6] === name)
  const written = await operation('REST.PUT.OBJECT')
  t.equal(written.length, 26)
  t.same(written.slice(0, 2), [OWN_ID, 'source'])
  t.match(written[2], /^\[\d\d\/[A-Z][a-z]{2}\/20\d\d:\d\d:\d\d:\d\d \+0000\]$/)
  t.same(written.slice(3, 6), ['127.0.0.1', OWN_ID, put.headers['x-amz-request-id']])
  t.equal(written[7], `in/${encodeURIComponent(encodeURIComponent('a key "with" é'))}`)
  t.match(written[8], /^"PUT \/source\/in\/\S+ HTTP\/1.1"$/)
  t.same(written.slice(9, 13), ['200', '-', '-', '6'])
  t.ok(Number(written[14]) <= Number(written[13]), 'the turn-around is a part of the whole time')
  t.equal(written[16], '"two words"')
  t.same(written.slice(18, 22), [put.headers['x-amz-id-2'], 'SigV4', '-', 'AuthHeader'])
  t.equal(written[22], new URL(scene.endpoint).host)
  t.same(written.slice(23), ['-', '-', '-'])

  const read = await arrived('the read', (fields) => fields[6] === 'REST.GET.OBJECT' && fields[9] === '206')
  t.same(read.slice(9, 13), ['206', '-', '2', '6'], 'bytes sent, and those of the object')
  t.equal(read[15], '"http://a/b"')
  t.same((await operation('REST.HEAD.OBJECT')).slice(9, 13), ['200', '-', '-', '6'])
  await arrived('the absent key', (fields) => fields[7] === 'absent' && fields[10] === 'NoSuchKey')
  const refused = await arrived('the refusal', (fields) => fields[7] === 'secret')
  t.same([refused[4], refused[9], refused[10], refused[21]], ['-', '403', 'AccessDenied', '-'])
  t.equal((await operation('REST.COPY.OBJECT'))[7], 'copy')
  t.equal((await operation('REST.COPY.OBJECT_GET'))[7], written[7])
  await operation('REST.POST.MULTI_OBJECT_DELETE')
  const removed = await arrived('one removal', (fields) => fields[6] === 'BATCH.DELETE.OBJECT' && fields[7] === 'copy')
  t.equal(removed[9], '204')
  const kept = await arrived('the other', (fields) => fields[6] === 'BATCH.DELETE.OBJECT' && fields[7] === 'other')
  t.same([kept[9], kept[10], kept[17]], ['404', 'NoSuchVersion', 'strange'])
})

t.test('an access by an ACL says so', async (t) => {
  const scene = await startLogging(t, { objectOwnership: 'ObjectWriter' })
  const { as, arrived } = scene
  await as.owner({ method: 'PUT', path: '/source/open', body: 'x', headers: { 'x-amz-acl': 'public-read' } })
  t.equal(await scene.set('logging', enabled('logs', '')), '200 ')
  t.equal(await scene.status('foreigner', 'GET', '/source/open'), '200 ')
  t.equal(await scene.status('owner', 'GET', '/source/open'), '200 ')
  const byAcl = await arrived('the foreigner', (fields) => fields[4] !== OWN_ID && fields[7] === 'open')
  t.equal(byAcl[25], 'Yes')
  t.equal((await arrived('the owner', (fields) => fields[4] === OWN_ID && fields[7] === 'open'))[25], '-')
})

t.test('keys of both formats, and the owner of the objects', async (t) => {
  const scene = await startLogging(t)
  const { as, objects, arrived } = scene
  await as.owner({ method: 'PUT', path: '/second' })
  t.equal(await scene.set('logging', enabled('logs', 'simple-')), '200 ')
  t.equal(await scene.set('logging', enabled('logs', 'p/', PARTITIONED('EventTime')), 'second'), '200 ')
  await as.owner({ method: 'PUT', path: '/source/one', body: '1' })
  await as.owner({ method: 'PUT', path: '/second/two', body: '2' })
  await arrived('one', (fields) => fields[7] === 'one', 'simple-')
  await arrived('two', (fields) => fields[7] === 'two', 'p/')
  const keys = await objects()
  const day = new Date().toISOString().slice(0, 10)
  const simple = keys.find((key) => key.startsWith('simple-')) ?? ''
  t.match(simple, /^simple-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9A-F]{16}$/)
  const partitioned = keys.find((key) => key.startsWith('p/')) ?? ''
  t.match(partitioned, `p/${OWN_ID}/us-east-1/second/${day.replaceAll('-', '/')}/${day}-00-00-00-`)
  t.equal((await as.owner({ method: 'HEAD', path: `/logs/${simple}` })).headers['content-type'], 'text/plain')
})

t.test('a bucket that logs into itself does not log that', async (t) => {
  const scene = await startLogging(t)
  const { as, objects, arrived } = scene
  t.equal(await scene.set('logging', enabled('logs', 'own/'), 'logs'), '200 ')
  await as.owner({ method: 'PUT', path: '/logs/first', body: 'x' })
  await arrived('the write', (fields) => fields[7] === 'first', 'own/')
  await as.owner({ method: 'PUT', path: '/logs/last', body: 'x' })
  await arrived('the last write', (fields) => fields[7] === 'last', 'own/')
  const written = (await scene.lines('own/'))
    .filter((fields) => fields[6] === 'REST.PUT.OBJECT')
    .map((fields) => fields[7])
  t.same(written, ['first', 'last'])
  t.ok((await objects()).length >= 4)
})

t.test('a target that refuses, or is gone, delays nothing, and its logs arrive later', async (t) => {
  const scene = await startLogging(t)
  const { as, arrived, server } = scene
  await as.owner({ method: 'PUT', path: '/second' })
  await as.owner({ method: 'PUT', path: '/target' })
  t.equal(await scene.set('logging', enabled('target', 'a/')), '200 ')
  t.equal(await scene.set('logging', enabled('logs', 'b/'), 'second'), '200 ')
  t.equal((await as.owner({ method: 'DELETE', path: '/target' })).status, 204)
  await as.owner({ method: 'PUT', path: '/source/one', body: '1' })
  await as.owner({ method: 'PUT', path: '/second/two', body: '2' })
  await arrived('the other bucket', (fields) => fields[7] === 'two', 'b/')
  const failed = await until('the failure is logged', () =>
    server.lines.find(({ msg }) => msg === 'access logs cannot be delivered; will retry for a day'),
  )
  t.match(failed, { bucket: 'source', target: 'target', err: { code: 'NoSuchBucket' } })
  await as.owner({ method: 'PUT', path: '/target' })
  await until('the log has arrived', async () => {
    const texts = await Promise.all((await scene.objects('target')).map((key) => scene.textOf(key, 'target')))
    return texts.join('').includes(' one ')
  })
})

t.test('a restart loses nothing, and takes over what a killed process has left', async (t) => {
  const scene = await startLogging(t, { bucketLogIntervalMs: 3_600_000 })
  const { as, server, arrived, objects } = scene
  t.equal(await scene.set('logging', enabled('logs', 'a/')), '200 ')
  await as.owner({ method: 'PUT', path: '/source/before', body: '1' })
  await server.proxy.close()
  const folder = join(server.data, 'access-logs', 'server')
  const [left = ''] = await readdir(folder)
  t.match(left, /^source\+\d{4}-\d\d-\d\d\+[0-9a-f]{16}\.open$/)
  t.match(await readFile(join(folder, left), 'utf8'), / before /)
  await appendFile(join(folder, left), 'a part of a li')
  await writeFile(join(folder, 'strange.log'), 'no line')
  await server.restart()
  const fields = await arrived('the request before', (fields) => fields[7] === 'before')
  t.equal(fields[6], 'REST.PUT.OBJECT')
  t.equal((await objects()).length, 1)
  t.notMatch(await scene.textOf((await objects())[0] ?? ''), 'a part of')
  await until(
    'the files are gone',
    async () => (await readdir(folder)).filter((name) => name.endsWith('.log')).length === 0,
  )
})
