import t from 'tap'
import { newKeys } from '../../services/payment/payment-client.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { guest } from '../task/scene.js'
import { link, startPayment, startPayProxy } from './scene.js'

t.setTimeout(300_000)

const TERMS = { MinerId: 't01000', Price: '0.0000001', DurationEpochs: 518_400 }

t.test('deal, task, payment, unlock and expiry in one document of an object', async (t) => {
  await farFromMidnight()
  const scene = await startPayment(t, 'a', 30)
  const keys = newKeys()
  await scene.fund(keys)
  const reader = { ...guest, accessKeyId: 'reader', rights: [{ bucket: 'photos', access: 'read' as const }] }
  const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret-key' }
  const proxy = await startPayProxy(t, scene, { proxy: { identities: [owner, reader] } })
  await link(proxy, keys)
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/a', { body: 'some bytes' })
  await proxy.send('PUT', '/photos/b', { body: 'others' })
  const { Deal } = await proxy.ask('POST', '/photos/a?x-deal=', TERMS)
  await proxy.ask('POST', '/photos/b?x-deal=', TERMS)
  const joined = async () => (await proxy.ask('GET', '/photos/a?expand=task,pay&x-deal=')).DealEntry[0]
  t.notOk('Pay' in (await joined()), 'an object that was not uploaded')
  const { WCid, SourceFileUploadId } = await proxy.ask('POST', '/photos/a?x-pay=', { DurationDays: 180 })
  t.match(await joined(), {
    Deal: { DealCid: Deal.DealCid },
    Pay: { SourceFileUploadId, WCid, Status: 'Pending', Payment: { PayAmount: '' }, Deals: [] },
  })
  t.notOk('Pay' in (await proxy.ask('GET', '/photos/b?expand=pay&x-deal=')).DealEntry[0])
  await scene.payFor(keys, WCid)
  let deals = 0
  await until('the upload has its deal and is paid', async () => {
    // The provider fetches the CAR in its own time, and has until the deadline of the payment.
    await scene.advance(deals === 0 ? 2 : 100)
    const [upload] = (await proxy.ask('GET', '/-/pay/v1/uploads')).Uploads
    deals = upload.OfflineDeals.length
    if (upload.Status === 'Refunded') throw new Error('there was no deal in time')
    return upload.Status === 'Success'
  })
  const entry = await joined()
  t.match(entry, {
    Deal: { DealCid: Deal.DealCid, MinerId: 't01000' },
    Pay: {
      Status: 'Success',
      Payment: { WCid, PayAmount: '500000', TokenAddress: /^0x/ },
      Bill: { PayAmount: '500000', UnlockAmount: /^\d+$/, UnlockTime: /Z$/, DeadlineTime: /Z$/ },
      Deals: [
        { DealCid: /^ba/, Status: 'Success', Unlocked: true, UnlockTime: /Z$/, EndHeight: Number, MinerFid: /^t0/ },
      ],
    },
  })
  t.ok(entry.Pay.Deals[0].EndHeight > entry.Pay.Deals[0].StartHeight)
  const { Uploads } = await proxy.ask('GET', '/photos/a?expand=pay&x-pay=')
  t.match(Uploads, [{ Status: 'Success', Pay: { Bill: { PayAmount: '500000' } } }])
  t.match((await proxy.ask('GET', '/-/deal/v1/deals?expand=pay')).Deals, [{ Key: 'b' }, { Key: 'a', Pay: { WCid } }])
  const xml = await proxy.send('GET', '/photos/a?expand=task,pay&x-deal=')
  t.match(xml.body, `<Pay><SourceFileUploadId>${SourceFileUploadId}</SourceFileUploadId>`)
  t.match(await proxy.ask('GET', `/-/pay/v1/deals/${entry.Pay.Deals[0].DealId}`), {
    Deal: { DealCid: entry.Pay.Deals[0].DealCid, Unlocked: true, WCid },
  })
  const log = await proxy.ask('GET', `/-/pay/v1/offline-deals/${entry.Pay.Deals[0].Id}/log`)
  t.match(log.Entries, [{ OnChainStatus: /^StorageDeal/, CreateTime: /Z$/ }])

  const { DealEntry } = await proxy.ask('GET', '/photos/a?expand=pay&x-deal=', undefined, reader)
  t.match(DealEntry[0].Pay, { Status: 'Unseen', Deals: [] }, 'a key pair without the wallet sees no payment')
  t.notOk('Payment' in DealEntry[0].Pay)
  await proxy.send('PUT', '/photos/a', { body: 'replaced' })
  t.notOk('Pay' in (await joined()), 'the upload was of another object')
})
