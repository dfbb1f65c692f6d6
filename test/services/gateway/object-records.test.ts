import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { rowsOf } from '../../support/content/rows.js'
import { type Answer, Client, connectTo, MOZILLA, start, startGateway } from './client.js'

// What the account that owns a bucket keeps with its objects, to which the gateway gives no meaning.

const bucketName = 'bucket'
const ASKED = { 'x-cloud-with-record': '1' }
const recordOf = ({ headers }: Answer) => headers['x-cloud-record']
const fenceOf = ({ headers }: Answer) => Number(headers['x-cloud-fence'])

async function startWithBucket(...given: Parameters<typeof startGateway>) {
  const client = await startGateway(...given)
  await client.call('MakeBucket', { bucketName })
  return client
}

t.test('a record comes and goes with its object, and only the owner who asks sees it', async (t) => {
  const client = await startWithBucket(t)
  const record = `{"a":"${'x'.repeat(8192 - 8)}"}`
  await client.call('SetBucketPolicy', { bucketName, prefix: '', policy: 'readwrite' })
  for (const body of ['in the index', Buffer.alloc(300_000, 'in a file')]) {
    const put = (headers = {}) => client.put(bucketName, 'k', body, headers)
    t.equal((await put({ 'x-cloud-record': record })).status, 200)
    for (const answer of [await client.head(bucketName, 'k', ASKED), await client.get(bucketName, 'k', ASKED)]) {
      t.equal(recordOf(answer), record)
      t.ok(fenceOf(answer) > 1e15)
    }
    const unasked = await client.head(bucketName, 'k')
    t.same([recordOf(unasked), unasked.headers['x-cloud-fence']], [undefined, undefined])
    const anyone = new Client(client.url, 'gateway')
    t.equal(recordOf(await anyone.head(bucketName, 'k', ASKED)), undefined)
    const { url } = await client.call('PresignedGet', { host: 'h', bucket: bucketName, object: 'k', expiry: 60 })
    const shared = await client.send(url.slice(1), { headers: { host: 'h', 'user-agent': MOZILLA, ...ASKED } })
    t.equal(shared.status, 200, shared.text.slice(0, 200))
    t.equal(recordOf(shared), undefined)

    t.equal((await put()).status, 200)
    t.equal(recordOf(await client.head(bucketName, 'k', ASKED)), undefined, 'a new object has its own or none')
    t.equal((await put({ 'x-cloud-record': record })).status, 200)
    const sent = anyone.put(bucketName, 'k', body, { 'x-cloud-record': 'of anyone' })
    t.equal((await sent).status, 200)
    t.equal(recordOf(await client.head(bucketName, 'k', ASKED)), undefined, 'ignored of anyone else')
  }
  for (const wrong of ['x'.repeat(8193), 'caf\u00e9', '', 'a\tb']) {
    const answer = await client.put(bucketName, 'wrong', 'x', { 'x-cloud-record': wrong })
    t.equal(answer.status, 400, JSON.stringify(wrong.slice(0, 10)))
    t.equal((await client.head(bucketName, 'wrong')).status, 404)
  }
})

t.test('a later record replaces it, in the order of the writes to the key', async (t) => {
  const client = await startWithBucket(t)
  const fence = Date.now() * 1000 + 60_000_000
  const order = (fence: number) => ({ 'x-cloud-fence': String(fence), 'x-cloud-write-id': `w${fence}` })
  const put = (at: number) => client.put(bucketName, 'k', 'x', { ...order(at), 'x-cloud-record': `put ${at}` })
  const generation = (await put(fence)).headers['x-cloud-generation']
  const set = (at: number, record: string, of = generation) =>
    client.call('SetObjectRecord', { bucketName, objectName: 'k', generation: of, fence: at, record }).then(
      () => 'ok',
      ({ data }) => data.code,
    )
  const present = async () => recordOf(await client.head(bucketName, 'k', ASKED))
  t.equal(await set(fence - 1, 'too late'), 'WriteOvertaken')
  t.equal(await present(), `put ${fence}`)
  t.equal(await set(fence + 5, 'a'), 'ok')
  t.equal(await set(fence + 5, 'a'), 'ok', 'the same call again')
  t.equal(await set(fence + 4, 'b'), 'WriteOvertaken')
  t.equal(await present(), 'a')
  t.equal(fenceOf(await client.head(bucketName, 'k', ASKED)), fence + 5)
  t.equal((await put(fence + 3)).status, 409, 'it counts as a write: an upload before it is too late')
  t.equal(await set(fence + 6, 'c', 'another'), 'OtherGeneration')
  t.equal(await set(fence + 6, ''), 'ok')
  t.equal(await present(), undefined)
  t.equal((await put(fence + 7)).status, 200)
  t.equal(await set(fence + 8, 'c'), 'OtherGeneration')
  t.equal(await present(), `put ${fence + 7}`)
  for (const [at, record] of [
    [0, 'x'],
    [1.5, 'x'],
    [fence + 9, 'x'.repeat(8193)],
    [fence + 9, '\n'],
  ] as const)
    t.not(await set(at, record), 'ok', `${at} ${record.slice(0, 5)}`)
  const last = (await put(2 ** 52)).headers['x-cloud-generation']
  t.equal(await set(fence + 10, 'd', last), 'ok', 'the highest fence keeps no other out')
})

t.test('records outlive a restart, and leave with their objects', async (t) => {
  const data = temporaryFolder(t)
  const first = await start(data)
  const client = await connectTo(first)
  await client.call('MakeBucket', { bucketName })
  for (const key of ['kept', 'removed', 'replaced'])
    t.equal((await client.put(bucketName, key, key, { 'x-cloud-record': key })).status, 200)
  await client.call('RemoveObject', { bucketName, objects: ['removed'] })
  await client.put(bucketName, 'replaced', 'again')
  await first.stop()

  const second = await start(data)
  t.equal(recordOf(await (await connectTo(second)).head(bucketName, 'kept', ASKED)), 'kept')
  await second.stop()
  const records = rowsOf(join(data, 'gateway', 'index.db'), 'SELECT record FROM object_records')
  t.match(records, [{ record: 'kept' }])
})

t.test('no-object-records', async (t) => {
  const client = await startWithBucket(t, { quirks: ['no-object-records'] })
  t.notOk((await client.call('ServerInfo')).GatewayFeatures.includes('object-records'))
  t.equal((await client.put(bucketName, 'k', 'x', { 'x-cloud-record': 'r' })).status, 200)
  const answer = await client.head(bucketName, 'k', ASKED)
  t.same([recordOf(answer), answer.headers['x-cloud-fence']], [undefined, undefined])
  t.match(await client.failure('SetObjectRecord', {}), { message: 'rpc: can\'t find method "web.SetObjectRecord"' })
})
