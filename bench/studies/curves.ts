import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Endpoint } from '../../test/suites/sign.js'
import { measure } from '../cases/measure.js'
import type { Job } from '../load/job.js'
import { Load } from '../load/load.js'
import { type Chart, type Curve, drawCurves } from '../report/curves.js'
import { embeddedData, makeBucket } from '../servers/dealgate.js'
import { minioItself, startMinio } from '../servers/minio.js'
import type { Program } from '../servers/program.js'
import { EMBEDDED, PROXY, startBench } from '../servers/start.js'
import type { Operation, Subject } from '../servers/subject.js'
import { dealsUnderWay } from './deals-under-way.js'
import { seed } from './seed.js'

const MIB = 1024 * 1024
const CONNECTIONS = [1, 4, 16, 64, 256]
const COUNT = 2000
/** Those above SMALL are transfers over one connection. */
const SIZES = [0, 1, 1024, 32 * 1024, MIB, 16 * MIB, 256 * MIB, 1024 * MIB]
/** Bytes of a point, at most COUNT requests. */
const BYTES = 64 * MIB
const SMALL = 32 * 1024
const KEYS = [1000, 10_000, 100_000, 1_000_000, 10_000_000]
/** Of no bytes, in a chart whose axis begins with a byte. */
const ZERO = 0.1
const READ = 1000
/** More keys are written into the index of dealgate beside it; servers of others get no more than MOST_PUT, by PUT. */
const MOST_SENT = 10_000
const MOST_PUT = 100_000
/** Requests of a job: they are signed first, and held in memory. */
const SENT = 10_000

interface CurvesOptions {
  readonly quirks: string
  /** The program of MinIO, whose S3 is measured beside. */
  readonly minio: string | undefined
  /** Where the charts are written. */
  readonly out: string
  readonly installed: string
  readonly maxKeys: number
  readonly maxBytes: number
  /** Of `connections`, `bytes`, `keys` and `deals`; empty for all. */
  readonly axes: readonly string[]
}

/**
 * CPU of an operation at dealgate with its embedded gateway, and at the servers of others that are installed, over
 * connections, bytes of a body, and keys of a bucket, and over deals under way: charts for docs/scaling.md.
 */
export async function curves({ quirks, minio, out, installed, maxKeys, maxBytes, axes }: CurvesOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = new Load()
  const programs: Program[] = []
  const bench = await startBench({
    folder,
    quirks,
    minio: undefined,
    nodeOptions: [],
    peers: true,
    install: true,
    installed,
    wanted: ['versitygw --keep-alive', 's3rver'],
  })
  try {
    const subjects: (Subject & { readonly server: Endpoint })[] = bench.stores.filter(({ name }) => name !== PROXY)
    if (minio !== undefined) {
      const server = await startMinio(join(folder, 'beside'), minio)
      programs.push(server.program)
      subjects.push(minioItself(server))
      await makeBucket(minioItself(server).server, 'bench')
    }
    const point = async (subject: Subject, job: Job, operations: number) => {
      await subject.prepare?.()
      const { cpu } = await measure(load, subject, job, operations)
      return (Object.values(cpu)[0] ?? 0) / operations
    }
    const small = (subject: Subject, operation: Operation, many: Partial<Many> = {}) => {
      const { connections = 16, count = COUNT, size = 1024, from = 0, keys = READ, place = 'curves' } = many
      const paths = Array.from({ length: keys }, (_, i) =>
        operation === 'LIST' ? 'bench' : `bench/${place}/${from + i}`,
      )
      const { host, port } = subject
      const shots = paths.map((path) => subject.shot(operation, path, size))
      const expected = operation === 'LIST' ? { status: 200 } : subject.expected(operation)
      const sends = operation === 'PUT'
      return point(subject, { requests: { host, port, connections, shots, count, size, sends, expected } }, count)
    }
    const wanted = (axis: string) => axes.length === 0 || axes.includes(axis)
    const draw = (name: string, found: Chart) => writeFile(join(out, `cost-over-${name}.svg`), drawCurves(found))
    const chart = async (name: string, words: Omit<Chart, 'curves'>, xs: readonly number[], of: Measured) => {
      if (!wanted(name)) return
      const found: Curve[] = []
      for (const subject of subjects)
        for (const operation of ['GET', 'PUT'] as const) {
          const points: [number, number][] = []
          for (const x of xs) {
            // A server of others that fails is left out from there on.
            const seconds = await of(subject, operation, x).catch((error: Error) => {
              if (!subject.foreign) throw error
              console.log(`${subject.name}, ${operation}, ${x}: ${error.message.split('\n')[0]}`)
            })
            if (seconds === undefined) break
            points.push([x === 0 ? ZERO : x, Math.max(seconds * 1e6, 1)])
            console.log(`${name} ${subject.name} ${operation} ${x}: ${(seconds * 1e6).toFixed(0)} µs`)
          }
          if (points.length > 0)
            found.push({ name: `${subject.name === EMBEDDED ? 'dealgate' : subject.name}, ${operation}`, points })
        }
      await draw(name, { ...words, curves: found })
    }
    const y = 'µs of CPU of each'
    // Everything is compiled, and the keys exist. One first: rclone fails where two requests make the same folder.
    for (const subject of subjects)
      for (const place of ['curves', 'keys'])
        await small(subject, 'PUT', { place, keys: 1, count: 1, connections: 1 }).catch(() => {})
    for (const subject of subjects)
      for (const operation of ['PUT', 'GET'] as const)
        await small(subject, operation, { count: 3 * COUNT }).catch(() => {})
    await chart(
      'connections',
      { title: 'Objects of 1 KiB, over connections', x: 'connections', y },
      CONNECTIONS,
      (subject, operation, connections) => small(subject, operation, { connections }),
    )
    await chart(
      'bytes',
      { title: 'One body, over its bytes', x: 'bytes', y, zero: ZERO },
      SIZES.filter((size) => size <= maxBytes),
      async (subject, operation, size) => {
        const place = `bytes-${size}`
        if (size > SMALL) {
          const path = `bench/${place}`
          const times = Math.max(1, Math.round(BYTES / size))
          const transfer = async (put: boolean) => {
            const { host, port } = subject
            const head = subject.large(put ? 'PUT' : 'GET', path, size, { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' })
            const job = { transfer: { host, port, head, path, size, sends: put } }
            let seconds = 0
            for (let i = 0; i < times; i++) seconds += await point(subject, job, times)
            return seconds
          }
          if (operation === 'GET') await transfer(true)
          return transfer(operation === 'PUT')
        }
        const many = {
          size,
          place,
          keys: 4,
          count: Math.max(16, Math.min(COUNT, Math.round(BYTES / Math.max(1, size)))),
        }
        if (operation === 'GET') await small(subject, 'PUT', { ...many, count: 4, connections: 1 })
        return small(subject, operation, many)
      },
    )
    const filled = new Map<string, number>()
    await chart(
      'keys',
      { title: 'Objects of 1 KiB, over the keys of their bucket', x: 'keys', y },
      KEYS.filter((keys) => keys <= maxKeys),
      async (subject, operation, keys) => {
        if (subject.foreign && keys > MOST_PUT) throw new Error(`not measured with ${keys} keys`)
        const put = async (start: number, end: number) => {
          for (let from = start; from < end; from += SENT) {
            const count = Math.min(SENT, end - from)
            await small(subject, 'PUT', { from, keys: count, count, place: 'keys' })
          }
        }
        const last = keys - READ
        const from = filled.get(subject.name) ?? 0
        filled.set(subject.name, Math.max(from, keys))
        if (from < keys) {
          const seeded = keys > MOST_SENT && !subject.foreign
          await (seeded ? seed(embeddedData(folder), 'bench', 'keys/', from, last) : put(from, last))
          await put(last, keys)
        }
        return small(subject, operation, { from: last, place: 'keys' })
      },
    )
    if (wanted('deals')) {
      const found = await dealsUnderWay(load, join(folder, 'deals'))
      await draw('deals', { title: 'Over deals that are under way', x: 'deals under way', y, curves: found })
    }
  } finally {
    for (const program of programs) await program.stop()
    await bench.stop()
    load.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Seconds of CPU of an operation. */
type Measured = (subject: Subject, operation: 'GET' | 'PUT', x: number) => Promise<number>

interface Many {
  readonly connections: number
  readonly count: number
  readonly size: number
  /** The first of the keys, and their number. */
  readonly from: number
  readonly keys: number
  readonly place: string
}
