import { execFileSync } from 'node:child_process'
import { large } from '../cases/large.js'
import type { Run } from '../cases/measure.js'
import { type Counts, NAMES, small } from '../cases/small.js'
import { type Goal, OWN } from '../results/runs.js'
import { makeBucket, startProxy } from '../servers/dealgate.js'
import { minioItself, startMinio } from '../servers/minio.js'
import { dealgate } from '../servers/start.js'
import type { Operation } from '../servers/subject.js'
import { type Found, type GoalsContext, rowOf, samplesOf, wholeCost } from './part.js'

const MINIO = 'MinIO'
const MIB = 1024 ** 2
const LARGE_BYTES = 64 * MIB
const COUNTS: Counts = { GET: 2000, HEAD: 2000, PUT: 600, DELETE: 600, LIST: 20 }
const SMALL_GOALS: Partial<Readonly<Record<Operation, number>>> = { GET: 0.7, PUT: 0.7, HEAD: 0.7 }
const LARGE_GOALS = { GET: 0.9, PUT: 0.85 } as const

/** dealgate in front of a MinIO of 2021, on the same cores as that, beside the S3 of this MinIO itself. */
export async function gateway(context: GoalsContext): Promise<Found> {
  const { folder, load, rounds, minio, progress } = context
  if (minio === undefined) return { rows: [], absent: ['MinIO, which .ci/build-real-gateway builds'] }
  const behind = await startMinio(folder, minio)
  const proxy = await startProxy(folder, behind)
  try {
    const front = dealgate(OWN, proxy, [{ name: 'gateway', program: behind.program }])
    const itself = minioItself(behind)
    for (const bucket of ['bench', 'listed']) await makeBucket(proxy, bucket)
    progress('in front of MinIO: small objects')
    const subjects = [front, itself]
    const found = await small(load, subjects, [front], rounds, COUNTS)
    const rate = ({ done, seconds }: Run) => done / seconds
    const rows = (Object.keys(SMALL_GOALS) as Operation[]).flatMap((operation) => {
      const result = found.results.find(({ name }) => name === NAMES[operation])
      if (!result) return []
      const described = { part: 'gateway', name: NAMES[operation] } as const
      return [
        rowOf({ ...described, unit: 'requests/s', goal: goalOf(SMALL_GOALS[operation]) }, samplesOf(result, {}, rate)),
        rowOf(
          { ...described, unit: 'µs of CPU with MinIO' },
          samplesOf(result, {}, (run) => wholeCost(run) * 1e6),
        ),
      ]
    })
    progress('in front of MinIO: 64 MiB')
    const transfers = await large(load, subjects, [front], rounds, LARGE_BYTES, ['GET', 'PUT, body not signed'])
    const largeRows = (['GET', 'PUT'] as const).flatMap((method) => {
      const result = transfers.find(({ name }) => name.startsWith(method))
      if (!result) return []
      const described = { part: 'gateway', name: `${method} of 64 MiB`, unit: 'MiB/s' } as const
      return [
        rowOf(
          { ...described, goal: goalOf(LARGE_GOALS[method]) },
          samplesOf(result, {}, (run) => rate(run) / MIB),
        ),
      ]
    })
    return { rows: [...rows, ...largeRows], absent: found.failures, peers: { MinIO: versionOf(minio) } }
  } finally {
    await proxy.program.stop()
    await behind.program.stop()
  }
}

function goalOf(atLeast: number | undefined): Goal {
  return { of: MINIO, atLeast: atLeast ?? 0 }
}

/** Built from its source by Go, it has no version of its own. */
function versionOf(minio: string): string {
  const told = execFileSync(minio, ['--version'], { encoding: 'utf8' })
  return /RELEASE\.\S+/.exec(told)?.[0] ?? 'of June 2021'
}
