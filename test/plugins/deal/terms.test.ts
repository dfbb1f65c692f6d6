import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { estimatePieceSize } from '../../../plugins/deal/terms/piece-size.js'
import { mostPieceBytes } from '../../../plugins/deal/terms/quote.js'
import { metadataTerms, resolveTerms, staysWithin } from '../../../plugins/deal/terms/resolve-terms.js'
import { costOf, divideUp, readTerms, type StatedTerms } from '../../../plugins/deal/terms/terms.js'
import type { S3Error } from '../../../src/common/errors/s3-error.js'
import { formatAmount, parseAmount } from '../../../src/index.js'
import { signedCall, type TextAnswer } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { type DealProxy, owner, startDealProxy, startEmbedded } from './proxy.js'

const whole: StatedTerms = { MinerId: 'f01000', Price: '0.000005', DurationEpochs: 518400 }

function failure(run: () => unknown): S3Error {
  try {
    run()
  } catch (error) {
    return error as S3Error
  }
  throw new Error('it did not throw')
}

t.test('the pieces of an offline deal are never more than what is reserved for them', async (t) => {
  const GiB = 2 ** 30
  const object = 4.1 * GiB
  // Two of them do not fit into a CAR of 8 GiB, so that each is a piece of its own.
  for (const objects of [2, 3, 7, 100]) {
    const pieces = objects * estimatePieceSize(object, 1)
    t.ok(mostPieceBytes(objects * object, objects) >= pieces, `${objects} objects`)
  }
  t.equal(mostPieceBytes(object, 1), 8 * GiB)
  t.equal(mostPieceBytes(3000, 2), estimatePieceSize(3000, 2))
})

t.test('amounts are exact', async (t) => {
  for (const [text, formatted = text] of [
    ...[['0'], ['1'], ['0.000005'], ['123456789012345678901234.000000000000000001'], ['10.1']],
    ...[
      ['5e-6', '0.000005'],
      ['1.5E-8', '0.000000015'],
      ['0E-18', '0'],
      ['1.50000000000000000000000', '1.5'],
    ],
  ] as [string, string?][])
    t.equal(formatAmount(parseAmount(text) ?? -1n), formatted)
  const bad = ['', '-1', '+1', '.5', '1.', '0x1', '1e-19', '1 fil', 'NaN', '1e400', '0.0000000000000000001', '१']
  for (const text of bad) t.equal(parseAmount(text), undefined, text)
  t.same([divideUp(10n, 3n), divideUp(9n, 3n)], [4n, 3n])
})

t.test('terms are read as anybody may write them, and every violation is told', async (t) => {
  t.same(readTerms(whole), {
    minerId: 'f01000',
    price: '0.000005',
    duration: 518400,
    verifiedDeal: false,
    fastRetrieval: true,
  })
  t.same(readTerms({ ...whole, Price: 5e-7, DurationEpochs: '1', VerifiedDeal: 'TRUE', FastRetrieval: 'false' }), {
    minerId: 'f01000',
    price: '0.0000005',
    duration: 1,
    verifiedDeal: true,
    fastRetrieval: false,
  })
  t.equal(costOf(readTerms(whole)), parseAmount('2.592'))
  const error = failure(() =>
    readTerms({
      MinerId: 'f0; rm -rf /',
      Price: '-1',
      DurationEpochs: '1.5',
      VerifiedDeal: 'perhaps',
      FastRetrieval: '1',
    }),
  )
  t.equal(error.code, 'DealTermsInvalid')
  t.equal((error.fields.Violations as string[]).length, 5)
  t.match(failure(() => readTerms({})).fields.Violations, [/^MinerId/, /^Price/, /^DurationEpochs/])
  for (const DurationEpochs of ['0', 0, '-5', '99999999999', '', 10_512_001])
    t.equal(failure(() => readTerms({ ...whole, DurationEpochs })).code, 'DealTermsInvalid', String(DurationEpochs))
})

t.test('each term comes from the first place that states it', async (t) => {
  const defaults = { ...whole, MinerId: 'f0defaults' }
  const configuration = {
    Terms: [
      { MinerId: 'f0bucket', Price: '2' },
      { StorageClass: 'GLACIER' as const, MinerId: 'f0class' },
    ],
  }
  const metadata = { 'deal-terms': 'miner=f0metadata; price=3;fast=false' }
  const metadataAuthorized = true
  const miner = (sources: Parameters<typeof resolveTerms>[0]) => resolveTerms(sources).minerId
  t.equal(miner({ defaults }), 'f0defaults')
  t.equal(miner({ defaults, configuration }), 'f0bucket')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER' }), 'f0class')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER_IR' }), 'f0bucket')
  t.equal(miner({ defaults, configuration, storageClass: 'GLACIER', metadata, metadataAuthorized }), 'f0metadata')
  t.equal(miner({ defaults, configuration, metadata, request: { MinerId: 'f0request' } }), 'f0request')
  const request = { MinerId: '', DurationEpochs: 7 }
  const all = resolveTerms({ defaults, configuration, metadata, metadataAuthorized, request })
  const fromMetadata = { minerId: 'f0metadata', price: '3', fastRetrieval: false }
  t.same(all, { ...fromMetadata, duration: 7, verifiedDeal: false })
  t.equal(failure(() => resolveTerms({})).code, 'DealTermsRequired')
  t.equal(failure(() => resolveTerms({ request: { FastRetrieval: true } })).code, 'DealTermsInvalid')
  for (const text of ['miner', 'miner=a=b c', 'price=1;price=2', 'toString=1', 'miner=f01;speed=fast'])
    t.equal(failure(() => metadataTerms(text)).code, 'DealTermsInvalid', text)
  t.same(metadataTerms(' '), {})
})

t.test('metadata of a caller without the right counts as a whole, and only within the terms of the owner', (t) => {
  const owner = { MinerId: 'f01', Price: '2', DurationEpochs: 100 }
  for (const text of [
    '',
    'price=2',
    'price=1.9;duration=100',
    'miner=f01;duration=1;fast=false',
    'verified=false',
    'fast=true',
  ])
    t.equal(staysWithin(text, owner), true, text)
  for (const text of [
    ...['price=2.000000000000000001', 'price=-1', 'duration=101', 'duration=0', 'miner=f02', 'verified=true'],
    ...['price=1;duration=101', 'price=1;confirm=true', 'price=1;price=1', 'price', 'verified=perhaps'],
  ])
    t.equal(staysWithin(text, owner), false, text)
  t.equal(staysWithin('verified=true', { ...owner, VerifiedDeal: true }), true)
  t.equal(staysWithin('verified=false', { ...owner, VerifiedDeal: 'true' }), false, 'the full price instead of DataCap')
  t.equal(staysWithin('fast=true', { ...owner, FastRetrieval: false }), false)
  for (const text of ['price=0', 'duration=1', 'miner=f01']) t.equal(staysWithin(text, {}), false, `${text} of nothing`)
  t.end()
})

/**
 * What deals may cost by default: so much a day, and not many times what the provider asks.
 */

const BODY = 'x'.repeat(200_000)

/** A piece of 256 KiB; t01000 asks 0.0000005 fil per GiB and epoch. */
const ASKED = '0.000000000122070313'
const fair = { MinerId: 't01000', Price: '0.000000001', DurationEpochs: 518_400 }
const dear = { ...fair, Price: '0.00000001' }

/** 51.84 fil. */
const ruinous = { ...fair, Price: '0.0001' }

type Server = Pick<DealProxy, 'endpoint' | 'host'>

async function start(t: Test, mode: 'full' | 'legacy', deal: Parameters<typeof startDealProxy>[2] = {}) {
  const unset = { maxSpendPerDay: undefined, maxTimesAsk: undefined }
  const server = await startDealProxy(t, await startEmbedded(t, mode), { ...deal, deal: { ...unset, ...deal.deal } })
  t.equal((await send(server, 'PUT', '/photos')).status, 200)
  t.equal((await send(server, 'PUT', '/photos/a', BODY)).status, 200)
  return server
}

function send(
  { endpoint }: Server,
  method: string,
  target: string,
  body?: string | object,
  headers: Record<string, string> = {},
): Promise<TextAnswer> {
  return signedCall(endpoint, owner, method, target, { body, headers })
}

/** The code of the refusal, or the price of the deal. */
async function ask(server: Server, target: string, body: object = {}): Promise<string> {
  const answer = await send(server, 'POST', `${target}?x-deal=&format=json`, body, {
    'x-amz-client-token': randomUUID(),
  })
  const document = JSON.parse(answer.body)
  return answer.status === 200 ? document.Deal.Price : document.Code
}

t.test('the price of a class is compared with the ask for the bytes that are sent', async (t) => {
  const server = await start(t, 'full')
  // As it is, it fits into a piece of 64 KiB; encrypted, into one of 128 KiB, for which t01000 asks twice as much.
  const body = 'x'.repeat(64_256)
  const headers = {
    'x-amz-storage-class': 'GLACIER',
    'x-amz-meta-deal-terms': 'miner=t01000;price=0.0000000004;duration=518400',
  }
  const refused = await send(server, 'PUT', '/photos/plain', body, headers)
  t.same([refused.status, refused.code], [400, 'DealPriceTooHigh'])
  const sse = { ...headers, 'x-amz-server-side-encryption': 'AES256' }
  const stored = await send(server, 'PUT', '/photos/sealed', body, sse)
  t.equal(stored.status, 200, stored.body)
})

t.test('a price far above the ask has to be confirmed', async (t) => {
  const server = await start(t, 'full')
  const refused = await send(server, 'POST', '/photos/a?x-deal=&format=json', dear)
  t.equal(refused.status, 400)
  t.match(JSON.parse(refused.body), {
    Code: 'DealPriceTooHigh',
    Message: new RegExp(`more than 10 times what t01000 asks .* ${ASKED}\\.`),
    Details: { MinerId: 't01000', Price: dear.Price, AskedPrice: ASKED },
  })
  t.same(await server.host.own.jobs.list({ limit: 10 }), [], 'nothing is begun')
  t.equal(await ask(server, '/photos', dear), 'DealPriceTooHigh', 'nor for a bucket')
  t.equal(await ask(server, '/photos/a', { ...fair, MinerId: 't01007' }), 'DealPriceTooHigh', 'who asks for nothing')
  t.equal(await ask(server, '/photos/a', { ...fair, MinerId: 't01007', Price: '0' }), '0')
  t.equal(await ask(server, '/photos/a', fair), fair.Price)
  t.equal(await ask(server, '/photos', fair), fair.Price)
  t.equal(await ask(server, '/photos/a', { ...dear, ConfirmPrice: true }), dear.Price)
  t.equal(await ask(server, '/photos', { ...dear, ConfirmPrice: true }), dear.Price)
  t.equal(await ask(server, '/photos/a', { ...fair, ConfirmPrice: 'perhaps' }), 'DealTermsInvalid')

  const plain = (warning: string) => /is not encrypted/.test(warning)
  const quote = async (body: object) => {
    const answer = await send(server, 'POST', '/photos/a?x-deal-quote=&format=json', body)
    return JSON.parse(answer.body).Warnings.filter((warning: string) => !plain(warning))
  }
  t.match(await quote(dear), [/more than 10 times that: the deal is refused without ConfirmPrice/])
  t.same(await quote({ ...dear, ConfirmPrice: true }), [])
  t.same(await quote(fair), [])
  const { body } = await send(server, 'POST', '/photos/a?x-deal-quote=&format=json', fair)
  const { DailyCap, LeftToday } = JSON.parse(body)
  t.equal(DailyCap, '10')
  t.ok(Number(LeftToday) < 10, `of which ${LeftToday} are left`)
})

t.test('so it has where the bucket, the object or the options state it', async (t) => {
  const terms = { minerId: 't01000', price: dear.Price, duration: fair.DurationEpochs }
  const server = await start(t, 'full', { deal: { terms } })
  t.equal(await ask(server, '/photos/a'), 'DealPriceTooHigh')
  t.equal(await ask(server, '/photos/a', { ConfirmPrice: true }), dear.Price)
  const configure = (Terms: object[]) => send(server, 'POST', '/photos?x-deal-config=', { Terms })
  await configure([{ ...dear, Price: '0.000000011' }])
  t.equal(await ask(server, '/photos/a'), 'DealPriceTooHigh')
  await configure([{ ...dear, Price: '0.000000011', ConfirmPrice: true }])
  t.equal(await ask(server, '/photos/a'), '0.000000011')
  t.equal(await ask(server, '/photos/a', { Price: dear.Price }), 'DealPriceTooHigh', 'another price confirms none')
  await configure([])

  const store = (key: string, terms: string) =>
    send(server, 'PUT', `/photos/${key}`, BODY, {
      'x-amz-storage-class': 'GLACIER',
      'x-amz-meta-deal-terms': terms,
    })
  const stated = `miner=t01000;price=${dear.Price};duration=518400`
  const refused = await store('b', stated)
  t.same([refused.status, refused.code], [400, 'DealPriceTooHigh'])
  t.equal((await send(server, 'HEAD', '/photos/b')).status, 404, 'nothing is stored')
  t.equal((await store('b', `${stated};confirm=true`)).status, 200)
  const job = await until('the deal is made', async () => {
    const [last] = await server.host.own.jobs.list({ limit: 1, matches: ({ resource }) => resource === '/photos/b' })
    return last?.status === 'Complete' && last
  })
  t.match(job.result, { Deal: { Price: dear.Price } })
})

t.test('the limit can be another one, or none', async (t) => {
  const higher = await start(t, 'full', { deal: { maxTimesAsk: 100 } })
  t.equal(await ask(higher, '/photos/a', dear), dear.Price)
  t.equal(await ask(higher, '/photos/a', ruinous), 'DealPriceTooHigh')
  const none = await start(t, 'full', { deal: { maxTimesAsk: 'none', maxSpendPerDay: 'none' } })
  t.equal(await ask(none, '/photos/a', ruinous), ruinous.Price)
})

t.test('ten fil a day may be spent by default', async (t) => {
  await farFromMidnight()
  const server = await start(t, 'full')
  const confirmed = { ...ruinous, ConfirmPrice: true }
  t.equal(await ask(server, '/photos/a', confirmed), 'SpendCapReached')
  // 5.184 fil.
  const half = { ...confirmed, Price: '0.00001' }
  t.equal(await ask(server, '/photos/a', half), half.Price)
  t.equal(await ask(server, '/photos/a', half), 'SpendCapReached')
  t.equal(await ask(server, '/photos', half), 'SpendCapReached')
})

t.test('legacy: a gateway that tells no ask has none to compare with', async (t) => {
  const server = await start(t, 'legacy')
  t.equal(await ask(server, '/photos/a', dear), dear.Price)
  const quote = await send(server, 'POST', '/photos/a?x-deal-quote=&format=json', dear)
  t.match(JSON.parse(quote.body), { Candidates: [], Warnings: [/does not list its storage providers/] })
  t.match(await send(server, 'GET', '/-/deal/v1/providers'), { status: 501, body: /^(?!.*makes no deals)/s })
})
