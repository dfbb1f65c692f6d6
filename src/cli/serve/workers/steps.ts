import type { Worker } from 'node:cluster'
import { withinDeadline } from '../../../common/deadline.js'
import type { Prepared } from '../../../server/proxy-options.js'
import type { Config } from '../../config/config.js'
import { Failure } from '../../failure.js'
import type { FromWorker, ReloadStep, ToWorker } from './messages.js'

/** Longest time for a step in one worker, ms. */
const STEP_MS = 120_000

interface Waiting {
  readonly worker: Worker
  resolve(): void
  reject(error: Error): void
}

/** The steps of reloads, in the workers of a server. */
export class Steps {
  readonly #waiting = new Map<number, Waiting>()
  readonly #send: (worker: Worker, message: ToWorker) => void
  #last = 0

  constructor(send: (worker: Worker, message: ToWorker) => void) {
    this.#send = send
  }

  /** Has these workers prepare a configuration. If one cannot, none keeps it, and this rejects. */
  async prepareAll(workers: readonly Worker[], config: Config): Promise<Prepared> {
    const all = (step: ReloadStep) => Promise.allSettled(workers.map((worker) => this.#take(worker, step)))
    const outcomes = await all({ kind: 'prepare', config })
    const discard = async () => {
      await all({ kind: 'discard' })
    }
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) {
      await discard()
      throw failed.reason
    }
    return {
      async apply() {
        const applied = await all({ kind: 'apply' })
        // The one that is started in its place asks for the configuration in use.
        for (const [i, { status }] of applied.entries()) if (status === 'rejected') workers[i]?.process.kill('SIGKILL')
      },
      discard,
    }
  }

  done({ id, error }: FromWorker & { kind: 'stepped' }): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve()
    else waiting?.reject(new Failure(error))
  }

  /** A worker that dies needs no more steps: the one after it asks for the configuration in use. */
  gone(worker: Worker): void {
    for (const [id, waiting] of this.#waiting) {
      if (waiting.worker !== worker) continue
      this.#waiting.delete(id)
      waiting.resolve()
    }
  }

  #take(worker: Worker, step: ReloadStep): Promise<void> {
    if (!worker.isConnected()) return Promise.resolve()
    const id = ++this.#last
    const taken = new Promise<void>((resolve, reject) => this.#waiting.set(id, { worker, resolve, reject }))
    this.#send(worker, { kind: 'step', id, step })
    return withinDeadline(taken, STEP_MS)
  }
}
