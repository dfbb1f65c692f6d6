import { randomUUID } from 'node:crypto'
import t from 'tap'
import { type DealProxy, owner, startDealProxy, startEmbedded } from '../../support/plugins/deal-proxy.js'
import { keptLog } from '../../support/server/kept-log.js'
import { modes } from '../../support/server/modes.js'
import { signedCall } from '../../support/sign/signed-request.js'

const terms = { MinerId: 't01000', Price: '0.000005', DurationEpochs: 518_400 }
const offline = { MinerId: 't01000', MaxPrice: '0.00000001', DurationEpochs: 518_400 }
const SSE = { 'x-amz-server-side-encryption': 'AES256' }
const WARNING = 'x-dealgate-warning'

function send({ endpoint }: DealProxy, method: string, target: string, body?: object | string, headers = {}) {
  const token: Record<string, string> = method === 'POST' ? { 'x-amz-client-token': randomUUID() } : {}
  return signedCall(endpoint, owner, method, target, { body, headers: { ...token, ...headers } })
}

for (const mode of modes) {
  t.test(`${mode}: deals of objects that are not encrypted`, async (t) => {
    const { log, lines } = keptLog()
    const server = await startDealProxy(t, await startEmbedded(t, mode), { proxy: { log, accessLog: false } })
    await send(server, 'PUT', '/photos')
    await send(server, 'PUT', '/photos/plain', 'readable')
    await send(server, 'PUT', '/photos/secret', 'readable', SSE)
    const deal = (target: string, body: object = terms) => send(server, 'POST', `${target}?x-deal=&format=json`, body)
    const rule = async (PublicNetwork: string, more = {}) => {
      const set = await send(server, 'POST', '/photos?x-deal-config=', { PublicNetwork, ...more })
      t.equal(set.status, 200, set.body)
    }
    const quoted = async (target: string) =>
      JSON.parse((await send(server, 'POST', `${target}?x-deal-quote=&format=json`, terms)).body).Warnings as string[]
    const warns = (warnings: readonly string[]) => warnings.filter((text) => /is not encrypted/.test(text)).length
    const logOf = async (id: unknown) => (await send(server, 'GET', `/-/jobs/v1/${id}/log?format=json`)).body

    t.test('a warning, unless the bucket says something else', async (t) => {
      const plain = await deal('/photos/plain')
      t.equal(plain.status, 200, plain.body)
      t.match(plain.headers[WARNING], /The object plain is not encrypted: everyone who has its CID can read it/)
      t.match(await logOf(plain.headers['x-dealgate-job-id']), 'The object plain is not encrypted')
      t.equal(warns(await quoted('/photos/plain')), 1)
      const whole = await deal('/photos')
      t.match(whole.headers[WARNING], /The object plain is not encrypted/)
      t.equal(warns(await quoted('/photos')), 1)
      const secret = await deal('/photos/secret')
      t.equal(secret.status, 200, secret.body)
      t.equal(secret.headers[WARNING], undefined)
      t.equal(warns(await quoted('/photos/secret')), 0)
      t.notMatch(await logOf(secret.headers['x-dealgate-job-id']), 'is not encrypted')
    })

    // Gateways without client tokens make no deals of such keys.
    const skip = mode === 'legacy'
    t.test('a key that no header can hold as it is', { skip }, async (t) => {
      await rule('warn', { Terms: [terms] })
      const key = 'фото 📷\u0080'
      const cold = { 'x-amz-storage-class': 'GLACIER', 'x-dealgate-deal-mode': 'sync' }
      const stored = await send(server, 'PUT', `/photos/${key}`, 'readable', cold)
      const header = `The object ${encodeURIComponent(key).replace('%20', ' ')} is not encrypted`
      t.match([stored.status, stored.headers['x-dealgate-job-status']], [200, 'Complete'])
      t.match(stored.headers[WARNING], header)
      const again = await deal(`/photos/${key}`, { ...terms, Price: '0.000007' })
      t.equal(again.status, 200, again.body)
      t.match(again.headers[WARNING], header)
      await send(server, 'DELETE', `/photos/${key}`)
    })

    t.test('allowed', async (t) => {
      await rule('allow')
      const plain = await deal('/photos/plain', { ...terms, Price: '0.000006' })
      t.same([plain.status, plain.headers[WARNING]], [200, undefined])
      t.equal(warns(await quoted('/photos/plain')), 0)
    })

    t.test('refused by name', async (t) => {
      await send(server, 'PUT', '/photos/unsold', 'readable')
      const begun = await signedCall(server.endpoint, owner, 'POST', '/photos/parts?uploads=')
      const uploadId = encodeURIComponent(/<UploadId>(.*)<\/UploadId>/.exec(begun.body)?.[1] ?? '')
      const part = await send(server, 'PUT', `/photos/parts?partNumber=1&uploadId=${uploadId}`, 'readable')
      await rule('encrypted-only', { Terms: [terms], OfflineTerms: offline })
      for (const [target, body] of [
        ['/photos/unsold?x-deal=', terms],
        ['/photos?x-deal=', terms],
        ['/photos?x-deal-offline=', offline],
      ] as const) {
        const refused = await send(server, 'POST', `${target}&format=json`, body)
        t.equal(refused.status, 409, target)
        t.match(JSON.parse(refused.body), { Code: 'ObjectNotEncrypted', Details: { Key: 'unsold' } })
      }
      t.match((await quoted('/photos/unsold')).join(), /The deal would be refused/)
      const again = await deal('/photos/plain', { ...terms, Price: '0.000008' })
      t.match([again.status, again.headers[WARNING]], [200, /plain is not encrypted/], 'a deal has made it public')
      t.equal((await deal('/photos/secret', { ...terms, Price: '0.000006' })).status, 200)
      const glacier = { 'x-amz-storage-class': 'GLACIER', 'x-dealgate-deal-mode': 'sync' }
      for (const stored of [
        await send(server, 'PUT', '/photos/cold', 'readable', glacier),
        await send(server, 'PUT', '/photos/cold', undefined, { ...glacier, 'x-amz-copy-source': '/photos/unsold' }),
      ]) {
        t.match([stored.status, stored.headers['x-dealgate-job-status']], [200, 'Complete'], 'encrypted by itself')
        t.equal((await send(server, 'HEAD', '/photos/cold')).headers['x-amz-server-side-encryption'], 'AES256')
      }
      const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
      const done = await signedCall(server.endpoint, owner, 'POST', `/photos/parts?uploadId=${uploadId}`, {
        body: list,
      })
      t.equal(done.status, 200, done.body)
      const head = await send(server, 'HEAD', '/photos/parts')
      t.equal(head.headers['x-amz-server-side-encryption'], 'AES256', 'also what had begun before')
      t.equal((await send(server, 'GET', '/photos/parts')).body, 'readable')
    })

    t.test('a class', async (t) => {
      await rule('warn', { Terms: [terms], OfflineTerms: offline })
      for (const storageClass of ['GLACIER', 'DEEP_ARCHIVE'])
        for (const [key, more, warning] of [
          ['c', {}, /is not encrypted/],
          ['d', SSE, undefined],
        ] as const) {
          const headers = { 'x-amz-storage-class': storageClass, ...more }
          const copy = { ...headers, 'x-amz-copy-source': `/photos/${key}` }
          for (const answer of [
            await send(server, 'PUT', `/photos/${key}`, 'x', headers),
            await send(server, 'PUT', '/photos/parts', undefined, copy),
            // Before the parts are sent.
            await send(server, 'POST', '/photos/parts?uploads=', undefined, headers),
          ]) {
            t.equal(answer.status, 200, answer.body)
            t.match(answer.headers[WARNING], warning, `${storageClass} ${key}`)
          }
        }
      const none = { 'x-amz-storage-class': 'GLACIER', 'x-amz-server-side-encryption-bucket-key-enabled': 'false' }
      t.match((await send(server, 'PUT', '/photos/c', 'y', none)).headers[WARNING], /The object c is not encrypted/)
    })

    t.test('a lifecycle rule', async (t) => {
      const { store, plugins } = server.host.own
      const move = async (key: string) => {
        const { size, etag } = await store.head('photos', key)
        t.ok(await plugins.storageClasses.get('DEEP_ARCHIVE')?.transition({ bucket: 'photos', key, size, etag }), key)
      }
      for (const [key, headers] of [
        ['late', {}],
        ['late secret', SSE],
      ] as const) {
        await send(server, 'PUT', `/photos/${key}`, 'x', headers)
        await move(key)
        await send(server, 'DELETE', `/photos/${key}`)
      }
      t.match(
        lines.filter(({ msg }) => msg.includes('is not encrypted') && /The object late/.test(msg)),
        [{ key: 'late', msg: /The object late is not encrypted/ }],
      )
    })

    t.test('all of the bucket is encrypted, or empty', async (t) => {
      await send(server, 'PUT', '/photos/folder/', '')
      for (const key of ['plain', 'unsold', 'c']) await send(server, 'DELETE', `/photos/${key}`)
      await rule('encrypted-only')
      const whole = await deal('/photos', { ...terms, Price: '0.000007' })
      t.same([whole.status, whole.headers[WARNING]], [200, undefined], whole.body)
    })
  })
}
