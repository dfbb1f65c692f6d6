import { createServer } from 'node:http'
import t from 'tap'
import { createProxy } from '../../cli/index.js'
import { createPassthrough } from '../../cli/passthrough/passthrough.js'
import { definePlugin } from '../../src/plugins/define-plugin.js'
import { temporaryFolder } from '../support/content/folders.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { startInProcess } from '../support/server/in-process.js'
import { keptLog } from '../support/server/kept-log.js'
import { listen } from '../support/server/listen.js'
import { modes } from '../support/server/modes.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { stopMonotonicClock } from '../support/waiting.js'

/** Operations of which plugins have heard. */
const told: string[] = []
const notes = definePlugin({
  name: 'notes',
  create: () => ({ operations: [], requestEnded: ({ operation }) => void told.push(operation) }),
})

const identity = { accessKeyId: 'key', secretAccessKey: 'secret-key' }

for (const mode of modes) {
  t.test(`${mode}: JSON-RPC and S3 on one port, and neither sees what the other has replaced`, async (t) => {
    told.length = 0
    const { endpoint, gateway, s3 } = await startInProcess(t, mode, {
      identities: [identity],
      passthrough: createPassthrough,
      plugins: [notes({})],
    })
    const rpc = new GatewayUser({ ...gateway.account, url: endpoint })
    await rpc.login()
    const Bucket = 'shared-bucket'
    const names = async () => (await s3.listBuckets({})).Buckets?.map(({ Name }) => Name)

    await rpc.call('web.MakeBucket', { bucketName: Bucket })
    t.same(await names(), [Bucket])
    t.same(told, ['web.Login', 'web.MakeBucket', 'ListBuckets'], 'plugins hear of each request')
    for (const Key of ['a', 'b', 'c', 'd']) await s3.putObject({ Bucket, Key, Body: 'content' })

    t.test('an object that was removed is in no page of a listing that is under way', async (t) => {
      const first = await s3.listObjectsV2({ Bucket, MaxKeys: 1 })
      await rpc.call('web.RemoveObject', { bucketName: Bucket, objects: ['b'] })
      const token = { ContinuationToken: first.NextContinuationToken }
      const rest = await s3.listObjectsV2({ Bucket, ...token })
      t.same(
        rest.Contents?.map(({ Key }) => Key),
        ['c', 'd'],
      )
      await t.rejects(s3.headObject({ Bucket, Key: 'b' }), { name: 'NotFound' })
    })

    t.test('a policy holds at once', async (t) => {
      t.equal((await fetch(`${endpoint}/${Bucket}/a`)).status, 403)
      await rpc.call('web.SetBucketPolicy', { bucketName: Bucket, prefix: '', policy: 'readonly' })
      t.equal(await (await fetch(`${endpoint}/${Bucket}/a`)).text(), 'content')
      t.match((await s3.getBucketPolicy({ Bucket })).Policy, 's3:GetObject')
      await rpc.call('web.SetBucketPolicy', { bucketName: Bucket, prefix: '', policy: 'none' })
      t.equal((await fetch(`${endpoint}/${Bucket}/a`)).status, 403)
    })

    t.test('a bucket that is made again has nothing of the one before', async (t) => {
      const again = { Bucket: 'again' }
      await s3.createBucket(again)
      const Tagging = { TagSet: [{ Key: 'team', Value: 'red' }] }
      await s3.putBucketTagging({ ...again, Tagging })
      await rpc.call('web.DeleteBucket', { bucketName: 'again' })
      await t.rejects(s3.getBucketTagging(again), { name: 'NoSuchBucket' })
      await rpc.call('web.MakeBucket', { bucketName: 'again' })
      await t.rejects(s3.getBucketTagging(again), { name: 'NoSuchTagSet' })
    })

    t.test('no bucket can have the name of the gateway’s paths', async (t) => {
      const made = await signedRequest(endpoint, identity, { method: 'PUT', path: '/gateway' })
      t.equal(made.code, 'InvalidBucketName', 'a signed request is S3’s')
      t.same(await names(), ['again', Bucket])
    })
  })
}

t.test('without pass-through these paths are S3’s', async (t) => {
  const { endpoint } = await startInProcess(t, 'full', { identities: [identity] })
  const answer = await fetch(`${endpoint}/gateway/webrpc`, { method: 'POST', body: '{}' })
  t.match(await answer.text(), /<Error>/)
})

t.test('a client that tries out keys through the passthrough must wait, the proxy need not', async (t) => {
  const { endpoint, gateway } = await startInProcess(t, 'full', {
    identities: [identity],
    passthrough: createPassthrough,
  })
  // The first wait is a second.
  stopMonotonicClock(t)
  const user = (secretKey: string) => new GatewayUser({ ...gateway.account, secretKey, url: endpoint })
  for (let i = 0; i < 5; i++) await t.rejects(user(`wrong-key-${i}`).login(), { message: /Authentication failed/ })
  await t.rejects(user(gateway.account.secretKey).login(), { message: /Too many log-ins/ })
  const { status } = await signedRequest(endpoint, identity, { method: 'GET', path: '/' })
  t.equal(status, 200, 'the proxy logs in for the first time')
})

t.test('the entry `dealgate` serves these paths where it is told to', async (t) => {
  const { gateway } = await startInProcess(t, 'full', { identities: [identity] })
  for (const [passthrough, form] of [
    [true, /"jsonrpc"/],
    [false, /<Error>/],
  ] as const) {
    const options = { gateway: { url: gateway.url, account: gateway.account }, data: temporaryFolder(t) }
    const proxy = await createProxy({ ...options, identities: [identity], passthrough, log: keptLog().log })
    t.teardown(() => proxy.close())
    const url = await listen(createServer(proxy), t)
    const body = JSON.stringify({ id: 1, jsonrpc: '2.0', method: 'web.Login', params: {} })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${url}/gateway/webrpc`, { method: 'POST', headers, body })
    t.match(await answer.text(), form)
  }
})
