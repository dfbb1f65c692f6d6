import { large } from '../cases/large.js'
import type { CaseResult } from '../cases/measure.js'
import { type Counts, NAMES, small } from '../cases/small.js'
import { costOf } from '../report/gate.js'
import { type Goal, OWN } from '../results/runs.js'
import { makeBucket, startProxy } from '../servers/dealgate.js'
import { startPeers } from '../servers/peers.js'
import { dealgate } from '../servers/start.js'
import type { Operation } from '../servers/subject.js'
import { type Found, type GoalsContext, rowOf, samplesOf } from './part.js'

const DEFAULT = 'versitygw'
const KEPT = 'versitygw --keep-alive'
const SYNCED = 'versitygw --keep-alive, synced'
/** It differs from the other ones in what it writes. */
const WRITES = ['PUT', 'DELETE'] as const
const COUNTS: Counts = { GET: 4000, HEAD: 4000, PUT: 1500, DELETE: 1500, LIST: 40 }
const GIB = 1024 ** 3
/** Of the large object, which takes seconds. */
const MOST_LARGE_ROUNDS = 3

const GOALS: Readonly<Record<Operation, Goal>> = {
  GET: { of: KEPT, atMost: 1 },
  PUT: { of: DEFAULT, atMost: 1 },
  HEAD: { of: DEFAULT, atMost: 1 },
  DELETE: { of: DEFAULT, atMost: 1.5 },
  LIST: { of: DEFAULT, atMost: 0.35 },
}
const LARGE_GOALS: readonly (readonly [start: string, goal: Goal])[] = [
  ['GET', { atMost: 0.5 }],
  ['PUT', { atMost: 3.2 }],
]

/** One process with its embedded gateway beside versitygw in its forms: small objects, and one large one. */
export async function objects(context: GoalsContext): Promise<Found> {
  const { folder, load, rounds, installed, largeBytes, progress } = context
  const own = await startProxy(folder, undefined)
  const peers = await startPeers(folder, installed, true, [DEFAULT, KEPT, SYNCED])
  try {
    const others = peers.subjects.map((peer) => (peer.name === SYNCED ? { ...peer, operations: WRITES } : peer))
    const subjects = [dealgate(OWN, own, []), ...others]
    for (const { server } of subjects) for (const bucket of ['bench', 'listed']) await makeBucket(server, bucket)
    progress(`small objects: ${subjects.map(({ name }) => name).join(', ')}`)
    const found = await small(load, subjects, subjects, rounds, COUNTS)
    const rows = (Object.keys(NAMES) as Operation[]).flatMap((operation) => {
      const result = found.results.find(({ name }) => name === NAMES[operation])
      if (!result) return []
      const described = { part: 'objects', name: NAMES[operation], unit: 'µs', goal: GOALS[operation] } as const
      return [
        rowOf(
          described,
          samplesOf(result, {}, (run) => costOf(run) * 1e6),
        ),
      ]
    })
    const name = `${Math.round(largeBytes / 2 ** 20)} MiB`
    progress(`one object of ${name}`)
    // The synced form writes at the speed of the disk, which says nothing about CPU.
    const fast = subjects.filter((subject) => subject.name !== SYNCED)
    const forms = ['GET', 'PUT, body not signed']
    const transfers = await large(load, fast, fast, Math.min(rounds, MOST_LARGE_ROUNDS), largeBytes, forms)
    const largeRows = LARGE_GOALS.flatMap(([start, goal]) => {
      const result = transfers.find((each: CaseResult) => each.name.startsWith(start))
      if (!result) return []
      const described = { part: 'large', name: `${start} of ${name}`, unit: 's for a GiB', goal } as const
      return [
        rowOf(
          described,
          samplesOf(result, {}, (run) => costOf(run) * GIB),
        ),
      ]
    })
    return {
      rows: [...rows, ...largeRows],
      absent: [...peers.absent, ...found.failures],
      peers: Object.fromEntries(peers.subjects.map(({ version = '' }) => ['versitygw', version])),
    }
  } finally {
    for (const { processes } of peers.subjects) for (const { program } of processes) await program.stop()
    await own.program.stop()
  }
}
