import t from 'tap'
import { parseAmount } from '../../../src/plugins/parts/fil.js'
import { NETWORK, newKeys } from '../../services/payment/payment-client.js'
import { bytesBelow } from '../../support/content/folders.js'
import { unsignedRequest } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { guest } from '../task/scene.js'
import { link, startPayment, startPayProxy } from './scene.js'

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
  const quote = () => proxy.ask('POST', '/photos/a?x-pay-quote=', { DurationDays: 180 })
  const quoted = await quote()
  t.match(quoted, { Bytes: 10, DurationDays: 180, Currency: 'fil', DailyCap: '10', WithinCap: true })
  t.ok(Number(quoted.Total) > 0, quoted.Total)
  t.match(quoted.Warning, /a is not encrypted: everyone who has its CID can read it/)
  await proxy.ask('POST', '/photos?x-deal-config=', { PublicNetwork: 'encrypted-only' })
  t.match((await quote()).Warning, /The upload would be refused/)
  const refused = await proxy.send('POST', '/photos/a?x-pay=', { body: { DurationDays: 180 } })
  t.match([refused.status, refused.body], [409, /ObjectNotEncrypted/])
  await proxy.ask('POST', '/photos?x-deal-config=', {})
  const { WCid, SourceFileUploadId } = await proxy.ask('POST', '/photos/a?x-pay=', { DurationDays: 180 })
  const left = parseAmount(quoted.LeftToday) ?? 0n
  t.equal(parseAmount((await quote()).LeftToday), left - (parseAmount(quoted.Total) ?? 0n), 'it costs what was quoted')
  await proxy.ask('POST', '/photos?x-deal-config=', { MaxSpendPerDay: '0.000000000000000001' })
  t.match(await quote(), { DailyCap: '0.000000000000000001', LeftToday: '0', WithinCap: false })
  await proxy.ask('POST', '/photos?x-deal-config=', {})
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

  const happened = async (key: string, by?: typeof reader) =>
    (await proxy.ask('GET', `/photos/${key}?x-pay-history=`, undefined, by)).History
  t.same(await happened('b'), [])
  const events = await happened('a')
  t.match(events[0], { Event: 'UploadRequested', JobId: /^j-/, DurationDays: 180 })
  const one = (name: string) => events.find(({ Event }: { readonly Event: string }) => Event === name)
  t.match(one('Uploaded'), { SourceFileUploadId, State: 'Success', PayloadCid: /^Qm/ })
  t.match(one('PaymentLocked'), { Amount: '500000', TokenName: String, TxHash: String, Until: /Z$/ })
  t.match(one('UploadDealMade'), { MinerId: /^t0/, DealCid: /^ba/ })
  t.match(one('UploadDealState'), { State: /^StorageDeal/ })
  t.match(one('PaymentUnlocked'), { Amount: /^\d+$/, TxHash: String })
  t.match(await happened('a', reader), [{ Event: 'UploadRequested' }, { State: 'Unseen' }], 'without the wallet')

  t.match((await proxy.ask('GET', '/-/pay/v1/wallet')).Wallet, { Locked: '0', Coins: [{ Balance: /^9\d{5}$/ }] })

  const { DealEntry } = await proxy.ask('GET', '/photos/a?expand=pay&x-deal=', undefined, reader)
  t.match(DealEntry[0].Pay, { Status: 'Unseen', Deals: [] }, 'a key pair without the wallet sees no payment')
  t.notOk('Payment' in DealEntry[0].Pay)
  await proxy.send('PUT', '/photos/a', { body: 'replaced' })
  t.notOk('Pay' in (await joined()), 'the upload was of another object')
  t.match((await happened('a'))[0], { EarlierVersion: true })
})

const ANY = { ...guest, accessKeyId: 'any', actions: ['pay:*'] }

t.test('variant A: sign-in, and what needs it', async (t) => {
  const scene = await startPayment(t, 'a')
  const proxy = await startPayProxy(t, scene, {
    proxy: { identities: [{ accessKeyId: 'owner', secretAccessKey: 'owner-secret-key' }, ANY] },
  })
  const { ask, refused } = proxy
  const keys = newKeys()
  const PublicKeyAddress = keys.address

  t.equal(await refused('GET', '/-/pay/v1/uploads'), 'WalletNotLinked')
  t.equal(await refused('POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress: 'me' }), 'InvalidArgument')
  const nonceOf = async () => (await ask('POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress })).Nonce
  const Nonce = await nonceOf()
  t.match(Nonce, /^\d{20,}$/)
  const session = { Nonce, Signature: keys.sign(Nonce), PublicKeyAddress, Network: NETWORK }
  t.equal(
    await refused('POST', '/-/pay/v1/wallet/session', { ...session, PrivateKey: '1'.repeat(64) }),
    'InvalidArgument',
    'a key of a wallet is not accepted',
  )
  const foreign = newKeys().sign(Nonce)
  t.equal(await refused('POST', '/-/pay/v1/wallet/session', { ...session, Signature: foreign }), 'UpstreamAuthFailed')
  t.equal(await refused('POST', '/-/pay/v1/wallet/session', { ...session, Network: 'other' }), 'InvalidArgument')
  const once = await ask('POST', '/-/pay/v1/wallet/session', session)
  t.match(once, { JwtToken: /^ey/, ExpiresAt: /Z$/, Stored: false })
  t.equal(await refused('POST', '/-/pay/v1/wallet/session', session), 'UpstreamAuthFailed', 'a nonce is used once')
  t.equal(await refused('GET', '/-/pay/v1/uploads'), 'WalletNotLinked', 'nothing is kept unasked')
  await link(proxy, keys)
  t.match(await ask('GET', '/-/pay/v1/uploads'), { Uploads: [], TotalRecordCount: 0, IsTruncated: false })
  t.equal(await refused('GET', '/-/pay/v1/uploads', undefined, ANY), 'WalletNotLinked', 'a session is of one key pair')
  t.equal(await refused('GET', `/-/pay/v1/uploads?wallet-address=${newKeys().address}`), 'AccessDenied', 'other wallet')

  const bearer = (token: string, path: string) =>
    unsignedRequest(proxy.endpoint, { method: 'GET', path, headers: { authorization: `Bearer ${token}` } })
  t.match(JSON.parse((await bearer(once.JwtToken, '/-/pay/v1/billing')).body), { Records: [], TotalRecordCount: 0 })
  t.match(await bearer('x.y.z', '/-/pay/v1/billing'), { status: 403, body: /UpstreamAuthFailed/ })
  t.match(await bearer(once.JwtToken, '/-/pay/v1/system-config'), { status: 403 })
  const own = { 'x-dealgate-wallet-authorization': `Bearer ${once.JwtToken}` }
  t.match(await proxy.send('GET', '/-/pay/v1/uploads', { keys: ANY, headers: own }), { status: 200 })
})

t.test('the token of a session is neither in the log nor in clear in the files', async (t) => {
  const scene = await startPayment(t, 'a')
  const keys = newKeys()
  const proxy = await startPayProxy(t, scene)
  const { Nonce } = await proxy.ask('POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress: keys.address })
  const session = { Nonce, Signature: keys.sign(Nonce), PublicKeyAddress: keys.address, Network: NETWORK }
  const { JwtToken } = await proxy.ask('POST', '/-/pay/v1/wallet/session', session)
  await link(proxy, keys)
  const files = bytesBelow(proxy.data)
  t.match(files, 'pay-sessions')
  t.notMatch(files, /eyJ[\w-]{10,}\./, 'no JWT')
  t.notOk(JSON.stringify(proxy.lines).includes(JwtToken))
  t.notMatch(JSON.stringify(proxy.lines), /eyJ[\w-]{10,}\./, 'nor that of the kept session')
  await proxy.close()
  const again = await startPayProxy(t, scene, { data: proxy.data })
  t.match(await again.ask('GET', '/-/pay/v1/uploads'), { Uploads: [] }, 'the session outlives a restart')
  await again.close()
  const replaced = { accessKeyId: 'owner', secretAccessKey: 'another-secret-key' }
  const other = await startPayProxy(t, scene, { data: proxy.data, proxy: { identities: [replaced] } })
  const code = await other.refused('GET', '/-/pay/v1/uploads', undefined, replaced)
  t.equal(code, 'WalletNotLinked', 'another key pair of the same id does not inherit it')
})

t.test('each row in each variant', async (t) => {
  for (const variant of ['a', 'b'] as const)
    await t.test(variant, async (t) => {
      const scene = await startPayment(t, variant)
      const keys = newKeys()
      await scene.fund(keys)
      const proxy = await startPayProxy(t, scene, variant === 'b' ? { pay: { wallet: keys.address } } : {})
      const { ask, refused } = proxy
      if (variant === 'a') await link(proxy, keys)
      else {
        t.equal(
          await refused('POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress: keys.address }),
          'FeatureNotInVariant',
        )
        const session = {
          Nonce: '1',
          Signature: `0x${'1'.repeat(130)}`,
          PublicKeyAddress: keys.address,
          Network: NETWORK,
        }
        t.equal(await refused('POST', '/-/pay/v1/wallet/session', session), 'FeatureNotInVariant')
        const headers = { authorization: 'Bearer x' }
        const unsigned = await unsignedRequest(proxy.endpoint, { method: 'GET', path: '/-/pay/v1/uploads', headers })
        t.match(unsigned, { status: 403, body: /AccessDenied/ }, 'a token that no service checks opens nothing')
      }
      t.match(await ask('GET', '/-/pay/v1/system-config'), {
        Variant: variant.toUpperCase(),
        PaymentContractAddress: /^0x/,
        MintContractAddress: /^0x/,
        PaymentRecipientAddress: /^0x/,
        StableAddress: /^0x/,
        GasLimit: 8_000_000,
        LockTime: 6,
        PayMultiplyFactor: 1.5,
        ...(variant === 'a' && { ChainName: NETWORK, DaoThreshold: 0, StorageCoinPrice: Number }),
      })
      const host = { OperatingSystem: process.platform, CpuNumber: Number, CurrentUnixNano: /^\d{19}$/ }
      t.match(await ask('GET', '/-/pay/v1/host-info'), host)
      t.match(await ask('GET', '/-/pay/v1/exchange-rate'), { Rate: 500_000_000 })
      const prices = await ask('GET', '/-/pay/v1/price-statistics')
      t.match(prices, { AveragePricePerGBPerYear: { Text: / FIL$/, Value: Number, Unit: 'FIL' } })
      t.equal('HistoricalAveragePriceRegular' in prices, variant === 'a')
      t.match(await ask('GET', '/-/pay/v1/billing'), { Records: [], TotalRecordCount: 0, IsTruncated: false })
      t.match(await ask('GET', '/-/pay/v1/uploads?page_size=x&page_number=0&is_ascend=y'), { Uploads: [] })
      t.equal(await refused('GET', '/-/pay/v1/uploads/7/payment'), 'NoSuchUpload')
      t.equal(await refused('GET', '/-/pay/v1/uploads/x/payment'), 'NoSuchUpload')
      t.equal(await refused('GET', '/-/pay/v1/deals/7'), 'NoSuchDeal')
      t.equal(await refused('GET', '/-/pay/v1/deals/0?source-file-upload-id=7'), 'NoSuchDeal')
      t.equal(await refused('GET', '/-/pay/v1/offline-deals/7/log'), 'NoSuchDeal')
      const mint = { TxHash: '0x1', TokenId: '7', MintAddress: keys.address }
      t.equal(await refused('POST', '/-/pay/v1/uploads/7/mint', mint), 'NoSuchUpload')

      const target = '/-/pay/v1/uploads?duration-days=180&file-name=hello.txt&format=json'
      const { SourceFileUploadId: id, WCid } = JSON.parse((await proxy.send('POST', target, { body: 'hello' })).body)
      await scene.payFor(keys, WCid)
      const upload = { SourceFileUploadId: id, FileName: 'hello.txt', FileSize: 5, DurationDays: 180, UploadTime: /Z$/ }
      t.match(await ask('GET', '/-/pay/v1/uploads'), {
        ...{ Uploads: [{ ...upload, OfflineDeals: [] }], TotalRecordCount: 1 },
      })
      t.match(await ask('GET', `/-/pay/v1/deals/0?source-file-upload-id=${id}`), {
        Deal: { WCid, FileName: 'hello.txt', LockedFee: '500000' },
      })
      t.match(await ask('GET', `/-/pay/v1/uploads/${id}/payment`), {
        WCid,
        PayAmount: '500000',
        PayTxHash: String,
        TokenAddress: /^0x/,
      })
      t.match(await ask('GET', '/-/pay/v1/wallet'), {
        WalletAddress: keys.address.toLowerCase(),
        Wallet: {
          Locked: '500000',
          Unlocked: '0',
          Refunded: '0',
          Coins: [{ Name: 'STABLE', Decimals: 6, Balance: '500000' }],
        },
        ...{ SpentToday: /^0\.0/, DailyCap: '10', LeftToday: /^9\.9/ },
      })
      t.match(await ask('GET', '/-/pay/v1/billing'), {
        Records: [{ PayAmount: '500000', UnlockAmount: '', FileName: 'hello.txt', PayTime: /Z$/, DeadlineTime: /Z$/ }],
      })
      const csv = (await proxy.send('GET', '/-/pay/v1/billing.csv')).body.split('\r\n')
      t.match(csv[0], /^PayId,PayTxHash,PayAmount,UnlockAmount,FileName,/)
      t.match(csv[1], /^1,[^,]+,500000,,hello\.txt,Qm/)
      const own = `wallets/${keys.address}`
      t.match(await ask('GET', `/-/pay/v1/${own}/uploads`), { Uploads: [{ FileName: 'hello.txt' }] })
      t.match((await proxy.send('GET', `/-/pay/v1/${own}/billing.csv`)).body, /^PayId,.*,hello\.txt,Qm/s)
      const listed = (await proxy.send('GET', `/-?list-type=2&prefix=pay/v1/${own}/`)).body
      t.match(listed, `<Key>pay/v1/${own.toLowerCase()}/billing.csv</Key>`)
      t.match(await ask('POST', `/-/pay/v1/uploads/${id}/mint`, mint), {
        NftTxHash: '0x1',
        TokenId: '7',
        CreateTime: /Z$/,
      })
      const other = { ...mint, TokenId: '8' }
      t.equal(await refused('POST', `/-/pay/v1/uploads/${id}/mint`, other), 'DuplicateRequest')
      t.match(await ask('GET', '/-/pay/v1/uploads?raw=1'), { status: 'success', data: { total_record_count: 1 } })
      t.match((await proxy.send('GET', '/-/pay/v1/uploads?format=xml')).body, '<Uploads><Upload><SourceFileUploadId>')
    })
})
