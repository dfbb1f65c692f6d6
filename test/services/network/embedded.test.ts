import { randomBytes } from 'node:crypto'
import { mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DAY_MS } from '../../../common/time.js'
import type { Fault } from '../../../services/network/embedded/control.js'
import { embeddedSchema } from '../../../services/network/embedded/embedded-network.js'
import type { DealProgress, DealTerms } from '../../../services/network/network.js'
import { createCommit, pack } from '../../../services/network/pack/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import {
  type Asked,
  ask,
  bytesOf,
  cars,
  content,
  open,
  other,
  packedFile,
  provider,
  staged,
  terms,
} from './embedded-network.js'
import { keptProposal } from './verify-proposal.js'

const commit = createCommit()
const notRetrievable = { name: 'NetworkError', code: 'NotRetrievable' }

t.test('a deal is packed, signed, handed over, kept and delivered', async (t) => {
  const folder = temporaryFolder(t)
  const first = await open(t, folder, { commit })
  const all = { 'a/one': content('one', 5000), 'a/two': content('two', 2500), 'b/empty': Buffer.alloc(0) }
  const progress: DealProgress[] = []
  const asked = ask('a deal', all, { onProgress: (one) => progress.push(one) })
  const made = await first.deal(asked)
  t.match(made, {
    reference: 'a deal',
    terms,
    walletAddress: first.wallet,
    dataCid: /^bafy/,
    pieceCid: /^baga6ea4sea/,
    dealCid: /^bafyrei/,
    startEpoch: first.epoch() + 10,
    endEpoch: first.epoch() + 10 + terms.duration,
  })
  t.ok(Math.abs(made.timeStamp / 1000 - Date.now()) < 60_000, 'the time is in microseconds')
  t.same([...asked.packed.keys()], Object.keys(all))
  t.same([...new Set(progress.map(({ phase }) => phase))], ['Packing', 'Committing', 'Sending', 'Done'])
  t.match(progress.at(-1), { phase: 'Done', bytesDone: made.carSize, bytesTotal: made.carSize, filesDone: 3 })
  const [car = ''] = cars(folder)
  t.equal(statSync(join(folder, 'providers', provider.minerId, car)).size, made.carSize)
  t.same(staged(folder), [])
  await first.control.advance(2)
  await first.stop()
  t.same(await keptProposal(embeddedSchema, folder, made.dealCid), {
    pieceCid: made.pieceCid,
    pieceSize: made.pieceSize,
    verifiedDeal: false,
    client: first.wallet,
    provider: provider.minerId,
    label: made.dataCid,
    startEpoch: made.startEpoch,
    endEpoch: made.endEpoch,
    storagePricePerEpoch: 5n * 10n ** 17n,
    providerCollateral: 0n,
    clientCollateral: 0n,
  })

  const network = await open(t, folder)
  t.equal(network.kind, 'embedded')
  t.equal(network.wallet, first.wallet)
  t.same(await network.find('a deal'), made)
  const epoch = network.epoch()
  t.same(await network.status(made.dealCid), { ...made, state: 'StorageDealPublish', message: '', epoch })
  for (const [path, bytes] of Object.entries(all))
    t.ok((await bytesOf(network, made.dealCid, packedFile(asked, path))).equals(bytes), path)
  const file = packedFile(asked, 'a/one')
  for (const size of [file.size - 1, file.size + 1])
    await t.rejects(bytesOf(network, made.dealCid, { ...file, size }), notRetrievable, 'not the file that was packed')
  await t.rejects(
    bytesOf(network, made.dealCid, { ...file, cid: made.dataCid.replace('bafybei', 'bafkrei') }),
    notRetrievable,
    'not in this deal',
  )
  await t.rejects(bytesOf(network, 'bafyno', file), { code: 'NoSuchDeal' })
  await t.rejects(network.status('bafyno'), { code: 'NoSuchDeal' })
  t.equal(await network.find('another'), undefined)
})

t.test('the states of a deal move with the epochs', async (t) => {
  const folder = temporaryFolder(t)
  let network = await open(t, folder)
  const begin = network.epoch()
  const fast = ask('fast')
  const plain = ask('plain', undefined, { terms: { ...terms, fastRetrieval: false } })
  const { dealCid } = await network.deal(fast)
  const { dealCid: plainCid } = await network.deal(plain)
  const steps: [epochs: number, state: string, message: string, fast: boolean, plain: boolean][] = [
    [0, 'StorageDealCheckForAcceptance', 'Provider state: StorageDealWaitingForData', false, false],
    [1, 'StorageDealCheckForAcceptance', 'Provider state: StorageDealPublish', false, false],
    [2, 'StorageDealPublish', '', true, false],
    [4, 'StorageDealPublish', '', true, false],
    [5, 'StorageDealSealing', '', true, false],
    [9, 'StorageDealSealing', '', true, false],
    [10, 'StorageDealActive', '', true, true],
    [10 + terms.duration - 1, 'StorageDealActive', '', true, true],
    [10 + terms.duration, 'StorageDealExpired', `ended at epoch ${begin + 10 + terms.duration}`, false, false],
  ]
  const delivers = async (cid: string, asked: Asked): Promise<boolean> => {
    const bytes = await bytesOf(network, cid, packedFile(asked)).catch((error) => t.match(error, notRetrievable))
    return Buffer.isBuffer(bytes)
  }
  for (const [epochs, state, message, ...expected] of steps) {
    const ahead = begin + epochs - network.epoch()
    if (ahead > 0) await network.control.advance(ahead)
    t.match(await network.status(dealCid), { state, message, epoch: begin + epochs }, `epoch ${epochs}`)
    t.same([await delivers(dealCid, fast), await delivers(plainCid, plain)], expected, `epoch ${epochs}`)
    if (epochs === 5) {
      await network.stop()
      network = await open(t, folder)
    }
  }
  await network.stop()
  t.same(cars(folder), [], 'the provider has dropped what ended')
  for (const epochs of [0, 0.5]) await t.rejects(network.control.advance(epochs), RangeError)
})

t.test('epochs follow the clock, also through a life of another pace', async (t) => {
  const folder = temporaryFolder(t)
  let nowMs = Date.UTC(2020, 7, 24, 22) + 86_400_000
  const now = (): number => nowMs
  let network = await open(t, folder, { virtual: false, now })
  t.equal(network.epochSeconds, 30)
  t.equal(network.epoch(), 2880, 'so many a day since the genesis')
  nowMs += 30_000
  t.equal(network.epoch(), 2881)
  nowMs -= 3_600_000
  t.equal(network.epoch(), 2881, 'not back')
  nowMs += 3_600_000
  await network.control.advance(1)
  t.equal(network.epoch(), 2882, 'one ahead of the time')
  const asked = ask('deal')
  const { dealCid } = await network.deal(asked)
  await network.stop()

  network = await open(t, folder, { virtual: false, now, epochSeconds: 0.001 })
  t.equal(network.epoch(), 2882)
  nowMs += 10
  t.match(await network.status(dealCid), { state: 'StorageDealActive', epoch: 2892 })
  await network.stop()
  nowMs += terms.duration
  network = await open(t, folder, { virtual: false, now, epochSeconds: 0.001 })
  t.match(await network.status(dealCid), { state: 'StorageDealExpired' }, 'right after any time it was down')
  await t.rejects(bytesOf(network, dealCid, packedFile(asked)), notRetrievable)
  await network.stop()

  network = await open(t, folder, { virtual: true, now })
  const { control } = network
  const epoch = network.epoch()
  nowMs += 1000
  t.equal(network.epoch(), epoch, 'a virtual clock stands still')
  await Promise.all([control.advance(3), control.advance(4)])
  t.equal(network.epoch(), epoch + 7)
  for (const epochSeconds of [0, 86_401])
    await t.rejects(open(t, temporaryFolder(t), { epochSeconds }), RangeError, `epochs of ${epochSeconds} s`)
})

t.test('a provider rejects what is not to its terms, after it was asked', async (t) => {
  const folder = temporaryFolder(t)
  const network = await open(t, folder)
  const small = { file: content('small', 10) }
  // A block that is there twice is in the CAR once.
  const large = { file: randomBytes(4_300_000) }
  const rejections: [string, Partial<DealTerms>, RegExp, Record<string, Buffer>?][] = [
    [
      'cheap',
      { price: '0.000000001' },
      /0\.000000001 fil per epoch is below 0\.000000003814697266, its price for a piece of 4096 bytes/,
    ],
    ['short', { duration: 518_399 }, /duration of 518399 epochs is not within 518400 to 1555200/],
    ['small', {}, /smaller than 512/, small],
    ['large', {}, /larger than 4194304/, large],
    ['verified', { verifiedDeal: true }, /no verified deals/],
  ]
  const made = new Map<string, string>()
  for (const [reference, change, , all] of rejections) {
    const { dealCid } = await network.deal(ask(reference, all, { terms: { ...terms, ...change } }))
    t.match(await network.status(dealCid), { state: 'StorageDealCheckForAcceptance' }, reference)
    made.set(reference, dealCid)
  }
  t.same(cars(folder), [], 'it takes nothing')
  t.same(staged(folder), [])
  await network.control.advance(2)
  for (const [reference, , message] of rejections) {
    const dealCid = made.get(reference) ?? ''
    t.match(await network.status(dealCid), { state: 'StorageDealError', message }, reference)
    await t.rejects(bytesOf(network, dealCid, { path: [], size: 1, cid: dealCid }), { code: 'NotRetrievable', message })
  }

  const free = { ...terms, minerId: other.minerId, price: '0', verifiedDeal: true }
  const { dealCid } = await network.deal(ask('verified for free', small, { terms: free }))
  await network.control.advance(2)
  t.match(await network.status(dealCid), { state: 'StorageDealPublish' })
})

t.test('the faults of a provider', async (t) => {
  const folder = temporaryFolder(t)
  let network = await open(t, folder)
  const { minerId } = provider
  const set = (fault: Fault, on: boolean): Promise<void> => network.control.setFault(minerId, fault, on)
  const all = { file: content('before', 2_500_000) }
  const asked = ask('before', all)
  const { dealCid } = await network.deal(asked)
  const elsewhere = ask('elsewhere', undefined, { terms: { ...terms, minerId: other.minerId } })
  const { dealCid: elsewhereCid } = await network.deal(elsewhere)
  await network.control.advance(2)
  const file = packedFile(asked)
  const delivers = async (cid = dealCid): Promise<boolean> => {
    const bytes = await bytesOf(network, cid, file).catch((error) => t.match(error, notRetrievable))
    return Buffer.isBuffer(bytes)
  }

  await set('offline', true)
  t.match(await network.providers(), [{ minerId, status: 'Offline' }, { status: 'Active' }])
  await t.rejects(network.deal(ask('offline')), { code: 'ProviderOffline' })
  t.notOk(await delivers())
  await network.stop()
  network = await open(t, folder)
  t.same(await network.control.faults(), [{ minerId, fault: 'offline' }], 'a fault stays')
  await set('offline', false)
  t.ok(await delivers())
  const chunks = network.retrieve(dealCid, file)[Symbol.asyncIterator]()
  t.notOk((await chunks.next()).done)
  await set('offline', true)
  await t.rejects(chunks.next(), { code: 'NotRetrievable' }, 'in the middle of a file')
  await set('offline', false)

  await set('slow', true)
  t.equal((await network.deal(ask('slow'))).startEpoch, network.epoch() + 100)
  const abort = new AbortController()
  const slowly = network.retrieve(dealCid, file, abort.signal)[Symbol.asyncIterator]()
  const next = slowly.next()
  abort.abort(new Error('enough'))
  await t.rejects(next, /enough/)
  await set('slow', false)

  await set('corruptsData', true)
  t.notOk(await delivers(), 'what it had')
  await set('corruptsData', false)
  t.notOk(await delivers(), 'what is corrupted stays so')
  const { dealCid: good } = await network.deal(ask('good', all))
  await network.control.advance(2)
  t.ok(await delivers(good))

  await set('losesData', true)
  t.same(cars(folder), [])
  t.notOk(await delivers(good))
  t.equal((await bytesOf(network, elsewhereCid, packedFile(elsewhere))).length, 3000, 'another provider has no fault')

  await t.rejects(network.control.setFault('t09999', 'offline', true), { code: 'NoSuchProvider' })
  await t.rejects(set('tired' as Fault, true), RangeError)
})
t.test('what fails leaves nothing', async (t) => {
  const folder = temporaryFolder(t)
  let failure: 'pack' | 'commit' | 'offline' | 'none' = 'pack'
  const network = await open(t, folder, {
    pack: async (...args) => {
      const car = await pack(...args)
      if (failure === 'pack') throw new Error('no pack')
      return car
    },
    commit: async (...args) => {
      if (failure === 'commit') throw new Error('no commit')
      if (failure === 'offline') await network.control.setFault(provider.minerId, 'offline', true)
      return commit(...args)
    },
  })
  const clean = (name: string): void => {
    t.same([...staged(folder), ...cars(folder)], [], name)
  }
  await t.rejects(network.deal(ask('deal')), /no pack/)
  clean('packing')
  failure = 'commit'
  await t.rejects(network.deal(ask('deal')), /no commit/)
  clean('committing')
  failure = 'none'
  for (const phase of ['Packing', 'Committing', 'Sending'] as const) {
    const abort = new AbortController()
    const { signal } = abort
    const onProgress = (progress: DealProgress): void => {
      if (progress.phase === phase) abort.abort(new Error('enough'))
    }
    await t.rejects(network.deal(ask('deal', undefined, { signal, onProgress })), /enough/)
    clean(phase)
  }
  failure = 'offline'
  await t.rejects(network.deal(ask('deal')), { code: 'ProviderOffline' })
  clean('offline after packing')
  await network.control.setFault(provider.minerId, 'offline', false)
  failure = 'none'
  t.equal(await network.find('deal'), undefined)

  const stopping = network.deal(ask('deal', undefined, { onProgress: () => void network.stop() }))
  await t.rejects(stopping, { code: 'Unavailable' }, 'stopping ends it')
  await network.stop()
  clean('stop')
  await t.rejects(network.deal(ask('deal')), { code: 'Unavailable' })

  mkdirSync(join(folder, 'staging', 'cut short'))
  writeFileSync(join(folder, 'staging', 'cut short', 'deal.car'), 'half')
  // Another process may have made it just now.
  const dayBefore = new Date(Date.now() - 2 * DAY_MS)
  for (const name of ['deal.car', '.']) utimesSync(join(folder, 'staging', 'cut short', name), dayBefore, dayBefore)
  writeFileSync(join(folder, 'providers', provider.minerId, 'nobodys.car'), 'whole')
  await open(t, folder)
  clean('swept at the start')
})

t.test('a deal that is given up is not made later', async (t) => {
  const folder = temporaryFolder(t)
  const network = await open(t, folder)
  t.same(await network.settle('made'), undefined)
  await t.rejects(network.deal(ask('made')), { code: 'TermsRefused', message: /given up/ }, 'before it begins')
  const begun: Promise<unknown>[] = []
  const onProgress = ({ phase }: DealProgress): void => {
    if (phase === 'Sending') begun.push(network.settle('deal'))
  }
  const late = network.deal(ask('deal', undefined, { onProgress }))
  const outcome = await late.catch((error) => error)
  const [settled] = await Promise.all(begun)
  t.same(outcome, settled ?? { name: 'NetworkError', code: 'TermsRefused' }, 'both see the same')
  t.same(await network.find('deal'), settled)
  const made = await network.deal(ask('another'))
  t.same(await network.settle('another'), made, 'one that is made stays')
  t.same(staged(folder), [])
  await until('no CAR is left but that of the deals', () => cars(folder).length === (settled === undefined ? 1 : 2))
})
