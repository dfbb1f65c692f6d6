import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { estimatePieceSize } from '../../../plugins/deal/terms/piece-size.js'
import { mostPieceBytes } from '../../../plugins/deal/terms/quote.js'
import { formatAmount, parseAmount } from '../../../src/plugins/parts/fil.js'
import { type DealProxy, owner, startDealProxy, startEmbedded } from '../../support/plugins/deal-proxy.js'
import { signedCall, type TextAnswer } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'

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
})

// What deals may cost by default: so much a day, and not many times what the provider asks.

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
