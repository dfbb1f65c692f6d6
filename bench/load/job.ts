/** What the load process is told to do, and what it answers; both pass over its IPC channel. */

import type { Frames } from './frames.js'

export interface Shot {
  /** Request line and headers, with the final empty line; one character per byte. */
  readonly head: string
  /** `<bucket>/<key>`, from which `contentOf` derives the bytes of the object. */
  readonly path: string
  /** A body that is not the object's own; absent for none. */
  readonly text?: string
}

/** What an answer has to be; anything else fails the run. */
export interface Expected {
  readonly status: number
  /** `content`: the bytes of the key; `length`: a Content-Length of as many bytes, without a body. */
  readonly body?: 'content' | 'length'
  /** A text that the body contains so many times. */
  readonly contains?: { readonly text: string; readonly times: number }
}

/** Many requests for small objects. */
export interface Requests {
  readonly host: string
  readonly port: number
  readonly connections: number
  readonly shots: readonly Shot[]
  /** Requests in all; the shots are sent in turn, again and again. */
  readonly count: number
  /** Bytes of each object that is sent or expected. */
  readonly size: number
  /** True if the shots send the bytes of their objects. */
  readonly sends: boolean
  readonly expected: Expected
}

/** One large object. */
export interface Transfer {
  readonly host: string
  readonly port: number
  readonly head: string
  readonly path: string
  readonly size: number
  /** True to upload. */
  readonly sends: boolean
  /** Of an upload in chunks of aws-chunked. */
  readonly frames?: Frames
}

export type Job = { readonly requests: Requests } | { readonly transfer: Transfer }

export interface Outcome {
  readonly seconds: number
  /** Latencies in ms. */
  readonly p50: number
  readonly p99: number
  /** CPU time of the load process, seconds. */
  readonly cpuSeconds: number
}

export type Report = { readonly outcome: Outcome } | { readonly failure: string }
