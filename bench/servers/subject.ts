import type { Frames } from '../load/frames.js'
import type { Expected, Shot } from '../load/job.js'
import type { Program } from './program.js'

const OPERATIONS = ['GET', 'HEAD', 'PUT', 'DELETE', 'LIST'] as const
/** LIST returns the first 1,000 keys of a bucket. */
export type Operation = (typeof OPERATIONS)[number]

/** One way to the objects, and all processes on it. */
export interface Subject {
  readonly name: string
  /** How it checks who sends a request. */
  readonly checks: string
  /** A server of others: if it fails, it is left out, and the bench goes on. */
  readonly foreign?: true
  /** Those that are measured; all by default. */
  readonly operations?: readonly Operation[]
  /** What an acknowledged write survives. */
  readonly durability: string
  readonly host: string
  readonly port: number
  /** The first is the one whose cost is the subject's; the others are behind it. */
  readonly processes: readonly { readonly name: string; readonly program: Program }[]
  /** Called before the requests of each run are made: renews log-ins. */
  prepare?(): Promise<void>
  /** @param path `<bucket>/<key>`; for LIST the bucket */
  shot(operation: Operation, path: string, size: number): Shot
  expected(operation: Operation): Expected
  /** The head of a request for a large object. `headers` are signed; ways that are not S3 leave them out. */
  large(method: 'GET' | 'PUT', path: string, size: number, headers: Readonly<Record<string, string>>): string
  /** An upload in chunks of aws-chunked, signed ones or with this line as the trailer; absent where there is none. */
  chunked?(path: string, size: number, trailer: string | undefined): { readonly head: string; readonly frames: Frames }
}

export const LISTED = 1000
