import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { runCli } from '../../support/server/cli.js'
import { signedCall } from '../../support/sign/signed-request.js'
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
