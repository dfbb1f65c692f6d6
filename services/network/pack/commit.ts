import { Worker } from 'node:worker_threads'
import type { Commit, Piece } from '../network.js'
import type { FromCommitWorker } from './commit-worker.js'

/** Further threads end when they have computed their piece. */
const MAX_IDLE = 2

/** After this time without a file a thread ends, ms. */
const IDLE_MS = 10_000

/**
 * Returns a function that computes about 25 MiB/s, in one thread per call. It rejects with the error of the file system
 * when the file cannot be read, and with the signal's reason when it aborts. To start a thread takes as long as to
 * compute a piece of 2 MiB: two wait for the next file, without any state of the file before.
 */
export function createCommit(): Commit {
  const idle: CommitThread[] = []

  function keep(thread: CommitThread): void {
    idle.push(thread)
    thread.rest(IDLE_MS, () => {
      const at = idle.indexOf(thread)
      if (at >= 0) idle.splice(at, 1)
    })
  }

  return async (file, { onProgress, signal }) => {
    signal?.throwIfAborted()
    const thread = idle.pop() ?? new CommitThread()
    const abort = (): void => void thread.end()
    signal?.addEventListener('abort', abort, { once: true })
    try {
      return await thread.commit(file, (bytes) => onProgress?.(bytes))
    } catch (error) {
      throw signal?.aborted ? signal.reason : error
    } finally {
      signal?.removeEventListener('abort', abort)
      if (thread.usable && idle.length < MAX_IDLE) keep(thread)
      else await thread.end()
    }
  }
}

interface Task {
  onBytes(bytes: number): void
  resolve(piece: Piece): void
  reject(error: unknown): void
}

/** A thread that computes pieces, one after the other. A thread that rests does not keep the process alive. */
class CommitThread {
  readonly #worker: Worker
  #task: Task | undefined
  #ended = false
  #rest: { readonly timer: NodeJS.Timeout; readonly onEnd: () => void } | undefined

  constructor() {
    // The thread does not need the loaders of the main thread, which are slow to start.
    this.#worker = new Worker(new URL('./commit-worker.js', import.meta.url), { execArgv: [] })
    this.#worker.on('message', (message: FromCommitWorker) => {
      // Ignore messages that the thread sent before it was terminated.
      if (this.#ended) return
      if ('piece' in message) this.#task?.resolve(message.piece)
      else this.#task?.onBytes(message.bytes)
    })
    this.#worker.on('error', (error) => this.#over(error))
    this.#worker.on('exit', () => this.#over(new Error('The thread that computes the piece ended early.')))
  }

  /** True if it can compute another piece. */
  get usable(): boolean {
    return !this.#ended
  }

  /** Wakes a resting thread. Rejects when the file cannot be read, or the thread ends. */
  async commit(file: string, onBytes: (bytes: number) => void): Promise<Piece> {
    clearTimeout(this.#rest?.timer)
    this.#rest = undefined
    this.#worker.ref()
    try {
      return await new Promise<Piece>((resolve, reject) => {
        this.#task = { onBytes, resolve, reject }
        this.#worker.postMessage(file)
      })
    } finally {
      this.#task = undefined
    }
  }

  /** Waits for the next file, and ends after `ms` without one. Calls `onEnd` when it has ended or is about to. */
  rest(ms: number, onEnd: () => void): void {
    this.#worker.unref()
    this.#rest = { timer: setTimeout(() => void this.end(), ms).unref(), onEnd }
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#rest?.onEnd()
    await this.#worker.terminate()
  }

  #over(error: unknown): void {
    this.#ended = true
    clearTimeout(this.#rest?.timer)
    this.#rest?.onEnd()
    this.#task?.reject(error)
  }
}
