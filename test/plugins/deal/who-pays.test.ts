import { randomUUID } from 'node:crypto'
import { S3Client } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t, { type Test } from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import { owner, startDealProxy, startEmbedded } from '../../support/plugins/deal-proxy.js'
import {
  presignedRequest,
  sendAsIs,
  signedCall,
  signedRequest,
  type TextAnswer,
  type Wanted,
} from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'

// Who says what a deal costs. The terms of the strangers below are near what their provider asks, and under the cap of
// a day: nothing but the missing right keeps them from being paid.

const writer = { accessKeyId: 'writer', secretAccessKey: 'writer-secret-key' }
const payer = { accessKeyId: 'payer', secretAccessKey: 'payer-secret-key' }
const rights = [{ bucket: 'photos', access: 'readwrite' as const }]
const identities = [
  owner,
  { ...writer, rights },
  { ...payer, rights, actions: ['deal:CreateObjectDeal', 'deal:QuoteObjectDeal'] },
]

type Keys = typeof owner

const BODY = 'x'.repeat(200_000)
const owners = { MinerId: 't01000', Price: '0.000000001', DurationEpochs: 600_000 }
const strangers = { MinerId: 't01004', Price: '0.000000004', DurationEpochs: 1_555_200 }
const TERMS = 'x-amz-meta-deal-terms'
const STRANGE = 'miner=t01004;price=0.000000004;duration=1555200'

async function start(t: Test, mode: 'full' | 'legacy') {
  await farFromMidnight()
  const clock = { ahead: 0 }
  const { endpoint, host } = await startDealProxy(t, await startEmbedded(t, mode), {
    identities,
    now: () => Date.now() + clock.ahead,
    deal: { maxSpendPerDay: undefined, maxTimesAsk: undefined },
    proxy: { lifecycleIntervalMs: 100 },
  })
  /** Without keys: not signed. */
  const send = (
    keys: Keys | undefined,
    method: string,
    target: string,
    body?: string | object,
    headers: Wanted['headers'] = {},
  ): Promise<TextAnswer> =>
    keys
      ? signedCall(endpoint, keys, method, target, { body, headers })
      : sendAsIs(endpoint, { method, body: String(body ?? '') }, target, { ...headers })
  /** The same, which must succeed. */
  const done = async (...request: Parameters<typeof send>): Promise<TextAnswer> => {
    const answer = await send(...request)
    if (answer.status !== 200) throw new Error(`${request[2]}: ${answer.status} ${answer.body}`)
    return answer
  }
  const store = (keys: Keys | undefined, key: string, terms = STRANGE) =>
    done(keys, 'PUT', `/photos/${key}`, BODY, { [TERMS]: terms })
  const copy = (keys: Keys, from: string, to: string, headers: Record<string, string> = {}) =>
    done(keys, 'PUT', `/photos/${to}`, undefined, { 'x-amz-copy-source': `/photos/${from}`, ...headers })
  /** The deal that a caller gets who asks for one and says nothing, or the code of the refusal. */
  const deal = async (key: string, keys: Keys = owner) => {
    const token = { 'x-amz-client-token': randomUUID() }
    const { status, body } = await send(keys, 'POST', `/photos/${key}?x-deal=&format=json`, {}, token)
    return status === 200 ? JSON.parse(body).Deal : JSON.parse(body).Code
  }
  await done(owner, 'PUT', '/photos')
  await host.own.gateway.setPolicy('photos', 'pub/', 'writeonly')
  return { endpoint, host, clock, send, done, store, copy, deal }
}

type Scene = Awaited<ReturnType<typeof start>>

/** Stores by a link that the caller has signed. */
const storeByLink = ({ endpoint }: Scene, keys: Keys, key: string) =>
  presignedRequest(endpoint, keys, { method: 'PUT', path: `/photos/${key}`, body: BODY, headers: { [TERMS]: STRANGE } })

async function storeInParts({ done }: Scene, keys: Keys, key: string): Promise<void> {
  const begun = await done(keys, 'POST', `/photos/${key}?uploads=`, undefined, { [TERMS]: STRANGE })
  const uploadId = /<UploadId>([^<]+)/.exec(begun.body)?.[1] ?? ''
  const { headers } = await done(keys, 'PUT', `/photos/${key}?partNumber=1&uploadId=${uploadId}`, BODY)
  const part = `<Part><PartNumber>1</PartNumber><ETag>${headers.etag}</ETag></Part>`
  const list = `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`
  await done(keys, 'POST', `/photos/${key}?uploadId=${uploadId}`, list)
}

/** Stores by a form. @param fixed its policy states the terms, and does not leave them to the sender */
async function storeByForm({ endpoint }: Scene, keys: Keys | undefined, Key: string, fixed: boolean): Promise<void> {
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: keys ?? owner })
  const signed = await createPresignedPost(client, {
    ...{ Bucket: 'photos', Key },
    ...(fixed ? { Fields: { [TERMS]: STRANGE } } : { Conditions: [['starts-with', `$${TERMS}`, '']] }),
  })
  client.destroy()
  const form = new FormData()
  for (const [name, value] of Object.entries({ ...(keys ? signed.fields : { key: Key }), [TERMS]: STRANGE }))
    form.append(name, value)
  form.append('file', new Blob([BODY]), 'f')
  const { status } = await fetch(`${endpoint}/photos`, { method: 'POST', body: form })
  if (status !== 204) throw new Error(`${Key}: ${status}`)
}

async function storePastTheProxy({ host }: Scene, key: string): Promise<void> {
  const upload = host.own.gateway.upload('photos', key, BODY.length, {
    ...{ contentType: undefined, headers: {}, etag: undefined, metadata: { 'deal-terms': STRANGE } },
  })
  await upload.write(Buffer.from(BODY))
  await upload.commit(anyOrder())
}

for (const mode of ['full', 'legacy'] as const)
  t.test(mode, async (t) => {
    const scene = await start(t, mode)
    const { send, done, store, copy, deal } = scene

    await t.test('without the right, terms may be narrower than those of the owner', async (t) => {
      await store(writer, 'none')
      const none = await send(owner, 'POST', '/photos/none?x-deal=')
      t.match(none, { code: 'DealTermsRequired', body: /did not hold the action deal:CreateObjectDeal/ })

      await done(owner, 'POST', '/photos?x-deal-config=', { Terms: [owners] })
      const narrower = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518_400 }
      await store(writer, 'narrower', 'miner=t01000;price=0.0000000005;duration=518400;fast=false')
      t.match(await deal('narrower'), { ...narrower, FastRetrieval: false })
      for (const [i, terms] of [
        ...['price=0.0000000011', 'duration=600001', 'duration=0', 'miner=t01004;price=0.0000000005'],
        ...['verified=true', 'price=0.0000000005;confirm=true', 'these are no terms'],
      ].entries()) {
        await store(writer, `wider-${i}`, terms)
        t.match(await deal(`wider-${i}`), owners, terms)
      }
      const quote = await done(owner, 'POST', '/photos/wider-0?x-deal-quote=&format=json')
      t.match(JSON.parse(quote.body), { Price: owners.Price, Warnings: [/do not count/] })
      // Nor may they forgo the DataCap of the owner, which makes the deal dearer, or ask for more than he does.
      const sparing = { ...owners, VerifiedDeal: true, FastRetrieval: false }
      await done(owner, 'POST', '/photos?x-deal-config=', { Terms: [sparing] })
      for (const terms of ['verified=false', 'fast=true']) {
        await store(writer, 'dearer', terms)
        const { body } = await done(owner, 'POST', '/photos/dearer?x-deal-quote=&format=json')
        t.match(JSON.parse(body).Warnings.join(), /do not count/, terms)
      }
      await done(owner, 'POST', '/photos?x-deal-config=', { Terms: [owners] })
      await store(owner, 'nonsense', 'these are no terms')
      t.equal(await deal('nonsense'), 'DealTermsInvalid', 'a reader of the counts sees what is wrong')
    })

    await t.test('a caller who may write but not pay cannot choose what the owner pays', async (t) => {
      for (const [who, key, stored, paid] of [
        ['no signature', 'pub/a', () => store(undefined, 'pub/a'), owners],
        ['a key pair without the action', 'a', () => store(writer, 'a'), owners],
        ['a link of such a key pair', 'link', () => storeByLink(scene, writer, 'link'), owners],
        ['the owner', 'own', () => store(owner, 'own'), strangers],
        ['a key pair with the action', 'paid', () => store(payer, 'paid'), strangers],
        ['a link of one', 'paid-link', () => storeByLink(scene, payer, 'paid-link'), strangers],
        ['a copy by the owner', 'copied', () => copy(owner, 'pub/a', 'copied'), owners],
        ['a copy by the owner of his', 'of-owner', () => copy(owner, 'own', 'of-owner'), strangers],
        ['a copy by another of them', 'of-writer', () => copy(writer, 'own', 'of-writer'), owners],
        ['parts', 'parts', () => storeInParts(scene, writer, 'parts'), owners],
        ['parts of a payer', 'paid-parts', () => storeInParts(scene, payer, 'paid-parts'), strangers],
        ['a form', 'form', () => storeByForm(scene, writer, 'form', true), owners],
        ['a form of a payer', 'paid-form', () => storeByForm(scene, payer, 'paid-form', true), strangers],
        ['terms of its sender', 'open-form', () => storeByForm(scene, payer, 'open-form', false), owners],
        ['a form without a signature', 'pub/form', () => storeByForm(scene, undefined, 'pub/form', true), owners],
        ['another in its place', 'own', () => store(writer, 'own'), owners],
        ['a write past the proxy', 'paid', () => storePastTheProxy(scene, 'paid'), owners],
      ] as const) {
        await stored()
        t.match(await deal(key), paid, who)
      }
      const replace = { 'x-amz-metadata-directive': 'REPLACE', [TERMS]: STRANGE }
      await copy(owner, 'pub/a', 'restated', replace)
      await done(owner, 'PUT', '/photos/restated?tagging=', '<Tagging><TagSet/></Tagging>')
      t.match(await deal('restated', payer), strangers, 'what changes nothing of the metadata leaves the right')

      await copy(owner, 'of-writer', 'of-writer', { 'x-amz-storage-class': 'GLACIER_IR' })
      const job = await until('the deal of the class is made', async () => {
        const [last] = await scene.host.own.jobs.list({
          limit: 1,
          matches: ({ resource }) => /of-writer$/.test(resource),
        })
        return last?.status === 'Complete' && last
      })
      t.match(job.result, { Deal: owners }, 'a copy in place adds no right')
    })

    await t.test('lifecycle rules pay what the owner states', async (t) => {
      await store(undefined, 'pub/aging/a')
      await store(writer, 'pub/aging/b')
      await store(payer, 'pub/aging/c')
      const rules =
        '<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix>pub/aging/</Prefix></Filter>' +
        '<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule></LifecycleConfiguration>'
      await done(owner, 'PUT', '/photos?lifecycle=', rules)
      scene.clock.ahead = 3 * DAY_MS
      const deals = await until('three deals are made', async () => {
        const { body } = await send(owner, 'GET', '/-/deal/v1/deals')
        const { Deals } = JSON.parse(body) as { Deals: { Key: string; Cause: string }[] }
        const paid = Deals.filter(({ Cause }) => Cause === 'lifecycle')
        return paid.length === 3 && paid
      })
      for (const [name, paid] of Object.entries({ a: owners, b: owners, c: strangers })) {
        const made = deals.find(({ Key }) => Key === `pub/aging/${name}`)
        t.match(made, paid, name)
      }
    })
  })

t.test('terms of an identity that acts as another account count for what that account pays', async (t) => {
  const gateway = await startEmbedded(t, 'full')
  const other = { accessKeyId: 'other', secretAccessKey: 'other-secret-key' }
  // The same account by name: for the server it is another one than its own, which it uses without naming it.
  const account = { accessKey: gateway.accessKey, secretKey: gateway.secretKey }
  const { endpoint } = await startDealProxy(t, gateway, {
    identities: [owner, { ...other, account }],
    deal: { terms: { minerId: 't01000', price: '0.000000001', duration: 600_000 } },
  })
  const send = (keys: Keys, method: string, path: string, wanted: Partial<Wanted> = {}) =>
    signedRequest(endpoint, keys, { method, path, ...wanted })
  t.equal((await send(owner, 'PUT', '/photos')).status, 200)
  t.equal((await send(other, 'PUT', '/photos/a', { body: BODY, headers: { [TERMS]: STRANGE } })).status, 200)
  const deal = async (keys: Keys) => {
    const { body } = await send(keys, 'POST', '/photos/a', { query: { 'x-deal': '', format: 'json' } })
    return JSON.parse(body).Deal
  }
  t.match(await deal(owner), owners, 'the server pays what its operator states')
  t.match(await deal(other), strangers, 'the other account pays what its identity states')

  const OfflineTerms = { MinerId: 't01000', MaxPrice: '0.000001', DurationEpochs: 518_400 }
  await signedCall(endpoint, owner, 'POST', '/photos?x-deal-config=', { body: { OfflineTerms } })
  const quote = (keys: Keys) =>
    signedCall(endpoint, keys, 'POST', '/photos/a?x-deal-quote=&format=json', {
      body: { StorageClass: 'DEEP_ARCHIVE' },
    })
  t.match(await quote(owner), { status: 200, body: /next offline deal/ })
  t.match(await quote(other), { status: 400, body: /own gateway account/ }, 'as the copy is refused')
})

t.test('terms, caps and renewals of a bucket are for those who may have deals made', async (t) => {
  const setter = { accessKeyId: 'setter', secretAccessKey: 'setter-secret-key' }
  const actions = ['deal:SetBucketDealConfiguration']
  const { endpoint } = await startDealProxy(t, await startEmbedded(t, 'full'), {
    identities: [owner, { ...setter, rights, actions }, { ...payer, rights, actions: [...actions, 'deal:Create*'] }],
  })
  const same = { Terms: [owners], MaxSpendPerDay: '0.5' }
  const set = async (keys: Keys, configuration: object) => {
    const query = { 'x-deal-config': '' }
    const body = JSON.stringify(configuration)
    return (await signedRequest(endpoint, keys, { method: 'POST', path: '/photos', query, body })).status
  }
  t.equal((await signedRequest(endpoint, owner, { method: 'PUT', path: '/photos' })).status, 200)
  t.equal(await set(setter, { Terms: [strangers] }), 403)
  t.equal(await set(owner, { Terms: [owners], MaxSpendPerDay: '1' }), 200)
  t.equal(await set(setter, { Terms: [owners], MaxSpendPerDay: '0.5', ReadThrough: true }), 200, 'less, on the same')
  t.equal(await set(setter, { Terms: [owners], MaxSpendPerDay: '1' }), 403, 'a higher cap')
  t.equal(await set(setter, { Terms: [owners] }), 403, 'no cap')
  t.equal(await set(setter, { MaxSpendPerDay: '0.5' }), 403, 'those of the server')
  t.equal(await set(setter, { Terms: [owners], MaxSpendPerDay: '0.5', RenewBeforeDays: 30 }), 403, 'renewals')
  t.equal(await set(payer, { Terms: [owners], MaxSpendPerDay: '0.5', RenewBeforeDays: 30 }), 200)
  t.equal(await set(setter, { ...same, PublicNetwork: 'encrypted-only' }), 200)
  t.equal(await set(setter, { ...same, PublicNetwork: 'warn' }), 403, 'deals of what is not encrypted')
  t.equal(await set(setter, same), 403, 'the same by its default')
  t.equal(await set(payer, { ...same, PublicNetwork: 'allow' }), 200)
})
