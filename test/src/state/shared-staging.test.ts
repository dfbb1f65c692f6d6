import t from 'tap'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { MiB } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { until } from '../../support/waiting.js'
import { postgres, redis, type StateServerKind } from './servers.js'
import { begin, listOf, type OneOfSeveral, type Several, startSeveral } from './several-proxies.js'

// Multipart uploads of which each request comes to another proxy, because all of them reach the parts.

const HOUR_MS = 3_600_000

async function put(
  proxy: Pick<OneOfSeveral, 'send'>,
  key: string,
  uploadId: string,
  number: number,
  body: string | Buffer,
) {
  return proxy.send('PUT', `/shared/${key}`, { query: { uploadId, partNumber: String(number) }, body })
}

/** Names of the objects in all buckets of staged parts, as the gateway tells them. */
async function stagedObjects({ gateway }: Several): Promise<string[]> {
  const user = new GatewayUser(gateway)
  await user.login()
  const { buckets } = await user.call('web.ListBuckets', {})
  const names = ((buckets ?? []) as { name: string }[]).map(({ name }) => name)
  const found: string[] = []
  const walk = async (bucketName: string, prefix: string): Promise<void> => {
    const { objects } = await user.call('web.ListObjects', { bucketName, prefix })
    for (const { name } of (objects ?? []) as { name: string }[]) {
      if (name.endsWith('/') && name !== prefix) await walk(bucketName, name)
      else found.push(name)
    }
  }
  for (const name of names.filter((name) => name.startsWith('dealgate-staging-'))) await walk(name, '')
  return found
}

interface Case {
  readonly kind: StateServerKind
  readonly mode: 'full' | 'legacy'
  readonly place: 'gateway' | 'folder'
}

const cases: readonly Case[] = [
  { kind: redis, mode: 'full', place: 'gateway' },
  { kind: redis, mode: 'legacy', place: 'gateway' },
  { kind: postgres, mode: 'full', place: 'gateway' },
  { kind: postgres, mode: 'full', place: 'folder' },
]

for (const { kind, mode, place } of cases) {
  t.test(`${kind.name}, ${mode}, ${place}`, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const several = await startSeveral(t, server.url, mode)
    let ahead = 0
    const staging: ProxyOptions['staging'] = place === 'gateway' ? 'gateway' : { folder: temporaryFolder(t) }
    const options = { staging, now: () => Date.now() + ahead }
    const one = await several.start('one', options)
    const two = await several.start('two', options)
    const three = await several.start('three', options)
    await one.send('PUT', '/shared')
    await one.send('PUT', '/shared/source', { body: 'copied' })

    await t.test('each request of an upload may reach another proxy', async (t) => {
      const uploadId = await begin(one, 'k')
      const first = Buffer.alloc(5 * MiB, 'abc')
      t.equal((await put(three, 'k', uploadId, 1, 'replaced')).status, 200)
      const tags = [String((await put(two, 'k', uploadId, 1, first)).headers.etag)]
      const copied = await three.send('PUT', '/shared/k', {
        query: { uploadId, partNumber: '2' },
        headers: { 'x-amz-copy-source': '/shared/source' },
      })
      tags.push(/<ETag>(.*?)<\/ETag>/.exec(copied.body)?.[1] ?? '')
      const listed = await one.send('GET', '/shared/k', { query: { uploadId } })
      t.same(
        [...listed.body.matchAll(/<PartNumber>(\d)</g)].map(([, number]) => number),
        ['1', '2'],
      )
      const complete = { query: { uploadId }, body: listOf(tags) }
      t.match(await three.send('POST', '/shared/k', complete), { status: 200, body: /CompleteMultipartUploadResult/ })
      t.ok((await one.send('GET', '/shared/k')).body === `${first}copied`)
      t.match(await two.send('POST', '/shared/k', complete), { status: 200 }, 'each repeats the answer')
      await until('no part is left', async () => (await stagedObjects(several)).length === 0)
    })

    await t.test('an upload that is aborted at one has ended at all', async (t) => {
      const uploadId = await begin(one, 'gone')
      await put(two, 'gone', uploadId, 1, 'x')
      const writer = await three.state.uploads.openPart(uploadId, 2, 4)
      await writer.write(Buffer.from('late'))
      t.equal((await one.send('DELETE', '/shared/gone', { query: { uploadId } })).status, 204)
      const late = async () => {
        const file = await writer.finish()
        await three.state.uploads.putPart(uploadId, { partNumber: 2, size: 4, etag: 'e', lastModified: 0, file })
      }
      await t.rejects(late(), { code: 'NoSuchUpload' })
      await writer.discard()
      t.match(await put(two, 'gone', uploadId, 3, 'x'), { status: 404, code: 'NoSuchUpload' })
      await until('no part is left', async () => (await stagedObjects(several)).length === 0)
    })

    await t.test('a sweep removes what no record names, and no part of the others', async (t) => {
      const uploadId = await begin(one, 'swept')
      const { headers } = await put(two, 'swept', uploadId, 1, 'kept')
      // As after a kill between the bytes and the record.
      const stray = await two.state.uploads.openPart(uploadId, 2)
      await stray.write(Buffer.from('stray'))
      await stray.finish()
      ahead = 23 * HOUR_MS
      await three.state.uploads.sweep(0)
      const staged = await stagedObjects(several)
      if (place === 'gateway') t.equal(staged.length, 2, 'a part may be about to get its record')
      ahead = 25 * HOUR_MS
      await three.state.uploads.sweep(0)
      if (place === 'gateway')
        await until('the stray is removed', async () => (await stagedObjects(several)).length === 1)
      const body = listOf([String(headers.etag)])
      t.match(await three.send('POST', '/shared/swept', { query: { uploadId }, body }), { status: 200 })
      t.equal((await one.send('GET', '/shared/swept')).body, 'kept')
      ahead = 0
    })

    if (place === 'gateway') {
      await t.test('clients neither see nor change the bucket of the parts', async (t) => {
        const uploadId = await begin(one, 'hidden')
        await put(one, 'hidden', uploadId, 1, 'x')
        const user = new GatewayUser(several.gateway)
        await user.login()
        const { buckets } = (await user.call('web.ListBuckets', {})) as { buckets: { name: string }[] }
        const bucket = buckets.find(({ name }) => name.startsWith('dealgate-staging-'))?.name ?? ''
        t.not(bucket, '')
        t.notMatch((await one.send('GET', '/')).body, bucket)
        const [object = ''] = await stagedObjects(several)
        for (const [method, path] of [
          ['GET', `/${bucket}`],
          ['GET', `/${bucket}/${object}`],
          ['DELETE', `/${bucket}/${object}`],
          ['PUT', `/${bucket}/other`],
          ['DELETE', `/${bucket}`],
        ] as const)
          t.match(await one.send(method, path), { status: 404, code: 'NoSuchBucket' }, `${method} ${path}`)
        t.match(await one.send('PUT', `/${bucket}`), { status: 409, code: 'BucketAlreadyExists' })
        const copy = { headers: { 'x-amz-copy-source': `/${bucket}/${object}` } }
        t.match(await one.send('PUT', '/shared/stolen', copy), { status: 404 })
        t.same(await stagedObjects(several), [object])
        await one.send('DELETE', '/shared/hidden', { query: { uploadId } })
      })
    }

    await t.test('bytes of uploads that another proxy has ended count no more', async (t) => {
      const small = { maxStagedBytes: 100, maxStagedBytesPerClient: 100 }
      const four = await several.start('four', { ...options, limits: small })
      const uploadId = await begin(four, 'a')
      t.equal((await put(four, 'a', uploadId, 1, 'x'.repeat(90))).status, 200)
      t.match(await put(four, 'a', uploadId, 2, 'x'.repeat(90)), { code: 'SlowDown' })
      await one.send('DELETE', '/shared/a', { query: { uploadId } })
      const next = await begin(four, 'b')
      t.equal((await put(four, 'b', next, 1, 'x'.repeat(90))).status, 200)
      await one.send('DELETE', '/shared/b', { query: { uploadId: next } })
    })
  })
}
