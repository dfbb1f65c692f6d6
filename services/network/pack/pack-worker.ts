import { parentPort } from 'node:worker_threads'
import { CID } from 'multiformats/cid'
import { NetworkError } from '../network.js'
import { CarReader } from './car/car-reader.js'
import { type CarScope, carOf } from './car/car-stream.js'
import { copyDirectory, type PackedContent } from './pack.js'

/** Entry point of `PackThread`, which has it do several tasks at a time. */
export type PackTask =
  /** Copies a directory out of a CAR that a client made: see `copyDirectory`. Gives one result. */
  | { readonly kind: 'directory'; readonly received: string; readonly target: string }
  /** Reads a CAR in the file of another: see `carOf`. Gives its bytes in batches. */
  | {
      readonly kind: 'car'
      readonly file: string
      readonly root: string
      readonly scope: Omit<CarScope, 'above'>
      readonly above: readonly string[]
    }

interface CarBatch {
  readonly bytes: Uint8Array
  /** The bytes of the CIDs of the blocks that were read for it, sent or not, one character each. */
  readonly read: readonly string[]
}

export type PackItem = PackedContent | CarBatch

export type ToPackWorker = { readonly id: number } & (
  | { readonly task: PackTask }
  /** The last item was taken. */
  | { readonly taken: true }
  | { readonly stop: true }
)

export type FromPackWorker = { readonly id: number } & (
  | { readonly item: PackItem }
  | { readonly done: true }
  | { readonly failed: { readonly message: string; readonly code: string | undefined; readonly isNetworks: boolean } }
)

/** Memory for indexes of CARs, bytes: enough for CARs with 300,000 blocks in total. */
const INDEX_BYTES = 16 * 1024 * 1024

/** A batch has at least so many bytes, but for the last one, and at most a block more. */
const BATCH_BYTES = 64 * 1024

/** A batch has at most so many CIDs: blocks that were sent already may be read without end. */
const MAX_BATCH_BLOCKS = 1024

const reader = new CarReader(INDEX_BYTES)

interface RunningTask {
  readonly stop: AbortController
  /** Ends the wait for the other side. */
  go(): void
}

const running = new Map<number, RunningTask>()
const post = (message: FromPackWorker): void => parentPort?.postMessage(message)

parentPort?.on('message', (message: ToPackWorker) => {
  const { id } = message
  if ('task' in message) {
    void run(id, message.task)
    return
  }
  if ('stop' in message) running.get(id)?.stop.abort()
  running.get(id)?.go()
})

async function run(id: number, task: PackTask): Promise<void> {
  const own: RunningTask = { stop: new AbortController(), go: () => {} }
  running.set(id, own)
  const { signal } = own.stop
  try {
    for await (const item of itemsOf(task, signal)) {
      signal.throwIfAborted()
      const taken = new Promise<void>((resolve) => {
        own.go = resolve
      })
      post({ id, item })
      await taken
      signal.throwIfAborted()
    }
    post({ id, done: true })
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    post({ id, failed: { message, code, isNetworks: error instanceof NetworkError } })
  } finally {
    running.delete(id)
  }
}

async function* itemsOf(task: PackTask, signal: AbortSignal): AsyncIterable<PackItem> {
  if (task.kind === 'directory') {
    yield await copyDirectory(task.received, task.target, signal)
    return
  }
  let read: string[] = []
  const car = await reader.open(task.file, (cid) => {
    signal.throwIfAborted()
    read.push(Buffer.from(cid.bytes).toString('latin1'))
  })
  try {
    let sections: Uint8Array[] = []
    let length = 0
    const scope = { ...task.scope, above: task.above.map((cid) => CID.parse(cid)) }
    for await (const section of carOf(CID.parse(task.root), car.block, scope)) {
      sections.push(section)
      length += section.length
      if (length < BATCH_BYTES && read.length < MAX_BATCH_BLOCKS) continue
      yield { bytes: Buffer.concat(sections, length), read }
      sections = []
      length = 0
      read = []
    }
    yield { bytes: Buffer.concat(sections, length), read }
  } finally {
    await car.close()
  }
}
