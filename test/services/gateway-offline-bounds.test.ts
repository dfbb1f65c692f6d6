import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { openDatabase } from '../../src/services/database.js'
import { openAccountBook } from '../../src/services/gateway/accounts/account-book.js'
import { INDEX_FILE } from '../../src/services/gateway/store/schema.js'
import { startServices } from '../../src/services/index.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { listen } from '../support/server/listen.js'
import { until } from '../support/waiting.js'
import { DealClient } from './deal-client.js'
import { connectTo } from './gateway-client.js'
import { type OfflineScene, PRIVATE, PUBLIC, startOffline, untilActive } from './offline-scene.js'
import { logIn } from './two-accounts.js'

function folders({ data }: OfflineScene): string[] {
  return readdirSync(join(data, 'gateway', 'offline'))
}

t.test('no more is proposed than the client has measured', async (t) => {
  const scene = await startOffline(t)
  const { client } = scene
  await client.put('bucket', 'measured', bytes('measured', 50_000))
  const bound = { ...PRIVATE, Max_Piece_Bytes: '65536' }
  t.match(await scene.post({ ...bound, Max_Piece_Bytes: '64 KiB' }), { http: 400, message: /whole number/ })
  await client.put('bucket', 'added', bytes('added', 100_000))
  const refused = await scene.post(bound, 'token')
  t.match(refused, { http: 400, status: 'fail', message: /262144 bytes.*Max_Piece_Bytes is 65536/ })
  t.same(folders(scene), [])
  t.same((await client.history('bucket')).data.deals, [], 'nothing is proposed')
  const made = await scene.post({ ...bound, Max_Piece_Bytes: '262144' }, 'token')
  t.match(made, { http: 200 }, 'the same token may be used again')
  t.same((await scene.post(PRIVATE, 'token')).data, made.data, 'the bound is no part of what is asked')
})

t.test('heads of blocks count as well', async (t) => {
  const scene = await startOffline(t)
  for (let n = 0; n < 8; n++) await scene.client.put('bucket', `tiny-${n}`, 'x')
  t.match(await scene.post({ ...PRIVATE, Max_Piece_Bytes: '256' }), { http: 400, message: /Max_Piece_Bytes is 256/ })
  t.same(folders(scene), [], 'the packed CAR is removed')
  t.same((await scene.client.history('bucket')).data.deals, [])
})

t.test('the CARs of an account have a bound, until they are removed', async (t) => {
  const scene = await startOffline(t, { limits: { maxCarBytesOfAccount: 100_000 } })
  const { client } = scene
  await client.put('bucket', 'key', bytes('key', 60_000))
  const { uuid } = (await scene.post()).data.deals.data
  const refused = await scene.post({ ...PRIVATE, Task_Name: 'second' })
  t.match(refused, { http: 400, status: 'fail', message: /of this account.*100000 are the most/ })
  t.same(folders(scene), [uuid])
  await untilActive(scene, uuid)
  await until('the CAR is removed', () => folders(scene).length === 0)
  t.match(await scene.post({ ...PRIVATE, Task_Name: 'second' }), { http: 200 })
})

t.test('one account does not take all places of the desk', async (t) => {
  const waiting: (() => void)[] = []
  const platform = createServer((_, response) => waiting.push(() => response.writeHead(500).end('{}')))
  t.teardown(() => platform.close())
  const data = temporaryFolder(t)
  const services = await startServices({
    data,
    gateway: { host: '127.0.0.1', port: 0 },
    remotePlatform: { url: await listen(platform), apiKey: 'key', accessToken: 'secret' },
  })
  t.teardown(() => services.stop())
  const owner = new DealClient(await connectTo(services))
  await owner.gateway.call('MakeBucket', { bucketName: 'bucket' })
  await owner.put('bucket', 'key', 'content')
  let refused = 0
  const order = async (n: number) => {
    const answer = await owner.ask('offlinedeals/bucket', PRIVATE, { 'x-cloud-client-token': `order-${n}` })
    if (answer.message.startsWith('Too many')) refused++
    return answer
  }
  const orders = Array.from({ length: 16 }, (_, n) => order(n))
  await until('the account has all places that it gets', () => refused === 12)
  const book = openAccountBook(data)
  const other = new DealClient(await logIn(services.gateway.url, book.add('second')))
  book.close()
  await other.gateway.call('MakeBucket', { bucketName: 'theirs' })
  t.match(await other.ask('offlinedeals/theirs', PRIVATE), { http: 403 }, 'another has a place, but no platform user')
  await until('the platform is asked', () => waiting.length > 0)
  const over = Promise.all(orders)
  const answering = setInterval(() => {
    for (const answer of waiting.splice(0)) answer()
  }, 20)
  const answers = await over
  clearInterval(answering)
  t.same(answers.map(({ http }) => http).sort(), Array(16).fill(503))
})

t.test('an object larger than any piece of the provider is refused before it is packed', async (t) => {
  const first = await startOffline(t)
  await first.client.put('bucket', 'large', bytes('large', 50_000))
  await first.services.stop()
  // The largest piece of t01005 has 16 GiB, 127 of 128 bytes of which are data.
  const db = openDatabase(join(first.data, 'gateway', INDEX_FILE), '')
  db.exec(`UPDATE objects SET size = ${16 * 1024 ** 3}`)
  db.close()
  const { post, data } = await startOffline(t, {}, first.data)
  t.match(await post({ ...PRIVATE, Miner_Id: 't01005' }), {
    http: 400,
    message: /object large has 17179869184 bytes, and the largest piece .* has 17045651456/,
  })
  t.same(readdirSync(join(data, 'gateway', 'offline')), [])
})

t.test('a client can follow how its bucket is packed and the task posted', async (t) => {
  const posts: (() => void)[] = []
  const platform = createServer((request, response) => {
    if (request.url !== '/tasks') response.end('{"data":{"jwt":"a.b.c"}}')
    else posts.push(() => response.end('{"data":{"filename":"f.csv"},"message":"made"}'))
  })
  t.teardown(() => platform.close())
  const services = await startServices({
    data: temporaryFolder(t),
    gateway: { host: '127.0.0.1', port: 0, limits: { maxCarBytes: 30_000 } },
    remotePlatform: { url: await listen(platform), apiKey: 'key', accessToken: 'secret' },
  })
  t.teardown(() => services.stop())
  const client = new DealClient(await connectTo(services))
  await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
  for (const key of ['a', 'b', 'c']) await client.put('bucket', key, bytes(key, 20_000))
  t.match(await client.ask('dealprogress/token'), { http: 404 })
  const posted = client.ask('offlinedeals/bucket', PUBLIC, { 'x-cloud-client-token': 'token' })
  const whole = { bytesDone: 60_000, bytesTotal: 60_000, filesDone: 3, filesTotal: 3 }
  await until('the task is posted', () => posts.length === 1)
  t.match(await client.ask('dealprogress/token'), { http: 200, data: { phase: 'Sending', ...whole } })
  posts[0]?.()
  t.match(await posted, { http: 200 })
  t.match(await client.ask('dealprogress/token'), { data: { phase: 'Done', ...whole } })
})
