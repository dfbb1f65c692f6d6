import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { runCli } from '../../support/server/cli.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy } from './archive-proxy.js'

t.test('the deal of an object that has a new header since is listed, and renewed with that header', async (t) => {
  const encryptionKeys = join(temporaryFolder(t), 'keys')
  const rotate = async () =>
    t.equal((await runCli(['encryption', 'rotate', '--encryption-keys', encryptionKeys])).code, 0)
  await rotate()
  const proxy = await ArchiveProxy.start(t, {}, { proxy: { encryptionKeys } })
  const ask = async (method: string, target: string, body?: object) => {
    const answer = await proxy.call(method, target, body, { prefer: 'wait=300' })
    t.equal(answer.status, 200, answer.body)
    return answer.json
  }
  const sealed = { ServerSideEncryption: 'AES256' } as const
  for (const key of ['letter', 'other']) await proxy.put(key, { StorageClass: 'STANDARD', ...sealed })
  await proxy.put('kept', sealed)
  t.match(await proxy.ended('kept'), { status: 'Complete' })
  await ask('POST', '?x-deal-config=', { RenewBeforeDays: 30 })
  for (const key of ['letter', 'other']) await ask('POST', `/${key}?x-deal=`, {})
  const { Metadata } = await proxy.head('letter')
  await rotate()
  await sleep(1100)
  t.match(await ask('POST', '?x-encryption=', {}), {
    ...{ Rewrapped: 2, Current: 0, Plain: 0, Skipped: 1 },
    SkippedObjects: [{ Key: 'kept', Reason: /in deals/ }],
    EarlierDeals: [{ Key: 'letter', Cid: Metadata?.cid }, { Key: 'other' }],
  })
  // Another content, and another object therefore.
  await proxy.put('other', { StorageClass: 'STANDARD', Body: 'another letter', ...sealed })
  const deals = async (key: string) => (await ask('GET', `/${key}?x-deal=`)).DealEntry as readonly unknown[]
  t.notOk((await proxy.head('letter')).Metadata?.cid, 'the bytes of the deal are not those of the object')
  t.equal((await deals('letter')).length, 1, 'which is still listed')
  await proxy.pass(800_000)
  await until('it is renewed after half of its time', async () => (await deals('letter')).length === 2)
  const renewed = await proxy.untilHead('the new deal has its bytes', 'letter', ({ Metadata }) => !!Metadata?.cid)
  t.equal(renewed.Metadata?.['deal-count'], '1')
  for (const key of ['letter', 'kept']) t.equal(await proxy.read(key), `the bytes of ${key}`)
  await proxy.pass(10_000)
  t.same([(await deals('letter')).length, (await deals('other')).length], [2, 1], 'once, and no other content')
})
