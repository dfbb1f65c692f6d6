import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { postgres, redis } from './servers.js'
import { type OneOfSeveral, startSeveral } from './several-proxies.js'

// Multipart uploads of which requests come to another proxy than the one that stages the parts.

const part = (etag: string, number = 1) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`

async function begin(proxy: OneOfSeveral, key: string): Promise<string> {
  const begun = await proxy.send('POST', `/shared/${key}`, { query: { uploads: '' } })
  return /<UploadId>(.*?)<\/UploadId>/.exec(begun.body)?.[1] ?? ''
}

for (const kind of [redis, postgres]) {
  for (const mode of ['full', 'legacy'] as const) {
    t.test(`${kind.name}, ${mode}`, { skip: kind.skip }, async (t) => {
      const server = await kind.start()
      t.teardown(() => server.stop())
      const several = await startSeveral(t, server.url, mode)
      const one = await several.start('one')
      const two = await several.start('two')
      await one.send('PUT', '/shared')
      await one.send('PUT', '/shared/source', { body: 'copied' })

      await t.test('the other proxy refuses parts and keeps those that were acknowledged', async (t) => {
        const uploadId = await begin(one, 'k')
        const first = await one.send('PUT', '/shared/k', { query: { uploadId, partNumber: '1' }, body: 'first' })
        t.equal(first.status, 200)
        const etag = String(first.headers.etag)
        const complete = {
          query: { uploadId },
          body: `<CompleteMultipartUpload>${part(etag)}</CompleteMultipartUpload>`,
        }
        const refusals = [
          await two.send('PUT', '/shared/k', { query: { uploadId, partNumber: '1' }, body: 'other' }),
          await two.send('PUT', '/shared/k', { query: { uploadId, partNumber: '2' }, body: 'second' }),
          await two.send('PUT', '/shared/k', {
            query: { uploadId, partNumber: '1' },
            headers: { 'x-amz-copy-source': '/shared/source' },
          }),
          await two.send('POST', '/shared/k', complete),
        ]
        for (const refused of refusals) {
          t.match(refused, { status: 503, code: 'ServiceUnavailable', headers: { connection: 'close' } })
          t.match(refused.body, /kept by another server.*must reach the same server/)
        }
        const listed = await two.send('GET', '/shared/k', { query: { uploadId } })
        t.match(listed, { status: 200, body: /<PartNumber>1<\/PartNumber>/ })
        t.notMatch(listed.body, /<PartNumber>2<\/PartNumber>/)
        await two.state.uploads.sweep(Date.now() + 60_000)
        t.equal((await one.send('POST', '/shared/k', complete)).status, 200)
        t.equal((await two.send('GET', '/shared/k')).body, 'first')
        t.match(await two.send('POST', '/shared/k', complete), { status: 200 }, 'either one repeats the answer')
      })

      await t.test('an upload that is aborted at the other proxy has ended at both', async (t) => {
        const uploadId = await begin(one, 'gone')
        await one.send('PUT', '/shared/gone', { query: { uploadId, partNumber: '1' }, body: 'x' })
        t.equal((await two.send('DELETE', '/shared/gone', { query: { uploadId } })).status, 204)
        for (const proxy of [one, two]) {
          const refused = await proxy.send('PUT', '/shared/gone', { query: { uploadId, partNumber: '2' }, body: 'x' })
          t.match(refused, { status: 404, code: 'NoSuchUpload' })
        }
        t.ok(existsSync(join(one.data, 'staging', uploadId)), 'its bytes wait for the sweep of the proxy that has them')
      })

      await t.test('a proxy goes on with its uploads after a restart', async (t) => {
        const uploadId = await begin(two, 'again')
        const { headers } = await two.send('PUT', '/shared/again', { query: { uploadId, partNumber: '1' }, body: 'x' })
        await two.close()
        const again = await several.start('two')
        const body = `<CompleteMultipartUpload>${part(String(headers.etag))}</CompleteMultipartUpload>`
        t.match(await again.send('POST', '/shared/again', { query: { uploadId }, body }), { status: 200 })
      })
    })
  }
}
