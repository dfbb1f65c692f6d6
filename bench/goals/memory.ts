import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Goal, OWN } from '../results/runs.js'
import { makeBucket, startAsUsersDo } from '../servers/dealgate.js'
import { startPeers } from '../servers/peers.js'
import { dealgate } from '../servers/start.js'
import type { Operation, Subject } from '../servers/subject.js'
import { requestsOf } from './jobs.js'
import { type Found, type GoalsContext, rowOf } from './part.js'

const PEER = 'versitygw --keep-alive'
/** V8 collects what the start has left when it has been idle for some seconds. */
const IDLE_SECONDS = 40
const CONNECTIONS = 16
const LOAD: readonly (readonly [Operation, count: number])[] = [
  ['PUT', 6000],
  ['GET', 12_000],
  ['HEAD', 12_000],
  ['DELETE', 6000],
]
const KEYS = 1000
const MIB = 1024 ** 2

const GOALS = { idle: { atMost: 90 }, loaded: { atMost: 160 }, peak: { atMost: 130 } } as const

/** Resident memory: idle, after a load of small objects, and the highest during one object down and up. */
export async function memory({ folder, load, largeBytes, installed, progress }: GoalsContext): Promise<Found> {
  const found = { idle: new Map(), loaded: new Map(), peak: new Map() } satisfies Record<string, Map<string, number[]>>
  const each = async (name: string, start: () => Promise<Subject & Stopped>) => {
    // Each in a process of its own: what a load has left is not part of the peak of a transfer.
    const first = await start()
    progress(`memory of ${name}: idle for ${IDLE_SECONDS} s`)
    await sleep(IDLE_SECONDS * 1000)
    found.idle.set(name, [(await memoryOf(first)).now])
    progress(`memory of ${name}: after a load`)
    for (const [operation, count] of LOAD)
      await load.run(requestsOf(first, operation, { connections: CONNECTIONS, count, keys: KEYS }))
    found.loaded.set(name, [(await memoryOf(first)).now])
    await first.stop()
    const second = await start()
    progress(`memory of ${name}: the peak of one object`)
    const { host, port } = second
    await forgetPeak(second)
    for (const method of ['PUT', 'GET'] as const) {
      const head = second.large(method, 'bench/large', largeBytes, { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' })
      const sends = method === 'PUT'
      await load.run({ transfer: { host, port, head, path: 'bench/large', size: largeBytes, sends } })
    }
    found.peak.set(name, [(await memoryOf(second)).peak])
    await second.stop()
  }
  let keys: { secretKey: string } | undefined
  await each(OWN, async () => {
    const started = await startAsUsersDo(join(folder, 'memory'))
    // A start prints the secret key only when it makes one.
    keys ??= { secretKey: started.secretKey }
    const server = { ...started, ...keys }
    await makeBucket(server, 'bench')
    return { ...dealgate(OWN, server, []), stop: () => server.program.stop() }
  })
  const absent: string[] = []
  let count = 0
  await each(PEER, async () => {
    const peers = await startPeers(join(folder, `memory-${count++}`), installed, true, [PEER])
    const [subject] = peers.subjects
    if (!subject) throw new Error(peers.absent.join('; '))
    await makeBucket(subject.server, 'bench')
    return { ...subject, stop: () => subject.processes[0]?.program.stop() ?? Promise.resolve() }
  }).catch((error: Error) => void absent.push(error.message))
  const row = (name: string, when: keyof typeof found) => {
    const goal: Goal = GOALS[when]
    return rowOf({ part: 'memory', name, unit: 'MiB', goal }, found[when])
  }
  return {
    rows: [
      row(`idle for ${IDLE_SECONDS} s`, 'idle'),
      row('after 36,000 requests', 'loaded'),
      row(`highest of ${largeBytes / MIB} MiB up and down`, 'peak'),
    ],
    absent,
  }
}

interface Stopped {
  stop(): Promise<void>
}

/** proc(5): 5 sets the highest resident set to the present one. */
async function forgetPeak({ processes }: Subject): Promise<void> {
  for (const { program } of processes) await writeFile(`/proc/${program.pid}/clear_refs`, '5')
}

/** MiB of the first process. */
async function memoryOf({ processes }: Subject): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${processes[0]?.program.pid}/status`, 'utf8')
  const field = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
  return { now: field('VmRSS'), peak: field('VmHWM') }
}
