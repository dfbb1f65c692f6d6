import { Worker } from 'node:worker_threads'
import { type ServicesLog, silentLog } from '../log.js'
import type { Services, ServicesOptions } from '../services.js'
import type { Answers, FromWorker, ToWorker } from './worker-messages.js'

/**
 * Like `startServices`, but in a worker thread, so that disk access and digests of the services do not block this
 * thread.
 * @param onFailure called when the thread dies after its start; default: throws the error as an uncaught exception,
 *   which ends the process, because it cannot work without a store
 */
export async function startServicesInWorker(
  options: ServicesOptions,
  onFailure: (error: Error) => void = throwLater,
): Promise<Services> {
  const { log = silentLog, ...rest } = options
  const thread = new ServicesThread(new Worker(new URL('./worker.js', import.meta.url), { workerData: rest }), log)
  const { url, port, quirks, madeKeys, platform, payment } = await thread.started(onFailure)
  return {
    gateway: { url, port, quirks, madeKeys, credentials: () => thread.ask('credentials') },
    platform: platform && { ...platform, makeFirstUser: () => thread.ask('first user') },
    payment,
    stop: () => thread.stop(),
  }
}

type Started = Extract<FromWorker, { type: 'started' }>

class ServicesThread {
  readonly #worker: Worker
  readonly #log: ServicesLog
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #nextId = 1
  #stopping = false
  #ended = false
  readonly #exited: Promise<Error | undefined>

  constructor(worker: Worker, log: ServicesLog) {
    this.#worker = worker
    this.#log = log
    let failure: Error | undefined
    worker.on('error', (error) => {
      failure = error as Error
    })
    this.#exited = new Promise((resolve) => worker.once('exit', () => resolve(failure)))
  }

  started(onFailure: (error: Error) => void): Promise<Started> {
    return new Promise((resolve, reject) => {
      let running = false
      this.#worker.on('message', (message: FromWorker) => {
        if (message.type === 'started') {
          running = true
          resolve(message)
        } else if (message.type === 'failed') {
          const { code, service } = message
          reject(Object.assign(new Error(message.message), code !== undefined && { code }, service && { service }))
        } else this.#take(message)
      })
      this.#exited.then((failure) => {
        this.#ended = true
        const error = failure ?? new Error('The thread of the embedded services has ended.')
        for (const { reject } of this.#asked.values()) reject(error)
        this.#asked.clear()
        if (!running) reject(error)
        else if (!this.#stopping) onFailure(error)
      })
    })
  }

  ask<What extends keyof Answers>(what: What): Promise<Answers[What]> {
    if (this.#ended) return Promise.reject(new Error('The embedded services have been stopped.'))
    return new Promise((resolve, reject) => {
      const id = this.#nextId++
      this.#asked.set(id, { resolve: resolve as (value: unknown) => void, reject })
      this.#post({ type: 'ask', what, id })
    })
  }

  async stop(): Promise<void> {
    if (!this.#stopping) this.#post({ type: 'stop' })
    this.#stopping = true
    const failure = await this.#exited
    if (failure !== undefined) throw failure
  }

  #take(message: Exclude<FromWorker, { type: 'started' | 'failed' }>): void {
    if (message.type === 'log') {
      this.#log[message.level](message.fields, message.message)
      return
    }
    const asked = this.#asked.get(message.id)
    if (message.type === 'answer') asked?.resolve(message.value)
    else asked?.reject(new Error(message.message))
    this.#asked.delete(message.id)
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message)
  }
}

function throwLater(error: Error): void {
  process.nextTick(() => {
    throw error
  })
}
