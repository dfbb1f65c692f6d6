import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import fc from 'fast-check'
import t from 'tap'
import { silentLog } from '../../../../services/log.js'
import type { ChainEvent } from '../../../../services/payment/chain/abi.js'
import { ChainFollower } from '../../../../services/payment/chain/follower.js'
import type { ChainNode } from '../../../../services/payment/chain/node.js'
import { paymentSchema } from '../../../../services/payment/store.js'
import { openSqlite } from '../../../../services/store/sqlite.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { rowsOf } from '../../../support/content/rows.js'
import { crashImages } from '../../crash-images.js'

t.setTimeout(300_000)

const WALLET = `0x${'a'.repeat(40)}`
const TOKEN = `0x${'b'.repeat(40)}`
const RECIPIENT = `0x${'c'.repeat(40)}`
const WEEK = 7 * 86_400
const PRICE = 10
const CONFIRMATIONS = 2
const UPLOADS = ['a', 'b', 'c']

type Told = Pick<ChainEvent, 'kind' | 'wCid' | 'amount'>

interface Block {
  readonly hash: string
  readonly events: readonly Told[]
}

/** A chain in memory. It tells any events, also those that no contract would. */
class ScriptedChain implements ChainNode {
  locked = async (): Promise<undefined> => undefined

  readonly blocks: Block[] = [{ hash: 'genesis', events: [] }]
  #mined = 0

  mine(events: readonly Told[]): void {
    this.blocks.push({ hash: `block ${this.#mined++}`, events })
  }

  /** Takes blocks away. Returns their events. */
  drop(depth: number): Told[] {
    return this.blocks.splice(Math.max(1, this.blocks.length - depth)).flatMap(({ events }) => events)
  }

  chainId = async () => 1
  head = async () => this.blocks.length - 1
  coin = async () => ({ decimals: 6, symbol: 'TEST' })
  balances = async () => ({ token: 0n, native: 0n })
  sender = async () => WALLET
  block = async (number: number) => {
    const block = this.blocks[number]
    return block && { number, hash: block.hash, timestamp: number }
  }
  events = async (from: number, to: number) =>
    this.blocks.flatMap(({ hash: blockHash, events }, block) =>
      block < from || block > to ? [] : events.map((told, index) => eventOf(told, { block, blockHash, index })),
    )
}

function eventOf(told: Told, place: { block: number; blockHash: string; index: number }): ChainEvent {
  const base = { ...told, ...place, hash: `${place.blockHash} ${place.index}`, token: TOKEN }
  if (told.kind !== 'lock') return { ...base, kind: told.kind }
  return { ...base, kind: 'lock', recipient: RECIPIENT, owner: undefined, deadline: BigInt(place.block + WEEK) }
}

/** A data folder that follows a chain. */
async function openFolder(folder: string, chain: ChainNode) {
  const file = join(folder, 'payment.db')
  const db = openSqlite(file, paymentSchema)
  const rows = new DatabaseSync(file)
  const follower = new ChainFollower({
    lease: db.lease('chain'),
    terms: { token: TOKEN, recipient: RECIPIENT, epochAt: (time) => time },
    ...{ node: chain, db, log: silentLog, chainId: 1, confirmations: CONFIRMATIONS },
    ...{ startBlock: 1, pollMs: 1, stop: new AbortController().signal },
  })
  if ((await db.read.chain.state()) === undefined) {
    rows.exec("INSERT INTO contents (cid, size, car_size) VALUES ('cid', 1, 1)")
    const add = rows.prepare(
      `INSERT INTO uploads (w_cid, wallet, content, file_name, folded_name, file_size, file_type, duration, price, created)
        VALUES (?, ?, 1, 'x', 'x', 1, 0, 180, ?, 0)`,
    )
    for (const wCid of UPLOADS) add.run(wCid, WALLET, PRICE)
    await db.transaction(({ chain }) => chain.begin({ chainId: 1, contract: TOKEN, token: TOKEN }))
  }
  return {
    /** Reads the chain to its confirmed end. */
    async read(): Promise<void> {
      while (await follower.read());
    },
    /** What is known of payments, without the numbers that tell the order of rows. */
    state(): unknown {
      const all = (query: string) => rows.prepare(query).all()
      return {
        uploads: all('SELECT w_cid, status, car FROM uploads ORDER BY id'),
        locks: all(
          `SELECT w_cid, wallet, amount, hash, paid_at, deadline, deadline_epoch, unlocked, unlocked_at, refunded, is_open
            FROM locks ORDER BY w_cid`,
        ),
        logs: all('SELECT * FROM chain_logs ORDER BY block, position'),
        last: all('SELECT last_block FROM chain'),
      }
    },
    async close() {
      rows.close()
      await db.close()
    },
  }
}

const told: fc.Arbitrary<Told> = fc.record({
  kind: fc.constantFrom('lock', 'lock', 'unlock', 'refund'),
  wCid: fc.constantFrom(...UPLOADS, 'unknown'),
  amount: fc.bigInt({ min: 0n, max: 30n }),
})
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ mine: fc.array(fc.array(told, { maxLength: 3 }), { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ drop: fc.integer({ min: 1, max: 12 }), again: fc.boolean() }) },
  { weight: 3, arbitrary: fc.constant('read' as const) },
)

t.test('whatever reorganisations came, the end is that of reading the last chain alone', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
      const chain = new ScriptedChain()
      const followed = await openFolder(temporaryFolder(t), chain)
      const fresh = await openFolder(temporaryFolder(t), chain)
      try {
        for (const one of steps) {
          if (one === 'read') await followed.read()
          else if ('mine' in one) for (const events of one.mine) chain.mine(events)
          else {
            const events = chain.drop(one.drop)
            if (one.again) chain.mine(events)
          }
        }
        for (let n = 0; n < 20; n++) chain.mine([])
        await followed.read()
        await fresh.read()
        t.same(followed.state(), fresh.state())
      } finally {
        await followed.close()
        await fresh.close()
      }
    }),
    { numRuns: 60 },
  )
})

t.test('a crash after any step loses nothing and repeats nothing', async (t) => {
  const chain = new ScriptedChain()
  const folder = temporaryFolder(t)
  const first = await openFolder(folder, chain)
  t.teardown(() => first.close())
  const images = await crashImages(t, folder, async () => {
    const lock = (wCid: string): Told => ({ kind: 'lock', wCid, amount: 20n })
    chain.mine([lock('a'), lock('b')])
    chain.mine([{ kind: 'unlock', wCid: 'a', amount: 5n }])
    for (let n = 0; n < 2; n++) chain.mine([])
    await first.read()
    chain.mine([{ kind: 'refund', wCid: 'a', amount: 15n }, lock('c')])
    for (let n = 0; n < 2; n++) chain.mine([])
    await first.read()
    chain.drop(6)
    chain.mine([lock('b'), { kind: 'refund', wCid: 'b', amount: 20n }])
    for (let n = 0; n < 8; n++) chain.mine([])
    await first.read()
  })
  t.ok(images.length >= 4, `${images.length} images`)
  for (const image of images) {
    const again = await openFolder(image.folder, chain)
    await again.read()
    t.same(again.state(), first.state())
    await again.close()
  }
})

t.test('an upload keeps the first hundred payments that do not count, and a good one counts after them', async (t) => {
  const chain = new ScriptedChain()
  const folder = temporaryFolder(t)
  const service = await openFolder(folder, chain)
  for (let i = 0; i < 3; i++)
    chain.mine(Array.from({ length: 50 }, () => ({ kind: 'lock', wCid: 'a', amount: BigInt(PRICE - 1) }) as const))
  chain.mine([{ kind: 'lock', wCid: 'a', amount: BigInt(PRICE) }])
  for (let i = 0; i < CONFIRMATIONS; i++) chain.mine([])
  await service.read()
  await service.close()
  const query = 'SELECT outcome, count(*) AS count FROM chain_logs GROUP BY outcome ORDER BY 1'
  const rows = rowsOf(join(folder, 'payment.db'), query)
  t.same(rows, [
    { outcome: 'counted', count: 1 },
    { outcome: 'underpaid', count: 100 },
  ])
})
