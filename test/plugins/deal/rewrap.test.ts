import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { runCli } from '../../support/server/cli.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET } from './archive-proxy.js'
import { owner, startDealProxy, startEmbedded } from './proxy.js'

const terms = { MinerId: 't01000', Price: '0.000005', DurationEpochs: 518_400 }
const SSE = { 'x-amz-server-side-encryption': 'AES256' }

t.test('deals of the earlier header are listed, and what a class keeps in deals stays as it is', async (t) => {
  const data = temporaryFolder(t)
  const { endpoint } = await startDealProxy(t, await startEmbedded(t, 'full'), { data })
  const send = (method: string, target: string, body?: object | string, headers = {}) =>
    signedCall(endpoint, owner, method, target, { body, headers })
  await send('PUT', '/photos')
  for (const key of ['dealt', 'other']) await send('PUT', `/photos/${key}`, 'readable', SSE)
  await send('POST', '/photos?x-deal-config=', { Terms: [terms] })
  t.equal((await send('POST', '/photos/dealt?x-deal=', terms)).status, 200)
  const glacier = { 'x-amz-storage-class': 'GLACIER', 'x-dealgate-deal-mode': 'sync' }
  t.equal((await send('PUT', '/photos/kept', 'readable', { ...glacier, ...SSE })).status, 200)
  const cid = (await send('HEAD', '/photos/dealt')).headers['x-amz-meta-cid']
  t.ok(cid)
  t.equal((await runCli(['encryption', 'rotate', '--encryption-keys', join(data, 'encryption.keys')])).code, 0)
  await sleep(1100)
  const answer = await send('POST', '/photos?x-encryption=&format=json', {}, { prefer: 'wait=300' })
  t.match(JSON.parse(answer.body), {
    ...{ Rewrapped: 2, Current: 0, Plain: 0, Skipped: 1 },
    SkippedObjects: [{ Key: 'kept', Reason: /in deals/ }],
    EarlierDeals: [{ Key: 'dealt', Cid: cid }],
  })
  t.notOk((await send('HEAD', '/photos/dealt')).headers['x-amz-meta-cid'], 'the object is no longer that of the deal')
  const deals = JSON.parse((await send('GET', '/photos/dealt?x-deal=&format=json')).body)
  t.equal(deals.DealEntry.length, 1, 'which is still listed')
  for (const key of ['dealt', 'other', 'kept']) t.equal((await send('GET', `/photos/${key}`)).body, 'readable')
})

t.test('the deal of an object that has a new header since is renewed, with that header', async (t) => {
  const encryptionKeys = join(temporaryFolder(t), 'keys')
  const rotate = async () =>
    t.equal((await runCli(['encryption', 'rotate', '--encryption-keys', encryptionKeys])).code, 0)
  await rotate()
  const proxy = await ArchiveProxy.start(t, {}, { proxy: { encryptionKeys } })
  const ask = async (method: string, target: string, body?: object) => {
    const headers = { prefer: 'wait=300' }
    const answer = await signedCall(proxy.endpoint, owner, method, `${target}&format=json`, { body, headers })
    t.equal(answer.status, 200, answer.body)
    return JSON.parse(answer.body)
  }
  await proxy.put('letter', { StorageClass: 'STANDARD', ServerSideEncryption: 'AES256' })
  await proxy.put('other', { StorageClass: 'STANDARD', ServerSideEncryption: 'AES256' })
  await ask('POST', `/${BUCKET}?x-deal-config=`, { RenewBeforeDays: 30 })
  for (const key of ['letter', 'other']) await ask('POST', `/${BUCKET}/${key}?x-deal=`, {})
  await rotate()
  await sleep(1100)
  t.match(await ask('POST', `/${BUCKET}?x-encryption=`, {}), { Rewrapped: 2 })
  // Another content, and another object therefore.
  await proxy.put('other', { StorageClass: 'STANDARD', ServerSideEncryption: 'AES256', Body: 'another letter' })
  const deals = async (key: string) => (await ask('GET', `/${BUCKET}/${key}?x-deal=`)).DealEntry as readonly unknown[]
  const { Metadata } = await proxy.head('letter')
  t.notOk(Metadata?.cid, 'the bytes of the deal are not those of the object')
  await proxy.pass(800_000)
  await until('it is renewed after half of its time', async () => (await deals('letter')).length === 2)
  const renewed = await proxy.untilHead(
    'the new deal has its bytes',
    'letter',
    (head) => head.Metadata?.cid !== undefined,
  )
  t.equal(renewed.Metadata?.['deal-count'], '1')
  t.equal(await proxy.read('letter'), 'the bytes of letter')
  await proxy.pass(10_000)
  t.same([(await deals('letter')).length, (await deals('other')).length], [2, 1], 'once, and no other content')
})
