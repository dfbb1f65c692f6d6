import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { silentLog } from '../../../services/log.js'
import { FaultTable } from '../../../services/network/embedded/control.js'
import { embeddedSchema } from '../../../services/network/embedded/embedded-network.js'
import { EpochClock } from '../../../services/network/epoch-clock.js'
import type { Network } from '../../../services/network/network.js'
import { DatabaseUnavailableError } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { SqliteDatabase } from '../../../services/store/sqlite.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { databaseOf, onPostgres } from '../engine.js'
import { ask, bytesOf, cars, content, open, packedFile, provider, staged, terms } from './embedded-network.js'

const ROUNDS = 10

t.test('two instances over one database and folder do everything once', { skip: !onPostgres }, async (t) => {
  const folder = temporaryFolder(t)
  const providers = [{ ...provider, offlineDealAvailable: true }]
  const options = { providers }
  // Both begin at the same time: with one wallet, one clock and one list of providers.
  const both = await Promise.all([open(t, folder, options), open(t, folder, options)])
  const [first, second] = both
  t.equal(second.wallet, first.wallet)

  for (let round = 0; round < ROUNDS; round++) {
    const asked = both.map(() => ask(`deal ${round}`))
    const [one, other] = await Promise.all(both.map((network, n) => network.deal(asked[n] ?? ask('none'))))
    t.same(other, one, `one deal of reference ${round}`)
  }
  t.match(await first.dealTotals(), [{ deals: ROUNDS }])

  const target = join(folder, 'offline.car')
  const car = await first.pack({ ...ask('offline'), target })
  const proposals = await Promise.all(
    both.map((network) => network.offline.propose({ reference: 'offline', terms, car })),
  )
  t.same(proposals[1], proposals[0], 'one proposal')
  const { dealCid = '' } = proposals[0] ?? {}
  await Promise.all(both.map((network) => network.offline.import(dealCid, car)))
  await until('each deal has one CAR', () => cars(folder).length === ROUNDS + 1)

  const epoch = first.epoch()
  await Promise.all(both.map((network) => network.control.advance(1)))
  await Promise.all(both.map((network) => network.control.advance(1)))
  t.equal(Math.max(first.epoch(), second.epoch()), epoch + 4, 'no advance is lost')
  await second.control.setFault(provider.minerId, 'offline', true)
  t.match(await first.providers(), [{ status: 'Offline' }], 'a fault is that of both')
  await first.control.setFault(provider.minerId, 'offline', false)
  const change = { location: 'Asia' }
  await second.changeProvider?.(provider.minerId, change)
  t.match(await first.providers(), [change])

  await Promise.all(both.map((network) => network.control.advance(2_000_000)))
  t.same(cars(folder), [], 'all deals have ended')
  await first.stop()
  const packing = second.deal(ask('last'))
  const third = await open(t, folder, options)
  t.equal(
    (await third.status((await packing).dealCid)).dealCid,
    (await packing).dealCid,
    'a start spares what others do',
  )
  t.same(staged(folder), [])
})

t.test('a wallet is the same for all machines, and where its data are moved', async (t) => {
  const account = createHash('sha256').update('account').digest('hex')
  const walletOf = async (network: Network, reference: string, wallet?: string) =>
    (await network.deal(ask(reference, undefined, wallet === undefined ? {} : { wallet }))).walletAddress
  const folder = temporaryFolder(t)
  const files = await open(t, folder, { database: undefined })
  const before = [await walletOf(files, 'main'), await walletOf(files, 'account', account)]
  t.equal(before[0], files.wallet)
  t.not(before[1], before[0])
  await files.stop()
  if (onPostgres) {
    const database = await databaseOf(folder)
    // As after a copy of the tables.
    rmSync(join(folder, 'network.db'))
    const moved = await open(t, folder)
    t.same([moved.wallet, await walletOf(moved, 'account', account)], before, 'from the folder to a database')
    await t.rejects(open(t, temporaryFolder(t), { database }), /mount that one here/, 'its CARs are in that folder')
    rmSync(join(folder, 'wallets'), { recursive: true })
    const elsewhere = await open(t, folder)
    t.same([elsewhere.wallet, await walletOf(elsewhere, 'other', account)], before, 'without a file')
    const name = createHash('sha256').update('new').digest('hex')
    const made = await Promise.all([moved, elsewhere].map((network, n) => walletOf(network, `new ${n}`, name)))
    t.equal(made[0], made[1], 'made by two machines at the same time')
  }
  const back = temporaryFolder(t)
  const { secretKey } = JSON.parse(readFileSync(join(folder, 'wallet.json'), 'utf8'))
  const db = await openStore(embeddedSchema, { file: join(back, 'network.db') }, silentLog)
  await db.transaction(({ wallets }) => wallets.keep('main', Buffer.from(secretKey, 'hex')))
  await db.close()
  t.equal((await open(t, back, { database: undefined })).wallet, before[0], 'from a table to the folder')
})

t.test('an answer to a commit that is lost loses no deal and makes none twice', { skip: onPostgres }, async (t) => {
  const folder = temporaryFolder(t)
  const providers = [{ ...provider, offlineDealAvailable: true }]
  const network = await open(t, folder, { providers })
  const car = await network.pack({ ...ask('offline'), target: join(folder, 'offline.car') })
  const { transaction } = SqliteDatabase.prototype
  t.teardown(() => {
    SqliteDatabase.prototype.transaction = transaction
  })
  let turns = 0
  /** Loses the answer to each third transaction, and each third before it begins. */
  const lossy = async function <R>(this: SqliteDatabase<unknown>, work: (tables: unknown) => Promise<R>): Promise<R> {
    const turn = turns++ % 3
    if (turn === 1) throw new DatabaseUnavailableError('cannot be reached')
    const result = await transaction.call(this, work)
    if (turn === 2) throw new DatabaseUnavailableError('the answer is lost')
    return result as R
  }
  for (const reference of ['a', 'b', 'c']) {
    SqliteDatabase.prototype.transaction = lossy
    const asked = ask(reference)
    // What fails before the deal is recorded is repeated by the caller.
    const made = await again(() => network.deal(asked))
    const { dealCid } = await again(() => network.offline.propose({ reference: `offline ${reference}`, terms, car }))
    const active = await again(() => network.offline.import(dealCid, car))
    SqliteDatabase.prototype.transaction = transaction
    await network.control.advance(2)
    t.same(await network.find(reference), made)
    t.equal((await bytesOf(network, made.dealCid, packedFile(asked))).length, 3000, `the CAR of ${reference} is there`)
    t.equal(await network.offline.import(dealCid, car), active)
  }
  t.ok(turns > 12, `${turns} transactions`)
  t.match(await network.dealTotals(), [{ deals: 6 }])
  await network.stop()
  const later = await open(t, folder, { providers })
  t.equal(cars(folder).length, 6, 'each deal has its CAR, and there are no others')
  await later.stop()
})

async function again<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError) || attempt === 10) throw error
    }
  }
}

t.test('a CAR that cannot be removed is removed later, without a new start', async (t) => {
  const folder = temporaryFolder(t)
  const network = await open(t, folder)
  await network.deal(ask('deal'))
  const [name = ''] = cars(folder)
  const file = join(folder, 'providers', provider.minerId, name)
  unlinkSync(file)
  mkdirSync(file)
  await network.control.advance(2_000_000)
  t.same(cars(folder), [name])
  rmdirSync(file)
  writeFileSync(file, 'the CAR')
  await network.control.advance(1)
  t.same(cars(folder), [])
})

t.test('while the database is away, files are read and no CARs are removed', { skip: onPostgres }, async (t) => {
  const folder = temporaryFolder(t)
  const network = await open(t, folder)
  const asked = ['a', 'b', 'c'].map((reference) => ask(reference, { file: content(reference, 2_500_000) }))
  const made = []
  for (const one of asked) made.push(await network.deal(one))
  await network.control.advance(2)
  const { transaction } = SqliteDatabase.prototype
  const { of } = FaultTable.prototype
  t.teardown(() => {
    SqliteDatabase.prototype.transaction = transaction
    FaultTable.prototype.of = of
  })
  const away = (): Promise<never> => Promise.reject(new DatabaseUnavailableError('cannot be reached'))
  let size = 0
  for await (const chunk of network.retrieve(made[0]?.dealCid ?? '', packedFile(asked[0] ?? ask('none')))) {
    size += chunk.length
    FaultTable.prototype.of = away
  }
  t.equal(size, 2_500_000, 'the faults are those known last')
  FaultTable.prototype.of = of

  let turns = 0
  // After the clock, the ends of the deals and the list of CARs.
  SqliteDatabase.prototype.transaction = function <R>(
    this: SqliteDatabase<unknown>,
    work: (tables: unknown) => Promise<R>,
  ) {
    return turns++ < 3 ? (transaction.call(this, work) as Promise<R>) : away()
  }
  await t.rejects(network.control.advance(2_000_000), DatabaseUnavailableError)
  t.equal(cars(folder).length, 2, 'the first one shows that it is away')
  SqliteDatabase.prototype.transaction = transaction
  await network.control.advance(1)
  t.same(cars(folder), [])
})

t.test('processes with epochs of other lengths agree', async (t) => {
  const folder = temporaryFolder(t)
  const db = await openStore(
    embeddedSchema,
    { file: join(folder, 'network.db'), database: await databaseOf(folder) },
    silentLog,
  )
  t.teardown(() => db.close())
  let nowMs = Date.now()
  const now = (): number => nowMs
  const fast = await EpochClock.open(db, { epochSeconds: 1, now })
  nowMs += 10_000
  const slow = await EpochClock.open(db, { epochSeconds: 1000, now })
  const epoch = slow.epoch()
  nowMs += 100_000
  t.equal(fast.epoch(), epoch + 100)
  await fast.refresh()
  t.equal(fast.reached(), epoch, 'no deal is removed too early')
  t.equal(fast.epoch(), epoch + 100, 'what it has said remains')
  await slow.advance(200)
  await fast.refresh()
  t.same([fast.epoch(), fast.reached()], [epoch + 200, epoch + 200])
})

t.test('a CAR that is copied for too long is refused', async (t) => {
  const folder = temporaryFolder(t)
  const providers = [{ ...provider, offlineDealAvailable: true }]
  let now = Date.now()
  const epochMs = 30_000
  let slow = false
  const late = (): number => (slow && cars(folder).length > 0 ? epochMs : 0)
  const network = await open(t, folder, { providers, virtual: false, now: () => now + late() })
  const car = await network.pack({ ...ask('offline'), target: join(folder, 'offline.car') })
  const { dealCid, startEpoch } = await network.offline.propose({ reference: 'offline', terms, car })
  const { acceptEpochs, publishEpochs, sealEpochs } = provider
  now += (startEpoch - network.epoch() - acceptEpochs - publishEpochs - sealEpochs) * epochMs
  slow = true
  await t.rejects(network.offline.import(dealCid, car), { code: 'DataRefused', message: /too late/ })
  await until('its copy is removed', () => cars(folder).length === 0)
  t.match(await network.offline.waitingFor(provider.minerId, car.pieceCid), [{ dealCid }])
  slow = false
  // Epochs do not go back while a network runs.
  await network.stop()
  const again = await open(t, folder, { providers, virtual: false, now: () => now })
  t.equal(await again.offline.import(dealCid, car), startEpoch, 'in time, it is taken')
})
