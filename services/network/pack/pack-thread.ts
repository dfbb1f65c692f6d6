import { createWriteStream } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Worker } from 'node:worker_threads'
import { CID } from 'multiformats/cid'
import { NetworkError } from '../network.js'
import type { CarScope } from './car/car-stream.js'
import type { PackedContent } from './pack.js'
import type { FromPackWorker, PackItem, PackTask, ToPackWorker } from './pack-worker.js'

/** After this time without a task the thread ends, ms. */
const IDLE_MS = 10_000

interface PendingTask {
  /** Called with each message of the task, and with none when the thread has ended. */
  take(message: FromPackWorker | undefined): void
}

/**
 * Packs and reads CARs for clients in one thread, all at a time: a CAR of many small blocks takes seconds of a
 * processor, and must not delay what else the services do. The thread starts with the first task, and ends some time
 * after the last one.
 */
export class PackThread {
  #worker: Worker | undefined
  #rest: NodeJS.Timeout | undefined
  #failure: unknown
  #nextId = 0
  readonly #running = new Map<number, PendingTask>()

  /** Receives a CAR and copies the directory out of it: see `copyDirectory`. */
  async directory(
    content: AsyncIterable<Uint8Array>,
    target: string,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<PackedContent> {
    const received = `${resolve(target)}.received`
    try {
      const file = createWriteStream(received, { mode: 0o600 })
      await pipeline(Readable.from(content, { objectMode: false }), file, { signal })
      for await (const item of this.#run({ kind: 'directory', received, target }, signal))
        if ('cid' in item) return item
      throw new Error('The thread that packs CARs gave no result.')
    } finally {
      await unlink(received).catch(() => {})
    }
  }

  /**
   * The bytes of a CAR of what is beneath `root` in the CAR of a file: see `carOf`.
   * @param check called for each block that was read before bytes behind it are sent; what it throws ends the reading
   */
  async *car(file: string, root: CID, { above = [], ...scope }: CarScope, check?: (cid: CID) => void) {
    const task = { kind: 'car', file, root: root.toString(), scope, above: above.map(String) } as const
    for await (const item of this.#run(task)) {
      if (!('bytes' in item)) continue
      if (check) for (const text of item.read) check(CID.decode(Buffer.from(text, 'latin1')))
      yield item.bytes
    }
  }

  /**
   * Yields the items of a task. A task whose reader leaves, or whose signal aborts, has stopped when this ends.
   * @throws the signal's reason; NetworkError; the error of the file system
   */
  async *#run(task: PackTask, signal?: AbortSignal): AsyncGenerator<PackItem> {
    signal?.throwIfAborted()
    const id = this.#nextId++
    const came: (FromPackWorker | undefined)[] = []
    let wake = (): void => {}
    this.#running.set(id, {
      take(message) {
        came.push(message)
        wake()
      },
    })
    const next = async (): Promise<FromPackWorker> => {
      if (came.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const message = came.shift()
      if (message === undefined) throw new Error('The thread that packs CARs ended early.', { cause: this.#failure })
      return message
    }
    const worker = this.#awake()
    const post = (message: ToPackWorker): void => worker.postMessage(message)
    const stop = (): void => post({ id, stop: true })
    signal?.addEventListener('abort', stop, { once: true })
    let ended = false
    try {
      post({ id, task })
      for (;;) {
        const message = await next()
        ended = !('item' in message)
        if ('failed' in message) throw signal?.aborted ? signal.reason : errorOf(message.failed)
        if (!('item' in message)) return
        yield message.item
        post({ id, taken: true })
      }
    } finally {
      signal?.removeEventListener('abort', stop)
      // The files of a task must not be removed before it has stopped.
      const stopped = async (): Promise<void> => {
        while (!ended && this.#worker === worker) {
          stop()
          ended = !('item' in (await next()))
        }
      }
      await stopped().catch(() => {})
      this.#over(id)
    }
  }

  #awake(): Worker {
    clearTimeout(this.#rest)
    if (this.#worker === undefined) {
      // The thread does not need the loaders of the main thread, which are slow to start.
      const worker = new Worker(new URL('./pack-worker.js', import.meta.url), { execArgv: [] })
      worker.on('message', (message: FromPackWorker) => this.#running.get(message.id)?.take(message))
      worker.on('error', (error) => {
        this.#failure = error
        this.#lose(worker)
      })
      worker.on('exit', () => this.#lose(worker))
      this.#worker = worker
    }
    this.#worker.ref()
    return this.#worker
  }

  #over(id: number): void {
    this.#running.delete(id)
    const worker = this.#worker
    if (worker === undefined || this.#running.size > 0) return
    worker.unref()
    this.#rest = setTimeout(() => {
      this.#worker = undefined
      void worker.terminate()
    }, IDLE_MS).unref()
  }

  #lose(worker: Worker): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    clearTimeout(this.#rest)
    for (const running of this.#running.values()) running.take(undefined)
  }
}

function errorOf({ message, code, isNetworks }: Extract<FromPackWorker, { failed: unknown }>['failed']): Error {
  if (isNetworks) return new NetworkError(code as NetworkError['code'], message)
  return Object.assign(new Error(message), code !== undefined && { code })
}
