import t, { type Test } from 'tap'
import { type Answer, Client, MOZILLA, startGateway } from './client.js'

// What the account that owns a bucket keeps with its objects, to which the gateway gives no meaning.

const bucketName = 'bucket'
const ASKED = { 'x-cloud-with-record': '1' }
const recordOf = ({ headers }: Answer) => headers['x-cloud-record']
const fenceOf = ({ headers }: Answer) => Number(headers['x-cloud-fence'])

async function startWithBucket(t: Test) {
  const client = await startGateway(t)
  await client.call('MakeBucket', { bucketName })
  return client
}

t.test('a record comes and goes with its object, and only the owner who asks sees it', async (t) => {
  const client = await startWithBucket(t)
  const anyone = new Client(client.url, 'gateway')
  const record = `{"a":"${'x'.repeat(8192 - 8)}"}`
  const head = (who: Client, headers = ASKED) => who.head(bucketName, 'k', headers)
  await client.call('SetBucketPolicy', { bucketName, prefix: '', policy: 'readwrite' })
  for (const body of ['in the index', Buffer.alloc(300_000, 'in a file')]) {
    const put = (who: Client, record?: string) =>
      who.put(bucketName, 'k', body, { ...(record !== undefined && { 'x-cloud-record': record }) })
    t.equal((await put(client, record)).status, 200)
    for (const answer of [await head(client), await client.get(bucketName, 'k', ASKED)]) {
      t.equal(recordOf(answer), record)
      t.ok(fenceOf(answer) > 1e15)
    }
    const unasked = await client.head(bucketName, 'k')
    t.same([recordOf(unasked), unasked.headers['x-cloud-fence']], [undefined, undefined])
    t.equal(recordOf(await head(anyone)), undefined)
    const { url } = await client.call('PresignedGet', { host: 'h', bucket: bucketName, object: 'k', expiry: 60 })
    const shared = await client.send(url.slice(1), { headers: { host: 'h', 'user-agent': MOZILLA, ...ASKED } })
    t.same([shared.status, recordOf(shared)], [200, undefined])

    await put(client)
    t.equal(recordOf(await head(client)), undefined, 'a new object has its own or none')
    await put(client, record)
    t.equal((await put(anyone, 'of anyone')).status, 200)
    t.equal(recordOf(await head(client)), undefined, 'ignored of anyone else')
  }
  for (const wrong of ['x'.repeat(8193), 'caf\u00e9', 'a\tb']) {
    const answer = await client.put(bucketName, 'wrong', 'x', { 'x-cloud-record': wrong })
    t.equal(answer.status, 400, JSON.stringify(wrong.slice(0, 10)))
  }
  t.equal((await client.head(bucketName, 'wrong')).status, 404)
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

t.test('a checksum comes and goes with its object, and everyone who may read the object sees it', async (t) => {
  const client = await startWithBucket(t)
  const anyone = new Client(client.url, 'gateway')
  await client.call('SetBucketPolicy', { bucketName, prefix: '', policy: 'readwrite' })
  const checksum = 'CRC64NVME 9Zg6rGYjqws='
  const stated = ({ headers }: Answer) => headers['x-cloud-checksum']
  const listed = async () => {
    const page = await client.call('ListObjects', { bucketName, prefix: '', maxKeys: 9, delimiter: '' })
    const level = await client.call('ListObjects', { bucketName, prefix: '' })
    t.same(level.objects, page.objects)
    return page.objects.map((entry: { checksum?: string }) => entry.checksum)
  }
  for (const body of ['in the index', Buffer.alloc(300_000, 'in a file')]) {
    for (const who of [client, anyone]) {
      t.equal(stated(await who.put(bucketName, 'k', body, { 'x-cloud-checksum': checksum })), checksum, 'what is kept')
      t.equal(stated(await anyone.head(bucketName, 'k')), checksum)
      t.equal(stated(await anyone.get(bucketName, 'k')), checksum)
      t.same(await listed(), [checksum])
      t.equal(stated(await who.put(bucketName, 'k', body)), undefined)
      t.equal(stated(await anyone.head(bucketName, 'k')), undefined, 'a new object has its own or none')
      t.same(await listed(), [undefined])
    }
  }
  for (const wrong of ['CRC32', 'crc32 AAAA', 'CRC32 A A', `SHA512 ${'A'.repeat(87)}`, 'CRC32 caf\u00e9'])
    t.equal((await client.put(bucketName, 'wrong', 'x', { 'x-cloud-checksum': wrong })).status, 400, wrong)
  t.equal((await client.head(bucketName, 'wrong')).status, 404)

  await client.call('SetBucketVersioning', { bucketName, status: 'Enabled' })
  await client.put(bucketName, 'k', 'first', { 'x-cloud-checksum': checksum })
  await client.put(bucketName, 'k', 'second')
  const { versions } = await client.call('ListObjectVersions', { bucketName, maxKeys: 9 })
  t.same(
    versions.map((version: { checksum?: string }) => version.checksum),
    [undefined, checksum, undefined],
    'each version keeps its own',
  )
})
