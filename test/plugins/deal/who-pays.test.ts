import { randomUUID } from 'node:crypto'
import { S3Client } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t, { type Test } from 'tap'
import { DAY_MS } from '../../../src/common/time.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import {
  presignedRequest,
  sendAsIs,
  signedCall,
  signedRequest,
  type TextAnswer,
  type Wanted,
} from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { type DealProxy, owner, startDealProxy, startEmbedded } from './proxy.js'

/**
 * Who says what a deal costs. The terms of the strangers below are near what their provider asks, and under the cap of
 * a day: nothing but the missing right keeps them from being paid.
 */

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

class Scene {
  ahead = 0
  readonly mode: 'full' | 'legacy'
  #proxy: DealProxy | undefined

  constructor(mode: 'full' | 'legacy') {
    this.mode = mode
  }

  async start(t: Test): Promise<void> {
    this.#proxy = await startDealProxy(t, await startEmbedded(t, this.mode), {
      identities,
      now: () => Date.now() + this.ahead,
      deal: { maxSpendPerDay: undefined, maxTimesAsk: undefined },
      proxy: { lifecycleIntervalMs: 100 },
    })
    t.equal((await this.send(owner, 'PUT', '/photos')).status, 200)
    await this.host.own.gateway.setPolicy('photos', 'pub/', 'writeonly')
  }

  get #started(): DealProxy {
    if (!this.#proxy) throw new Error('not started')
    return this.#proxy
  }
  get endpoint() {
    return this.#started.endpoint
  }
  get host() {
    return this.#started.host
  }

  /** Without keys: not signed. */
  send(
    keys: Keys | undefined,
    method: string,
    target: string,
    body?: string | object,
    headers: Wanted['headers'] = {},
  ): Promise<TextAnswer> {
    if (keys) return signedCall(this.endpoint, keys, method, target, { body, headers })
    return sendAsIs(this.endpoint, { method, body: String(body ?? '') }, target, { ...headers })
  }

  async store(keys: Keys | undefined, key: string, terms?: string, headers: Wanted['headers'] = {}): Promise<void> {
    const { status, body } = await this.send(keys, 'PUT', `/photos/${key}`, BODY, {
      ...(terms !== undefined && { [TERMS]: terms }),
      ...headers,
    })
    if (status !== 200) throw new Error(`${key}: ${status} ${body}`)
  }

  async configure(configuration: object): Promise<void> {
    const { status, body } = await this.send(owner, 'POST', '/photos?x-deal-config=', configuration)
    if (status !== 200) throw new Error(body)
  }

  /** The deal that the owner gets who asks for one and says nothing. */
  async deal(key: string, keys: Keys = owner) {
    const { status, body } = await this.send(
      keys,
      'POST',
      `/photos/${key}?x-deal=&format=json`,
      {},
      { 'x-amz-client-token': randomUUID() },
    )
    return status === 200 ? JSON.parse(body).Deal : JSON.parse(body).Code
  }
}

for (const mode of ['full', 'legacy'] as const)
  t.test(mode, async (t) => {
    await farFromMidnight()
    const scene = new Scene(mode)
    await scene.start(t)

    await t.test('without the right, terms may be narrower than those of the owner', async (t) => {
      await scene.store(writer, 'none', STRANGE)
      const none = await scene.send(owner, 'POST', '/photos/none?x-deal=')
      t.equal(none.code, 'DealTermsRequired')
      t.match(none.body, /did not hold the action deal:CreateObjectDeal/)

      await scene.configure({ Terms: [owners] })
      const narrower = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518_400 }
      await scene.store(writer, 'narrower', 'miner=t01000;price=0.0000000005;duration=518400;fast=false')
      t.match(await scene.deal('narrower'), { ...narrower, FastRetrieval: false })
      for (const [i, terms] of [
        'price=0.0000000011',
        'duration=600001',
        'duration=0',
        'miner=t01004;price=0.0000000005',
        'verified=true',
        'price=0.0000000005;confirm=true',
        'these are no terms',
      ].entries()) {
        await scene.store(writer, `wider-${i}`, terms)
        t.match(await scene.deal(`wider-${i}`), owners, terms)
      }
      const quote = await scene.send(owner, 'POST', '/photos/wider-0?x-deal-quote=&format=json')
      t.match(JSON.parse(quote.body), { Price: owners.Price, Warnings: [/do not count/] })
      await scene.store(owner, 'nonsense', 'these are no terms')
      t.equal(await scene.deal('nonsense'), 'DealTermsInvalid', 'a reader of the counts sees what is wrong')
    })

    await t.test('a caller who may write but not pay cannot choose what the owner pays', async (t) => {
      await scene.store(undefined, 'pub/anonymous', STRANGE)
      await scene.store(writer, 'by-writer', STRANGE)
      t.match(await scene.deal('pub/anonymous'), owners, 'stored without a signature')
      t.match(await scene.deal('by-writer'), owners, 'stored by a key pair without the action')
      await presignedRequest(scene.endpoint, writer, {
        ...{ method: 'PUT', path: '/photos/by-link-of-writer', body: BODY },
        headers: { [TERMS]: STRANGE },
      })
      t.match(await scene.deal('by-link-of-writer'), owners, 'stored by a link that such a key pair has signed')

      await scene.store(owner, 'own', STRANGE)
      t.match(await scene.deal('own'), strangers, 'the owner means what he states')
      await scene.store(payer, 'by-payer', STRANGE)
      t.match(await scene.deal('by-payer'), strangers, 'and so does a key pair with the action')
      const link = { method: 'PUT', path: '/photos/by-link', body: BODY, headers: { [TERMS]: STRANGE } }
      t.equal((await presignedRequest(scene.endpoint, payer, link)).status, 200)
      t.match(await scene.deal('by-link'), strangers, 'and one that has signed a link')

      await scene.store(writer, 'own', STRANGE)
      t.match(await scene.deal('own'), owners, 'the right of an object does not pass to the one in its place')
      await scene.send(owner, 'PUT', '/photos/own?tagging=', '<Tagging><TagSet/></Tagging>')
      await scene.send(owner, 'PUT', '/photos/by-payer?tagging=', '<Tagging><TagSet/></Tagging>')
      t.match(await scene.deal('by-payer', payer), strangers, 'what changes nothing of the metadata leaves the right')
    })

    await t.test('an object that was written past the proxy states nothing', async (t) => {
      await scene.store(owner, 'a', STRANGE)
      t.match(await scene.deal('a'), strangers)
      const upload = scene.host.own.gateway.upload('photos', 'a', BODY.length, {
        ...{ contentType: undefined, headers: {}, etag: undefined },
        metadata: { 'deal-terms': STRANGE },
      })
      await upload.write(Buffer.from(BODY))
      await upload.commit(anyOrder())
      t.match(await scene.deal('a'), owners)
    })

    await t.test('a copy adds no right to terms, and keeps none that the copier does not hold', async (t) => {
      await scene.store(undefined, 'pub/a', STRANGE)
      await scene.store(owner, 'own', STRANGE)
      const copy = async (keys: Keys, from: string, to: string, headers: Record<string, string> = {}) => {
        const { status, body } = await scene.send(keys, 'PUT', `/photos/${to}`, undefined, {
          'x-amz-copy-source': `/photos/${from}`,
          ...headers,
        })
        t.match({ status, body }, { status: 200, body: '<CopyObjectResult' })
      }
      await copy(owner, 'pub/a', 'copied')
      t.match(await scene.deal('copied'), owners)
      await copy(owner, 'pub/a', 'restated', { 'x-amz-metadata-directive': 'REPLACE', [TERMS]: STRANGE })
      t.match(await scene.deal('restated'), strangers)
      await copy(writer, 'own', 'of-writer')
      t.match(await scene.deal('of-writer'), owners)
      await copy(owner, 'own', 'of-owner')
      t.match(await scene.deal('of-owner'), strangers)
      await copy(writer, 'own', 'in-place')
      await copy(owner, 'in-place', 'in-place', { 'x-amz-storage-class': 'GLACIER_IR' })
      const job = await until('the deal of the class is made', async () => {
        const [last] = await scene.host.own.jobs.list({
          limit: 1,
          matches: (one) => one.resource.endsWith('/in-place'),
        })
        return last?.status === 'Complete' && last
      })
      t.match(job.result, { Deal: owners }, 'a copy in place neither')
    })

    await t.test('uploads in parts and forms', async (t) => {
      for (const [keys, wanted] of [
        [writer, owners],
        [payer, strangers],
      ] as const) {
        const key = `parts-of-${keys.accessKeyId}`
        const begun = await scene.send(keys, 'POST', `/photos/${key}?uploads=`, undefined, { [TERMS]: STRANGE })
        const uploadId = /<UploadId>([^<]+)/.exec(begun.body)?.[1] ?? ''
        const part = await scene.send(keys, 'PUT', `/photos/${key}?partNumber=1&uploadId=${uploadId}`, BODY)
        const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
        const done = await scene.send(keys, 'POST', `/photos/${key}?uploadId=${uploadId}`, list)
        t.equal(done.status, 200, done.body)
        t.match(await scene.deal(key), wanted, key)
      }

      const post = async (keys: Keys, Key: string, fixed: boolean) => {
        const credentials = keys
        const client = new S3Client({
          endpoint: scene.endpoint,
          region: 'us-east-1',
          forcePathStyle: true,
          credentials,
        })
        const { url, fields } = await createPresignedPost(client, {
          ...{ Bucket: 'photos', Key },
          ...(fixed ? { Fields: { [TERMS]: STRANGE } } : { Conditions: [['starts-with', `$${TERMS}`, '']] }),
        })
        client.destroy()
        const form = new FormData()
        for (const [name, value] of Object.entries({ ...fields, [TERMS]: STRANGE })) form.append(name, value)
        form.append('file', new Blob([BODY]), 'f')
        t.equal((await fetch(url, { method: 'POST', body: form })).status, 204)
      }
      await post(payer, 'form', true)
      t.match(await scene.deal('form'), strangers, 'the policy of the form states the terms')
      await post(payer, 'open-form', false)
      t.match(await scene.deal('open-form'), owners, 'the policy leaves them to the sender of the form')
      await post(writer, 'form-of-writer', true)
      t.match(await scene.deal('form-of-writer'), owners)
      const form = new FormData()
      for (const [name, value] of [
        ['key', 'pub/form'],
        [TERMS, STRANGE],
      ] as const)
        form.append(name, value)
      form.append('file', new Blob([BODY]), 'f')
      t.equal((await fetch(`${scene.endpoint}/photos`, { method: 'POST', body: form })).status, 204)
      t.match(await scene.deal('pub/form'), owners, 'a form without a signature')
    })

    await t.test('lifecycle rules pay what the owner states', async (t) => {
      await scene.store(undefined, 'pub/aging/a', STRANGE)
      await scene.store(writer, 'pub/aging/b', STRANGE)
      await scene.store(payer, 'pub/aging/c', STRANGE)
      const rules =
        '<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix>pub/aging/</Prefix></Filter>' +
        '<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule></LifecycleConfiguration>'
      t.equal((await scene.send(owner, 'PUT', '/photos?lifecycle=', rules)).status, 200)
      scene.ahead = 3 * DAY_MS
      const deals = await until('three deals are made', async () => {
        const { body } = await scene.send(owner, 'GET', '/-/deal/v1/deals')
        const { Deals } = JSON.parse(body) as { Deals: { Key: string; Cause: string }[] }
        const paid = Deals.filter(({ Cause }) => Cause === 'lifecycle')
        return paid.length === 3 && paid
      })
      const of = (name: string) => deals.find(({ Key }) => Key === `pub/aging/${name}`)
      t.match(of('a'), owners)
      t.match(of('b'), owners)
      t.match(of('c'), strangers)
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
