import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import type { EmbeddedNetwork } from '../../../src/services/network/embedded/embedded-network.js'
import type { MadeDeal, PackedCar } from '../../../src/services/network/network.js'
import { verifyProposal } from '../../../src/services/network/proposal.js'
import { temporaryFolder } from '../../support/content/folders.js'
import {
  type Asked,
  ask,
  bytesOf,
  cars,
  content,
  open,
  packedFile,
  provider,
  staged,
  terms,
} from './embedded-network.js'

const offline = { ...provider, offlineDealAvailable: true }
const other = { ...offline, minerId: 't02001' }
const providers = [offline, other]

interface Scene {
  readonly folder: string
  readonly network: EmbeddedNetwork
  readonly asked: Asked
  readonly car: PackedCar
}

async function scene(t: Test): Promise<Scene> {
  const folder = temporaryFolder(t)
  const network = await open(t, join(folder, 'network'), { providers })
  const asked = ask('reference', { 'a/one': content('one', 3000), two: content('two', 5000) })
  const car = await network.pack({ ...asked, target: join(folder, 'deal.car') })
  return { folder, network, asked, car }
}

function propose({ network, car }: Scene, reference = 'reference', more: object = {}): Promise<MadeDeal> {
  return network.offline.propose({ reference, terms: { ...terms, ...more }, car })
}

t.test('an offline deal is the same deal as an online one', async (t) => {
  const s = await scene(t)
  const { network, asked, car, folder } = s
  t.ok(existsSync(car.file))
  t.same(staged(join(folder, 'network')), [])
  const made = await propose(s)
  t.match(made, { dataCid: car.dataCid, pieceCid: car.pieceCid, pieceSize: car.pieceSize, carSize: car.carSize, terms })
  t.same(await propose(s), made, 'a repeated reference is the same proposal')
  t.same(await network.find('reference'), made)
  const waiting = { state: 'StorageDealCheckForAcceptance', message: 'Provider state: StorageDealWaitingForData' }
  await network.control.advance(100)
  t.match(await network.status(made.dealCid), waiting, 'it waits for as long as the data take')
  t.same(network.dealTotals(), [], 'a deal that waits is none yet')
  t.match(network.offline.waitingFor(offline.minerId, car.pieceCid), [{ dealCid: made.dealCid }])
  t.same(network.offline.waitingFor(other.minerId, car.pieceCid), [])
  t.ok(network.offline.knows(offline.minerId, made.dealCid))
  t.notOk(network.offline.knows(other.minerId, made.dealCid))
  await t.rejects(bytesOf(network, made.dealCid, packedFile(asked, 'two')), { code: 'NotRetrievable' })

  const inspected = await network.offline.inspect(car.file)
  t.same(inspected, car, 'a provider sees in the file what was packed')
  const [active, again] = await Promise.all([
    network.offline.import(made.dealCid, inspected),
    network.offline.import(made.dealCid, inspected),
  ])
  t.equal(active, network.epoch() + 2 + 3 + 5)
  t.equal(again, active)
  t.equal(cars(join(folder, 'network')).length, 1)
  t.ok(existsSync(car.file), 'the file stays where it is')
  t.same(network.offline.waitingFor(offline.minerId, car.pieceCid), [])
  const online = await network.deal(ask('online', { 'a/one': content('one', 3000), two: content('two', 5000) }))
  t.equal(online.dataCid, made.dataCid)
  for (const epochs of [0, 2, 3, 5]) {
    if (epochs > 0) await network.control.advance(epochs)
    const [{ state, message }, status] = await Promise.all([
      network.status(online.dealCid),
      network.status(made.dealCid),
    ])
    if (epochs > 0) t.match(status, { state, message })
  }
  t.equal((await network.status(made.dealCid)).state, 'StorageDealActive')
  t.ok((await bytesOf(network, made.dealCid, packedFile(asked, 'a/one'))).equals(content('one', 3000)))
  t.match(verifyProposal(await network.proposal(made.dealCid), made.dealCid), { startEpoch: made.startEpoch })
  t.match(network.dealTotals(), [{ deals: 2, held: true, price: 10n ** 18n }])
  await network.stop()
  const later = await open(t, join(folder, 'network'), { providers })
  t.equal((await later.status(made.dealCid)).state, 'StorageDealActive')
  t.equal(await later.offline.import(made.dealCid, car), active, 'a repeated import does nothing')
})

t.test('proposals that a provider refuses leave nothing', async (t) => {
  const s = await scene(t)
  const refusals: [object, RegExp][] = [
    [{ minerId: 't09' }, /no storage provider/],
    [{ price: '0' }, /below/],
    [{ duration: 1 }, /duration/],
    [{ price: 'x' }, /decimal/],
    [{ verifiedDeal: true }, /no verified deals/],
  ]
  for (const [more, message] of refusals) await t.rejects(propose(s, 'refused', more), { message })
  await s.network.changeProvider?.(offline.minerId, { offlineDealAvailable: false })
  await t.rejects(propose(s, 'refused'), { code: 'TermsRefused', message: /no offline deals/ })
  t.equal(await s.network.find('refused'), undefined)
  await t.rejects(s.network.offline.import('baf', s.car), { code: 'NoSuchDeal' })
})

t.test('a provider imports nothing but the data of the deal, and in time', async (t) => {
  const s = await scene(t)
  const { network, car, folder } = s
  const { dealCid, startEpoch } = await propose(s)
  const more = ask('more')
  const wrong = await network.pack({ ...more, target: join(folder, 'other.car') })
  await t.rejects(network.offline.import(dealCid, wrong), { code: 'DataRefused', message: /not the piece/ })
  for (const [fault, code] of [['offline', 'ProviderOffline'] as const, ['rejects', 'DataRefused'] as const]) {
    await network.control.setFault(offline.minerId, fault, true)
    await t.rejects(network.offline.import(dealCid, car), { code })
    await network.control.setFault(offline.minerId, fault, false)
  }
  t.same(cars(join(folder, 'network')), [])
  await network.control.advance(startEpoch - network.epoch() - 9)
  await t.rejects(network.offline.import(dealCid, car), { code: 'DataRefused', message: /too late/ })
  await network.control.advance(9)
  t.match(await network.status(dealCid), { state: 'StorageDealError', message: /had no data/ })
  t.same(network.offline.waitingFor(offline.minerId, car.pieceCid), [])
})

t.test('only a whole CAR with one root is one', async (t) => {
  const { network, car, folder } = await scene(t)
  const file = join(folder, 'file')
  const refused = { code: 'DataRefused' }
  for (const bytes of ['', 'no CAR', readFileSync(car.file).subarray(0, 60)]) {
    writeFileSync(file, bytes)
    await t.rejects(network.offline.inspect(file), refused)
  }
  truncateSync(car.file, car.carSize - 1)
  await t.rejects(network.offline.inspect(car.file), refused)
})

t.test('packing that fails leaves no CAR', async (t) => {
  const { network, folder } = await scene(t)
  const target = join(folder, 'failed.car')
  const asked = ask('x', { x: content('x', 100) }, { onFile: () => Promise.reject(new Error('no')) })
  await t.rejects(network.pack({ ...asked, target }), { message: 'no' })
  t.notOk(existsSync(target))
})

t.test('a data folder of the version before opens', async (t) => {
  const folder = join(temporaryFolder(t), 'network')
  mkdirSync(folder)
  const network = await open(t, folder, { providers })
  const asked = ask('online')
  const { dealCid } = await network.deal(asked)
  await network.stop()
  const db = new DatabaseSync(join(folder, 'network.db'))
  db.exec(`
    DROP INDEX deals_in_sums;
    DROP INDEX deals_waiting;
    ALTER TABLE deals DROP COLUMN waiting;
    ALTER TABLE deals DROP COLUMN active_epoch;
    CREATE INDEX deals_in_sums ON deals (miner_id, verified_deal, custody IS NOT NULL, piece_size, price);
  `)
  db.close()
  const later = await open(t, folder, { providers })
  await later.control.advance(10)
  t.equal((await later.status(dealCid)).state, 'StorageDealActive')
  t.ok((await bytesOf(later, dealCid, packedFile(asked))).equals(content('online', 3000)))
  t.match(later.dealTotals(), [{ deals: 1, price: 5n * 10n ** 17n }])
})
