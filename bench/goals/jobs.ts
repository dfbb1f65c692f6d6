import type { Job } from '../load/job.js'
import type { Operation, Subject } from '../servers/subject.js'

interface Many {
  readonly connections: number
  readonly count: number
  /** Different keys, in turn; default 100. */
  readonly keys?: number
  /** Default `bench/goals`. */
  readonly place?: string
}

const SIZE = 1024

/** A job of the load: many requests of one operation for objects of 1 KiB. */
export function requestsOf(
  { host, port, shot, expected }: Pick<Subject, 'host' | 'port' | 'shot' | 'expected'>,
  operation: Operation,
  { connections, count, keys = 100, place = 'bench/goals' }: Many,
): Job {
  const paths = Array.from({ length: keys }, (_, i) => `${place}/${i}`)
  const shots = paths.map((path) => shot(operation, path, SIZE))
  const sends = operation === 'PUT'
  return { requests: { host, port, connections, shots, count, size: SIZE, sends, expected: expected(operation) } }
}
