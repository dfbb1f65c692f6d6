import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Batch, type FromWorker, type ToWorker } from '../../cli/serve/workers/messages.js'
import { Supervisor } from '../../cli/serve/workers/supervisor.js'
import { createLogger } from '../../common/log.js'
import { type Lease, MemoryLeases } from '../../src/state/locks/memory-leases.js'

const WORKERS = 8
const PER_SECOND = [1000, 10_000]
const WARM_MS = 3000
const MEASURED_MS = 10_000
const LEASE_MS = 30_000
/** Of a PUT, from the lease to its release, ms: the shortest, and the longest. */
const HELD_MS = [2, 6] as const

/**
 * CPU of the supervisor for the lease of a PUT, when eight workers want so many a second in all. The workers ask for
 * leases and do nothing else, so that two cores suffice.
 */
export async function leases(): Promise<void> {
  cluster.setupPrimary({ exec: fileURLToPath(import.meta.url) })
  for (const rate of PER_SECOND) {
    process.env.LEASES_PER_SECOND = String(rate / WORKERS)
    const held = new MemoryLeases(() => {})
    let count = 0
    const supervisor = new Supervisor({
      count: WORKERS,
      log: createLogger({ level: 'silent' }),
      graceMs: 0,
      ended() {},
      release: (lease) => void held.release(lease),
      answer(_, args, worker) {
        count++
        const [lease, ms, waited] = args as [Lease, number, number]
        return held.acquire(lease, ms, waited, worker)
      },
    })
    await supervisor.start()
    await sleep(WARM_MS)
    const [before, first] = [process.cpuUsage(), count]
    await sleep(MEASURED_MS)
    const { user, system } = process.cpuUsage(before)
    const done = count - first
    await supervisor.stop()
    const ofCore = ((user + system) / MEASURED_MS / 10).toFixed(1)
    console.log(
      `${((done / MEASURED_MS) * 1000).toFixed(0)} leases/s: ${((user + system) / done).toFixed(1)} µs of the supervisor each, ${ofCore} % of a core`,
    )
  }
}

async function work(): Promise<void> {
  const perMs = Number(process.env.LEASES_PER_SECOND) / 1000
  const waiting = new Map<number, () => void>()
  const batch = new Batch<FromWorker>((messages) => void process.send?.(messages))
  let last = 0
  process.on('message', (messages: readonly ToWorker[]) => {
    for (const message of messages) {
      if (message.kind === 'stop') process.exit()
      if (message.kind !== 'answer') continue
      waiting.get(message.id)?.()
      waiting.delete(message.id)
    }
  })
  const put = async () => {
    const id = ++last
    const lease: Lease = { scope: 'bucket/bench', kind: 'name', name: `${process.pid}/${id}`, token: randomUUID() }
    const granted = new Promise<void>((resolve) => waiting.set(id, resolve))
    batch.add({ kind: 'question', id, name: 'acquire', args: [lease, LEASE_MS, 0] })
    await granted
    await sleep(HELD_MS[0] + Math.random() * (HELD_MS[1] - HELD_MS[0]))
    batch.addLate({ kind: 'release', lease })
  }
  batch.sendNow({ kind: 'ready', url: '' })
  // At random moments, as those of many clients are.
  for (let next = performance.now(); ; await sleep(1)) {
    while (next < performance.now()) {
      void put()
      next -= Math.log(Math.random()) / perMs
    }
  }
}

if (cluster.isWorker) await work()
