import { type MessagePort, Worker } from 'node:worker_threads'
import { type ServicesLog, silentLog } from './log.js'
import type { Services, ServicesOptions } from './services.js'
import type { Answers, FromWorker, SentError, ToWorker } from './worker-messages.js'

/** A thread that loads the services, and starts them on request. */
export type LoadingServices = Pick<ServicesThread, 'start' | 'discard'>

/**
 * Most memory for young objects. With V8's default, 48, the process has 25 MiB more after a load, with 12 it has 11
 * more, and requests cost as much.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 6 }

/** Has a thread load the services, beside what this thread has to load. Discard it if they are not started. */
export function loadServices(): LoadingServices {
  return new ServicesThread(new Worker(new URL('./worker.js', import.meta.url), { resourceLimits }))
}

/**
 * Like `startServices`, but in a worker thread, so that disk access and digests of the services do not block this
 * thread.
 * @param onFailure called when the thread dies after its start; default: throws the error as an uncaught exception,
 *   which ends the process, because it cannot work without a store
 */
export function startServicesInWorker(
  options: ServicesOptions,
  onFailure: (error: Error) => void = throwLater,
): Promise<Services> {
  return loadServices().start(options, onFailure)
}

type Started = Extract<FromWorker, { type: 'started' }>

class ServicesThread {
  readonly #worker: Worker
  #log: ServicesLog = silentLog
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #nextId = 1
  #reported = false
  #stopping = false
  #ended = false
  readonly #exited: Promise<Error | undefined>

  constructor(worker: Worker) {
    this.#worker = worker
    let failure: Error | undefined
    worker.on('error', (error) => {
      failure = error as Error
    })
    this.#exited = new Promise((resolve) => worker.once('exit', () => resolve(failure)))
  }

  /** @param onFailure as of `startServicesInWorker` */
  async start({ log = silentLog, ...options }: ServicesOptions, onFailure: (error: Error) => void): Promise<Services> {
    this.#log = log
    const { gateway, platform, payment } = await this.#started(options, onFailure)
    return {
      gateway: {
        ...gateway,
        credentials: () => this.#ask('credentials'),
        attach: (port) => this.#post({ type: 'attach', port }, [port]),
      },
      platform: platform && { ...platform, makeFirstUser: () => this.#ask('first user') },
      payment,
      stop: () => this.#stop(),
      metrics: () => this.#ask('metrics'),
    }
  }

  /** Ends a thread that has not started services; otherwise does nothing. */
  discard(): void {
    if (!this.#reported) this.#post({ type: 'stop' })
  }

  #started(options: Omit<ServicesOptions, 'log'>, onFailure: (error: Error) => void): Promise<Started> {
    this.#reported = true
    this.#post({ type: 'start', options })
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

  #ask<What extends keyof Answers>(what: What): Promise<Answers[What]> {
    if (this.#ended) return Promise.reject(new Error('The embedded services have been stopped.'))
    return new Promise((resolve, reject) => {
      const id = this.#nextId++
      this.#asked.set(id, { resolve: resolve as (value: unknown) => void, reject })
      this.#post({ type: 'ask', what, id })
    })
  }

  async #stop(): Promise<void> {
    if (!this.#stopping) this.#post({ type: 'stop' })
    this.#stopping = true
    const failure = await this.#exited
    if (failure !== undefined) throw failure
  }

  #take(message: Exclude<FromWorker, { type: 'started' | 'failed' }>): void {
    if (message.type === 'log') {
      this.#log[message.level](withErrors(message.fields), message.message)
      return
    }
    const asked = this.#asked.get(message.id)
    if (message.type === 'answer') asked?.resolve(message.value)
    else asked?.reject(new Error(message.message))
    this.#asked.delete(message.id)
  }

  #post(message: ToWorker, ports: readonly MessagePort[] = []): void {
    this.#worker.postMessage(message, ports)
  }
}

/** Fields of a line, with the errors that they had. */
function withErrors(fields: Readonly<Record<string, unknown>>): object {
  const each = Object.entries(fields).map(([name, value]) => [name, isSent(value) ? errorOf(value) : value])
  return Object.fromEntries(each)
}

function isSent(value: unknown): value is SentError {
  return value instanceof Object && 'name' in value && 'message' in value && 'stack' in value
}

/** Pino says that an error is of the type of its constructor, and where it has none, of that of its name. */
function errorOf({ name, message, stack, code }: SentError): Error {
  const error = new Error(message)
  Object.defineProperties(error, { name: { value: name }, stack: { value: stack }, constructor: { value: undefined } })
  return code === undefined ? error : Object.assign(error, { code })
}

function throwLater(error: Error): void {
  process.nextTick(() => {
    throw error
  })
}
