import { randomUUID } from 'node:crypto'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { createClient } from '@keyv/redis'
import pg from 'pg'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { createLogger } from '../../../common/log.js'
import { LeaseLocks } from '../../../engines/lease-locks.js'
import { LEASE_SCHEMA, PostgresLeases } from '../../../engines/postgres/leases.js'
import { RedisLeases } from '../../../engines/redis/leases.js'
import type { Locks } from '../../../src/api/locks.js'
import { InDoubt, InDoubtWrites } from '../../../src/gateway/calls/in-doubt.js'
import { lockUntilOutcome } from '../../../src/objects/serialized-write.js'
import { LocalLocks } from '../../../src/state/locks/locks.js'
import { type Lease, type LeaseStore, MemoryLeases } from '../../../src/state/locks/memory-leases.js'
import { openState } from '../../../src/state/open-state.js'
import { SignalBoard, STORE } from '../../../src/state/signals.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { heldLock, objectRecord } from './samples.js'
import { postgres, redis } from './servers.js'

const log = createLogger({ level: 'silent' })

/** Runs that note when they start and end when told to. */
class Runs {
  readonly started: string[] = []
  readonly #ends = new Map<string, () => void>()

  run(name: string): () => Promise<string> {
    return () => {
      this.started.push(name)
      return new Promise((resolve) => this.#ends.set(name, () => resolve(name)))
    }
  }

  end(name: string): void {
    const end = this.#ends.get(name)
    if (!end) throw new Error(`${name} has not started`)
    end()
  }
}

/** Waits until so many have started; what is compared then says what was missing. */
const begun = ({ started }: Runs, count: number) => until(`${count} have started`, () => started.length >= count)

/**
 * That these have started and no other. They are compared sorted: among proxies, what is free at once starts in any
 * order.
 */
async function started(runs: Runs, names: string[], t: Test, about: string): Promise<void> {
  await begun(runs, names.length)
  for (let i = 0; i < 5; i++) await turn()
  t.same([...runs.started].sort(), [...names].sort(), about)
}

async function contract(t: Test, locks: Locks): Promise<void> {
  await t.test('first come first served for each key', async (t) => {
    const runs = new Runs()
    const all = ['1', '2', '3'].map((name) => locks.withKey('b', 'k', runs.run(name)))
    all.push(locks.withKey('b', 'other', runs.run('other')), locks.withKey('b2', 'k', runs.run('bucket')))
    all.push(locks.withName('k', runs.run('name')))
    await begun(runs, 4)
    t.same([...runs.started].sort(), ['1', 'bucket', 'name', 'other'])
    for (const name of ['other', 'bucket', 'name', '1']) runs.end(name)
    await started(runs, [...runs.started.slice(0, 4), '2'], t, 'the next')
    runs.end('2')
    await started(runs, [...runs.started.slice(0, 5), '3'], t, 'and the next')
    runs.end('3')
    t.same(await Promise.all(all), ['1', '2', '3', 'other', 'bucket', 'name'], 'results come through')
  })

  await t.test('a failing run frees its lock and its error comes through', async (t) => {
    await t.rejects(
      locks.withKey('b', 'k', async () => {
        throw new RangeError('mine')
      }),
      RangeError,
    )
    await t.rejects(
      locks.withSubtree('b', 'k', () => {
        throw new TypeError('not even a promise')
      }),
      TypeError,
    )
    t.equal(await locks.withKey('b', 'k', async () => 'free'), 'free')
  })

  await t.test('a subtree waits for keys below it and keeps them out', async (t) => {
    const runs = new Runs()
    const all = [locks.withKey('b', 'd/x', runs.run('d/x')), locks.withKey('b', 'e', runs.run('e'))]
    await started(runs, ['d/x', 'e'], t, 'keys')
    all.push(locks.withSubtree('b', 'd/', runs.run('d/*')), locks.withKey('b', 'd/y', runs.run('d/y')))
    all.push(locks.withKey('b', 'd', runs.run('d')))
    await started(runs, ['d/x', 'e', 'd'], t, 'the subtree waits, and later keys below it wait for the subtree')
    runs.end('d/x')
    await started(runs, ['d/x', 'e', 'd', 'd/*'], t, 'the subtree has its turn')
    all.push(locks.withSubtree('b', 'd/deep/', runs.run('d/deep/*')), locks.withSubtree('b', 'f/', runs.run('f/*')))
    all.push(locks.withKey('b', 'd/', runs.run('d/')))
    await started(runs, ['d/x', 'e', 'd', 'd/*', 'f/*'], t, 'subtrees that overlap exclude each other')
    runs.end('d/*')
    await begun(runs, 8)
    t.same(runs.started.slice(5).sort(), ['d/', 'd/deep/*', 'd/y'])
    for (const name of ['e', 'd', 'f/*', 'd/', 'd/deep/*', 'd/y']) runs.end(name)
    await Promise.all(all)
  })

  await t.test('never two at once', async (t) => {
    const keys = ['a/1', 'a/2', 'b/1']
    const inside = new Map<string, number>()
    const enter = async (names: string[]) => {
      for (const name of names) {
        const count = (inside.get(name) ?? 0) + 1
        inside.set(name, count)
        if (count > 1) t.fail(`${count} at ${name}`)
      }
      await turn()
      for (const name of names) inside.set(name, (inside.get(name) ?? 0) - 1)
    }
    await Promise.all(
      Array.from({ length: 120 }, (_, i) => {
        const key = keys[i % keys.length] ?? ''
        if (i % 10 !== 9) return locks.withKey('b', key, () => enter([key]))
        return locks.withSubtree('b', 'a/', () => enter(['a/1', 'a/2']))
      }),
    )
    t.pass()
  })
}

/** Writers that wait too long are turned away, and those behind them keep their order. */
async function limited(t: Test, locks: Locks): Promise<void> {
  await t.test('a wait has an end', async (t) => {
    const runs = new Runs()
    const held = locks.withKey('b', 'k', runs.run('held'))
    await begun(runs, 1)
    const patient = locks.withKey('b', 'k', runs.run('impatient'), { waitMs: 30 })
    const next = locks.withKey('b', 'k', runs.run('next'))
    await t.rejects(patient, { code: 'SlowDown', status: 503 })
    await t.rejects(locks.withSubtree('b', '', runs.run('subtree'), { waitMs: 30 }), { code: 'SlowDown' })
    t.same(runs.started, ['held'], 'neither has run, and the one behind it still waits')
    runs.end('held')
    await started(runs, ['held', 'next'], t, 'the next has its turn')
    runs.end('next')
    await Promise.all([held, next])
    const fences: number[] = []
    for (let i = 0; i < 5; i++) await locks.withKey('b', 'k', async ({ fence }) => void fences.push(fence))
    t.same(fences, [...new Set(fences)].sort(), 'each holder has a higher number than the one before')
    await locks.withKey('b', 'k', async (lock) => {
      await lock.raise(lock.fence + 1e9)
      t.ok(lock.fence > (fences[4] ?? 0) + 1e9, 'raised beyond what is known')
      t.ok(Number.isSafeInteger(lock.fence))
      lock.ensure()
    })
  })
}

/** The numbers of a store are its time. */
async function fences(t: Test, store: LeaseStore): Promise<void> {
  const lease: Lease = { scope: 'fences', kind: 'name', name: 'n', token: randomUUID() }
  const before = (Date.now() - 60_000) * 1000
  const first = (await store.acquire(lease, 60_000)) ?? 0
  const renewed = (await store.renew(lease, 60_000)) ?? 0
  await store.release(lease)
  const second = (await store.acquire({ ...lease, token: randomUUID() }, 1)) ?? 0
  t.ok(before < first && first < renewed && renewed < second, `${first} ${renewed} ${second}`)
}

t.test('local locks', async (t) => {
  const locks = new LocalLocks()
  await contract(t, locks)
  await limited(t, locks)
  t.equal(locks.size, 0, 'nothing is left of any of them')
})

/** What LeaseLocks asks of its store. */
async function leases(t: Test, store: LeaseStore): Promise<void> {
  const lease = (kind: Lease['kind'], name: string, scope = 's'): Lease => ({ scope, kind, name, token: randomUUID() })
  const refused = async (wanted: Lease, about: string) => {
    t.equal(await store.acquire(wanted, 60_000), undefined, about)
    // It leaves the line.
    await store.release(wanted)
  }
  const odd = 'nul\0 \u{1f600} % _ \\ [*]'
  const mine = lease('name', `d/${odd}`)
  t.type(await store.acquire(mine, 60_000), 'number')
  await refused(lease('name', `d/${odd}`), 'the same name')
  await refused(lease('prefix', 'd/'), 'a prefix above it')
  await refused(lease('prefix', ''), 'everything')
  const others = [lease('name', 'd/'), lease('name', `d/${odd}`, 's2'), lease('prefix', 'd/%'), lease('prefix', 'e/')]
  for (const other of others) t.type(await store.acquire(other, 60_000), 'number', `${other.kind} ${other.name}`)
  await refused(lease('name', 'e/1'), 'a name below a prefix')
  await refused(lease('prefix', 'e/1/'), 'a prefix below a prefix')

  const thief = { ...mine, token: randomUUID() }
  t.equal(await store.renew(thief, 60_000), undefined, 'only the holder renews')
  await store.release(thief)
  await refused(lease('name', mine.name), 'only the holder releases')
  t.type(await store.renew(mine, 60_000), 'number')
  await store.release(mine)
  await store.release(mine)
  const next = lease('name', mine.name)
  t.type(await store.acquire(next, 30), 'number')
  const later = lease('name', mine.name)
  while (!(await store.acquire(later, 60_000))) await sleep(5)
  t.equal(await store.renew(next, 60_000), undefined, 'a lease that ran out is lost')
  const subtree = lease('prefix', 'f/')
  t.type(await store.acquire(subtree, 30), 'number')
  const below = lease('name', 'f/1')
  while (!(await store.acquire(below, 60_000))) await sleep(5)
  t.equal(await store.renew(subtree, 60_000), undefined, 'a prefix that ran out is lost')
  t.equal(await store.yield(subtree, 60_000), undefined, 'and is not kept')
  await refused(lease('name', 'f/1'), 'the name below it is still held')
  for (const each of [...others, later, below]) await store.release(each)
  const all = lease('prefix', '')
  t.type(await store.acquire(all, 60_000), 'number', 'all are free')
  await store.release(all)
  await line(t, store)
}

/** Who waits longest is next, and a holder that others wait for makes way. */
async function line(t: Test, store: LeaseStore): Promise<void> {
  const lease = (kind: Lease['kind'] = 'name', name = 'k'): Lease => ({ scope: 'l', kind, name, token: randomUUID() })
  const [held, early, late] = [lease(), lease(), lease()]
  t.type(await store.acquire(held, 60_000), 'number')
  t.type(await store.yield(held, 60_000), 'number', 'nobody waits')
  t.equal(await store.acquire(late, 60_000, 10), undefined)
  t.equal(await store.acquire(early, 60_000, 500), undefined)
  const other = lease('name', 'other')
  t.type(await store.acquire(other, 60_000), 'number', 'other names are free')
  await store.release(other)
  t.equal(await store.yield(held, 60_000), undefined, 'one waits: the lease is released')
  t.equal(await store.renew(held, 60_000), undefined)
  t.equal(await store.acquire(late, 60_000, 20), undefined, 'another one waits for longer')
  t.equal(await store.acquire(held, 60_000), undefined, 'the last holder has to wait like all others')
  t.type(await store.acquire(early, 60_000, 510), 'number')
  const subtree = lease('prefix', '')
  t.equal(await store.acquire(subtree, 60_000, 400), undefined)
  await store.release(early)
  t.equal(await store.acquire(late, 60_000, 30), undefined, 'a subtree waits for longer')
  await store.release(subtree)
  t.type(await store.acquire(late, 60_000, 40), 'number', 'it has left the line')
  await store.release(late)
}

t.test('leases in memory', async (t) => {
  await leases(t, new MemoryLeases(() => {}))
  await fences(t, new MemoryLeases(() => {}))
  const signals = new SignalBoard(() => {})
  const locks = new LeaseLocks({
    store: new MemoryLeases((token) => signals.receive(`${STORE} lease ${token}`)),
    signals,
    log,
  })
  await contract(t, locks)
  await limited(t, locks)
  await abandoned(t)
})

/** Leases of a process that died end before their time, and nothing of it stays. */
async function abandoned(t: Test): Promise<void> {
  const leases = new MemoryLeases(() => {})
  const lease = (name: string): Lease => ({ scope: name, kind: 'name', name, token: randomUUID() })
  const [DEAD, ALIVE] = [1, 2]
  const [held, others, waiter] = [lease('a'), lease('b'), lease('b')]
  await leases.acquire(held, 60_000, 0, DEAD)
  await leases.acquire(lease('nobody asks again'), 60_000, 0, DEAD)
  await leases.acquire(others, 60_000, 0, ALIVE)
  await leases.acquire(lease('runs out'), 1, 0, ALIVE)
  t.type(await leases.renew(held, 60_000), 'number')
  t.equal(await leases.acquire(waiter, 60_000, 500, DEAD), undefined)
  leases.abandon(DEAD, 50)
  t.type(await leases.yield(others, 60_000), 'number', 'a dead process waits for nothing')
  const next = lease('a')
  t.equal(await leases.acquire(next, 60_000, 0, ALIVE), undefined, 'what it has sent may still take effect')
  await until('the lease is free', async () => (await leases.acquire(next, 60_000, 0, ALIVE)) !== undefined)
  t.type(await leases.renew(others, 60_000), 'number', 'those of others stay')
  await leases.release(next)
  await leases.release(others)
  await until('nothing is left, also of one that ran out', async () => {
    const one = lease('one')
    await leases.acquire(one, 60_000)
    await leases.release(one)
    return leases.size === 0
  })
}

t.test('leases in redis', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  const client = createClient({ url: server.url })
  await client.connect()
  t.teardown(() => server.stop())
  t.teardown(() => client.close())
  const run = (script: string, keys: string[], args: string[]) => client.eval(script, { keys, arguments: args })
  await leases(t, new RedisLeases(run))
  await fences(t, new RedisLeases(run))
  await client.flushAll()
  const locks = new LeaseLocks({ store: new RedisLeases(run), log })
  await contract(t, locks)
  await limited(t, locks)
  t.equal(await client.dbSize(), 0, 'nothing is left of any of them')

  const data = temporaryFolder(t)
  const state = await openState({ data, url: server.url, log })
  await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
  await comesBack(() => state.objects.set(objectRecord('b', 'k'), heldLock()))
  await state.close()
})

t.test('leases in postgres', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start()
  const pool = new pg.Pool({ connectionString: server.url })
  pool.on('error', () => {})
  t.teardown(() => server.stop())
  t.teardown(() => pool.end())
  await comesBack(() => pool.query(LEASE_SCHEMA))
  await leases(t, new PostgresLeases(pool))

  const other = await pool.connect()
  await other.query("SELECT pg_advisory_lock(hashtextextended('dealgate/' || encode('s', 'hex'), 0))")
  const blocked = new PostgresLeases(pool).acquire({ scope: 's', kind: 'name', name: 'n', token: 't' }, 60_000)
  const cut = `SELECT pg_terminate_backend(pid) AS done FROM pg_stat_activity WHERE wait_event = 'advisory'`
  const rejected = t.rejects(blocked, /terminat/, 'a connection cut in the middle is an error and no crash')
  await until('the connection is cut', async () => (await other.query(cut)).rows.length > 0)
  await rejected
  other.release(true)

  await fences(t, new PostgresLeases(pool))
  await pool.query('DELETE FROM dealgate_lease')
  const locks = new LeaseLocks({ store: new PostgresLeases(pool), log })
  await contract(t, locks)
  await limited(t, locks)
  t.same((await pool.query('SELECT * FROM dealgate_lease')).rows, [], 'nothing is left of any of them')

  const data = temporaryFolder(t)
  const state = await openState({ data, url: server.url, log })
  await state.objects.set(objectRecord('b', 'k'), heldLock())
  await pool.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL',
  )
  await comesBack(() => state.objects.set(objectRecord('b', 'k'), heldLock()))
  await state.close()
})

/** Connections that were cut are made anew. */
const comesBack = (attempt: () => Promise<unknown>): Promise<boolean> =>
  until('the connection is made anew', () =>
    attempt().then(
      () => true,
      () => false,
    ),
  )
t.test('leases are renewed while they are needed, also by a store that fails for a moment', async (t) => {
  const calls: string[] = []
  const store: LeaseStore = {
    acquire: async () => (calls.push('acquire') > 2 ? 1 : undefined),
    async renew() {
      if (calls.push('renew') === 5) throw new Error('the store is away for a moment')
      return 1
    },
    yield: async () => 1,
    release: () => Promise.reject(new Error('the store is away')),
  }
  const locks = new LeaseLocks({ store, log, ms: 15 })
  const renewals = () => calls.filter((call) => call === 'renew').length
  const run = () => until('the lease is renewed', () => renewals() >= 4 && 'done')
  t.equal(await locks.withName('n', run), 'done', 'what was done stays done when the release fails')
  t.same(calls.slice(0, 4), ['acquire', 'acquire', 'acquire', 'renew'], 'tried until it was free')
  const away = new LeaseLocks({ store: { ...store, acquire: () => Promise.reject(new Error('away')) }, log })
  const unlocked = away.withKey('b', 'k', async () => t.fail('ran without a lock'))
  await t.rejects(unlocked, { code: 'ServiceUnavailable' })
})

t.test('a server that stops while a write is in doubt leaves the lease to run out', async (t) => {
  const calls: string[] = []
  const store: LeaseStore = {
    acquire: async () => calls.push('acquire'),
    renew: async () => 1,
    yield: async () => 1,
    async release() {
      calls.push('release')
    },
  }
  const locks = new LeaseLocks({ store, log })
  const inDoubt = new InDoubtWrites(log)
  const written = lockUntilOutcome(
    (run) => locks.withKey('b', 'k', run),
    () => {
      const outcome = inDoubt.findOutcome(new Promise(() => {}), async () => undefined)
      throw new InDoubt(new S3Error('ServiceUnavailable'), outcome)
    },
    async () => t.fail('nothing is known to have landed'),
    { log },
  )
  await t.rejects(written, { code: 'ServiceUnavailable' })
  inDoubt.close()
  // In line behind the first: it runs once that one has left.
  await locks.withKey('b', 'k', async () => t.same(calls, ['acquire', 'acquire'], 'nothing was released'))
  t.same(calls, ['acquire', 'acquire', 'release'])
})

t.test('a lease that is lost ends the write', async (t) => {
  const lost: { renewals: () => Promise<number | undefined>; name: string }[] = [
    { name: 'another proxy has it', renewals: async () => undefined },
    { name: 'the store does not answer', renewals: () => new Promise<never>(() => {}) },
    { name: 'the store fails', renewals: () => Promise.reject(new Error('away')) },
  ]
  for (const { name, renewals } of lost) {
    const store = { acquire: async () => 1, renew: renewals, yield: renewals, release: async () => {} }
    // Long enough for it to be held at first also where the process is not given a turn for a while.
    const locks = new LeaseLocks({ store, log, ms: 1500 })
    await locks.withKey('b', 'k', async (lock) => {
      lock.ensure()
      const lost = await until('the lease is lost', () => {
        try {
          lock.ensure()
          return undefined
        } catch (error) {
          return error
        }
      })
      t.match(lost, { code: 'ServiceUnavailable', status: 503 }, name)
    })
  }

  const none = async () => undefined
  const gone = { acquire: async () => 5, renew: none, yield: none, release: async () => {} }
  await new LeaseLocks({ store: gone, log }).withKey('b', 'k', (lock) =>
    t.rejects(lock.raise(10), { code: 'ServiceUnavailable' }, 'no higher number for a lease that is lost'),
  )
})
