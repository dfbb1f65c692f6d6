import { join } from 'node:path'
import t from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { answerTo, open, send, sign, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
import { account, keysFor } from './account-commands.js'

// Quotas of accounts at the embedded gateway.

interface Quota {
  readonly quota: object
  readonly usage: { readonly bytes: number; readonly objects: number }
}

const endpointFor = ({ endpoint, region }: Endpoint, keys: { accessKeyId: string; secretAccessKey: string }) => ({
  ...{ endpoint, region },
  accessKey: keys.accessKeyId,
  secretKey: keys.secretAccessKey,
})

t.test('an account stores no more than its quota', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const server = await startDealgate(t, { data })
  const pair = await account(data, 'add', '--name', 'tenant')
  const { accessKey } = pair
  const tenant = endpointFor(server, await keysFor(data, pair))
  const ask = (method: string, target: string, body?: Buffer) => send(tenant, { method, target, ...(body && { body }) })
  const put = (key: string, bytes: number) => ask('PUT', `/tenant/${key}`, Buffer.alloc(bytes))
  const quota = (...args: string[]) => account<Quota>(data, 'quota', accessKey, ...args)
  const refused = { status: 403, code: 'QuotaExceeded', message: /quota of the account/ }

  t.same((await quota()).quota, { bytes: null, objects: null, uploads: null })
  t.equal((await ask('PUT', '/tenant')).status, 200)
  await quota('--bytes', '100000')
  t.same(await quota('--objects', '4'), {
    accessKey,
    quota: { bytes: 100_000, objects: 4, uploads: null },
    usage: { bytes: 0, objects: 0 },
  })

  const files = await Promise.all(Array.from({ length: 6 }, (_, i) => put(`file-${i}`, 40_000)))
  t.same(files.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403], 'concurrent writers')
  t.match(
    files.find(({ status }) => status === 403),
    refused,
  )
  t.same((await quota()).usage, { bytes: 80_000, objects: 2 })
  const [first] = files.flatMap(({ status }, i) => (status === 200 ? [`file-${i}`] : []))
  t.equal((await put(first ?? '', 40_000)).status, 200, 'the same size again')
  t.match(await put(first ?? '', 70_000), refused, 'a larger one')
  t.equal((await ask('GET', `/tenant/${first}`)).body.length, 40_000, 'the former object stays')

  const target = '/tenant/large'
  const { headers } = sign(tenant, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  const large = open(tenant, 'PUT', target, { ...headers, 'content-length': '5000000' })
  const answer = answerTo(large)
  large.end(Buffer.alloc(5_000_000))
  t.match(await answer, refused)

  const small = await Promise.all(Array.from({ length: 6 }, (_, i) => put(`small-${i}`, 10)))
  t.same(small.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403], 'objects')
  t.equal((await ask('DELETE', `/tenant/${first}`)).status, 204)
  t.equal((await put('one-more', 10)).status, 200)

  await t.test('also after kill -9', async (t) => {
    const before = (await quota()).usage
    const writes = Array.from({ length: 4 }, (_, i) => put(`small-${i}`, 5_000).catch(() => undefined))
    await server.kill9()
    await Promise.all(writes)
    await server.start()
    const again = { ...tenant, endpoint: server.endpoint }
    const listed = await send(again, { method: 'GET', target: '/tenant?list-type=2' })
    const sizes = [...String(listed.body).matchAll(/<Size>(\d+)</g)].map(([, size]) => Number(size))
    const { usage } = await quota()
    t.same(usage, { objects: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }, 'counted right')
    t.ok(usage.objects <= 4 && before.objects <= 4)
  })

  t.same((await quota('--bytes', 'none', '--objects', 'none')).quota, { bytes: null, objects: null, uploads: null })
  const owner = { ...tenant, endpoint: server.endpoint }
  t.equal((await send(owner, { method: 'PUT', target: '/tenant/a', body: Buffer.alloc(200_000) })).status, 200)
  const wrong = await runCli(['account', 'quota', accessKey, '--bytes', 'many', '--data', data])
  t.match(wrong, { code: 2, stderr: /--bytes must be a whole number, or none/ })
})

t.test('an account has no more multipart uploads under way than its quota', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const server = await startDealgate(t, { data })
  const pair = await account(data, 'add')
  const quota = (uploads: string) => account(data, 'quota', pair.accessKey, '--uploads', uploads)
  const one = endpointFor(server, await keysFor(data, pair))
  const two = endpointFor(server, await keysFor(data, pair))
  const create = (who: Endpoint, n = 0) => send(who, { method: 'POST', target: `/tenant/key-${n}?uploads=` })
  t.equal((await send(one, { method: 'PUT', target: '/tenant' })).status, 200)
  const before = await create(one)
  await quota('3')

  const begun = await Promise.all(Array.from({ length: 6 }, (_, n) => create(n % 2 === 0 ? one : two, n)))
  t.same(begun.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403], 'of all key pairs together')
  t.match(
    begun.find(({ status }) => status === 403),
    { code: 'QuotaExceeded', message: /3 multipart uploads. It has 3 under way/ },
  )
  t.equal((await send(server, { method: 'PUT', target: '/owner' })).status, 200)
  t.equal((await send(server, { method: 'POST', target: '/owner/key?uploads=' })).status, 200, 'another account')

  const id = /<UploadId>([^<]+)</.exec(String(before.body))?.[1]
  t.equal((await send(one, { method: 'DELETE', target: `/tenant/key-0?uploadId=${id}` })).status, 204)
  t.equal((await create(two)).status, 200, 'one has ended')
  t.equal((await create(two)).status, 403)
  t.match(await runCli(['account', 'quota', pair.accessKey, '--uploads', 'none', '--data', data]), {
    stdout: /^uploads\s+-\s+none$/m,
  })
  t.equal((await create(two)).status, 200)
  await quota('4')
  t.match(await create(two), { message: /It has 4 under way/ }, 'also those that were begun without a quota')
})
