import { createHash } from 'node:crypto'
import t from 'tap'
import { newKeys } from '../../services/payment/payment-client.js'
import { farFromMidnight } from '../../support/waiting.js'
import { guest } from '../task/scene.js'
import { link, startPayment, startPayProxy } from './scene.js'

/** `ipfs add` of `hello`. */
const HELLO_CID = 'QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX'

t.test('an object, in each variant', async (t) => {
  await farFromMidnight()
  for (const variant of ['a', 'b'] as const)
    await t.test(variant, async (t) => {
      const scene = await startPayment(t, variant)
      const keys = newKeys()
      await scene.fund(keys)
      const proxy = await startPayProxy(t, scene, variant === 'b' ? { pay: { wallet: keys.address } } : {})
      const { ask, refused, send } = proxy
      await send('PUT', '/photos')
      await send('PUT', '/photos/a/hello.txt', { body: 'hello' })
      const target = '/photos/a/hello.txt?x-pay='
      if (variant === 'a') {
        t.equal(await refused('POST', target, { DurationDays: 180 }), 'WalletNotLinked')
        await link(proxy, keys)
      }
      t.equal(await refused('POST', '/photos/none?x-pay=', { DurationDays: 180 }), 'NoSuchKey')
      t.equal(await refused('POST', target, {}), 'InvalidArgument')
      t.equal(await refused('POST', target, { DurationDays: 3 }), 'InvalidArgument', 'the service has bounds')
      t.equal(await refused('POST', target, { DurationDays: 180 }, guest), 'AccessDenied')
      const order = () =>
        send('POST', `${target}&format=json`, { body: { duration: 180 }, headers: { 'x-amz-client-token': 'one' } })
      const made = JSON.parse((await order()).body)
      t.match(made, {
        Bucket: 'photos',
        Key: 'a/hello.txt',
        JobId: /^j-/,
        SourceFileUploadId: Number,
        PayloadCid: HELLO_CID,
        IpfsUrl: new RegExp(`/ipfs/${HELLO_CID}$`),
        FileSize: 5,
        WCid: new RegExp(`${HELLO_CID}$`),
        DurationDays: 180,
        ...(variant === 'a' && { Status: 'Pending' }),
      })
      t.same(JSON.parse((await order()).body), made, 'a repeated token gives the same upload')
      t.match(await ask('POST', target, { DurationDays: 181 }), { DurationDays: 181 }, 'other terms, another upload')
      t.match(await ask('GET', '/-/pay/v1/uploads?file-name=hello.txt'), { TotalRecordCount: 2 })
      t.match(await send('HEAD', '/photos/a/hello.txt'), {
        headers: { 'x-amz-meta-pay-cid': HELLO_CID, 'x-amz-meta-pay-upload-id': String },
      })
      t.match(await ask('GET', target), {
        Bucket: 'photos',
        Uploads: [
          { DurationDays: 181, Current: true, Status: 'Pending' },
          {
            JobId: made.JobId,
            WCid: made.WCid,
            Current: true,
            Status: 'Pending',
            Upload: { FileName: 'hello.txt', OfflineDeals: [] },
          },
        ],
      })
      await scene.payFor(keys, made.WCid)
      await send('PUT', '/photos/a/hello.txt', { body: 'other' })
      t.match(await ask('GET', target), { Uploads: [{}, { Current: false, Status: 'Processing' }] })
      t.notOk('x-amz-meta-pay-cid' in (await send('HEAD', '/photos/a/hello.txt')).headers)
      t.match(await ask('GET', `/-/jobs/v1/${made.JobId}`), { Status: 'Complete', Operation: 'pay:UploadObjectToIpfs' })
    })
})

t.test('an object of several blocks, and one without bytes', async (t) => {
  const scene = await startPayment(t, 'a')
  const keys = newKeys()
  const proxy = await startPayProxy(t, scene)
  await link(proxy, keys)
  await proxy.send('PUT', '/photos')
  const bytes = Buffer.alloc(3 * 1024 * 1024 + 1, 'dealgate ')
  await proxy.send('PUT', '/photos/large', { body: bytes.toString('latin1') })
  await proxy.send('PUT', '/photos/empty', { body: '' })
  const large = await proxy.ask('POST', '/photos/large?x-pay=', { DurationDays: 180 })
  const content = Buffer.from(await (await fetch(large.IpfsUrl)).arrayBuffer())
  t.equal(hash(content), hash(bytes))
  const empty = await proxy.ask('POST', '/photos/empty?x-pay=', { DurationDays: 180, FileType: '1' })
  t.match(empty, { FileSize: 0, PayloadCid: 'QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH' })
})

t.test('PUT with x-amz-meta-pay-duration', async (t) => {
  const scene = await startPayment(t, 'a')
  const writer = {
    accessKeyId: 'writer',
    secretAccessKey: 'writer-secret-key',
    rights: [{ bucket: 'photos', access: 'write' as const }],
  }
  const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret-key' }
  const proxy = await startPayProxy(t, scene, { proxy: { identities: [owner, writer] } })
  await link(proxy, newKeys())
  await proxy.send('PUT', '/photos')
  const headers = { 'x-amz-meta-pay-duration': '180' }
  await proxy.send('PUT', '/photos/hello.txt', { body: 'hello', headers })
  const job = (await proxy.send('HEAD', '/photos/hello.txt')).headers['x-amz-meta-pay-job']
  t.match(job, /^j-/)
  t.match(await proxy.ask('GET', `/-/jobs/v1/${job}`), {
    Operation: 'pay:UploadObjectToIpfs',
    Resource: '/photos/hello.txt',
  })
  const done = async (): Promise<string> => {
    const { Status } = await proxy.ask('GET', `/-/jobs/v1/${job}`)
    return Status === 'New' || Status === 'Active' ? done() : Status
  }
  t.equal(await done(), 'Complete')
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { Uploads: [{ FileName: 'hello.txt', DurationDays: 180 }] })
  t.match((await proxy.send('HEAD', '/photos/hello.txt')).headers, { 'x-amz-meta-pay-cid': HELLO_CID })

  t.equal((await proxy.send('PUT', '/photos/poor.txt', { body: 'hello', headers, keys: writer })).status, 200)
  t.notOk(
    'x-amz-meta-pay-job' in (await proxy.send('HEAD', '/photos/poor.txt')).headers,
    'who may write may not upload',
  )
  await proxy.send('PUT', '/photos/bad.txt', { body: 'hello', headers: { 'x-amz-meta-pay-duration': 'long' } })
  t.match((await proxy.send('HEAD', '/photos/bad.txt')).headers, { 'x-amz-meta-pay-job': /must be a number of days/ })
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { TotalRecordCount: 1 })
})

t.test('spending caps count uploads, deals and tasks together', async (t) => {
  await farFromMidnight()
  const scene = await startPayment(t, 'a')
  const proxy = await startPayProxy(t, scene, { pay: { maxSpendPerDay: '0.000000000000001' } })
  await link(proxy, newKeys())
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/large', { body: 'x'.repeat(1_000_000) })
  t.equal(await proxy.refused('POST', '/photos/large?x-pay=', { DurationDays: 500 }), 'SpendCapReached')
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { TotalRecordCount: 0 })
})

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
