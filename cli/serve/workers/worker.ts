import cluster from 'node:cluster'
import { CleanupStack } from '../../../common/cleanup-stack.js'
import { collectWhenIdle } from '../../../common/idle-heap.js'
import { createLogger, type Logger, setLogLevel } from '../../../common/log.js'
import { Metrics } from '../../../common/metrics.js'
import { render } from '../../../common/render-metrics.js'
import type { Lease, LeaseStore } from '../../../src/state/locks/memory-leases.js'
import { SignalBoard } from '../../../src/state/signals.js'
import { describeError, EXIT_FAILURE } from '../../command.js'
import { type Config, variable } from '../../config/config.js'
import { processMetrics } from '../../process/process-metrics.js'
import { startEndpoint } from '../endpoint.js'
import { type GatewayInUse, obtainGateway, startEmbedded } from '../gateway.js'
import { onReopen } from '../observability.js'
import type { Prepare, PreparedReload } from '../reload.js'
import { servicesInWorkers } from '../server-options.js'
import {
  Batch,
  type FromWorker,
  type QuestionName,
  type Questions,
  type ReloadStep,
  type ToWorker,
} from './messages.js'
import { WORKER_NUMBER } from './supervisor.js'

/**
 * Serves requests until the supervisor asks to stop. Without a supervisor, the process ends at once: another server may
 * use the data folder then.
 */
export async function runWorker(): Promise<void> {
  // A terminal sends its signals to all processes; the supervisor decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  // The supervisor passes it on to workers that may still be starting.
  onReopen(() => {})
  const number = Number(variable(WORKER_NUMBER))
  const metrics = new Metrics()
  const channel = openChannel(metrics)
  const { ask } = channel
  // The one in use: this process may have been started again after a change that is not to be used yet.
  const config = await ask('config')
  const log = createLogger({ level: config.logLevel, format: config.logFormat, worker: number })
  const cleanup = new CleanupStack()
  cleanup.defer(processMetrics(metrics))
  try {
    const worker = { number, leases: leasesBy(channel), signals: channel.board }
    const scrape = async (accept?: string) => render(await ask('metrics'), accept)
    const gateway = () => gatewayOf(config, log, ask)
    const reload = (requestId: string) => ask('reload', requestId)
    const { console } = await ask('services')
    const started = await startEndpoint({ config, log, cleanup, worker, metrics, scrape, gateway, reload, console })
    if (started.gateway.metrics) metrics.include(started.gateway.metrics)
    channel.takeSteps(stepsOf(started.prepare, log))
    channel.send({ kind: 'ready', url: started.url })
    log.info({ pid: process.pid }, 'a worker is ready')
    collectWhenIdle()
    await channel.stopped
    log.info('shutting down')
  } finally {
    await cleanup.close()
    // `disconnect` drops what the pipe has not taken: the answer shows that the supervisor has all releases.
    await ask('services')
    process.disconnect()
  }
}

type Ask = <Name extends QuestionName>(
  name: Name,
  ...args: Parameters<Questions[Name]>
) => Promise<ReturnType<Questions[Name]>>

function openChannel(metrics: Metrics) {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  const batch = new Batch<FromWorker>((messages) => {
    if (process.connected) process.send?.(messages)
  })
  const send = (message: FromWorker) => batch.sendNow(message)
  const board = new SignalBoard((text) => send({ kind: 'signal', text }))
  let stop: () => void = () => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  let takeSteps: (steps: TakeStep) => void = () => {}
  const steps = new Promise<TakeStep>((resolve) => {
    takeSteps = resolve
  })
  async function step(id: number, asked: ReloadStep): Promise<void> {
    try {
      const take = await steps
      await take(asked)
      send({ kind: 'stepped', id })
    } catch (error) {
      send({ kind: 'stepped', id, error: describeError(error) })
    }
  }
  let stopping = false
  let last = 0
  const receive = (message: ToWorker) => {
    if (message.kind === 'signal') board.receive(message.text)
    else if (message.kind === 'step') void step(message.id, message.step)
    else if (message.kind === 'metrics')
      void metrics.snapshot().then((families) => send({ kind: 'metrics', id: message.id, families }))
    else if (message.kind === 'stop') {
      stopping = true
      stop()
    } else {
      const asked = waiting.get(message.id)
      waiting.delete(message.id)
      if (message.error === undefined) asked?.resolve(message.value)
      else asked?.reject(new Error(message.error))
    }
  }
  process.on('message', (messages: readonly ToWorker[]) => messages.forEach(receive))
  // A message, also one of Node.js about a connection, that finds the pipe broken: `disconnect` follows, and ends this.
  cluster.worker?.on('error', () => {})
  process.on('disconnect', () => {
    // The worker's own disconnect comes after everything is closed.
    process.exit(stopping ? process.exitCode : EXIT_FAILURE)
  })
  const ask: Ask = (name, ...args) =>
    new Promise((resolve, reject) => {
      const id = ++last
      waiting.set(id, { resolve: (value) => resolve(value as Awaited<ReturnType<Ask>> as never), reject })
      batch.add({ kind: 'question', id, name, args })
    })
  const release = (lease: Lease) => batch.addLate({ kind: 'release', lease })
  return { ask, release, send, board, stopped, takeSteps }
}

type TakeStep = (step: ReloadStep) => Promise<void>

function stepsOf(prepare: Prepare, log: Logger): TakeStep {
  let prepared: PreparedReload | undefined
  let level: Config['logLevel'] | undefined
  return async (step) => {
    if (step.kind === 'prepare') {
      prepared = await prepare(step.config)
      level = step.config.logLevel
      return
    }
    const ready = prepared
    prepared = undefined
    await ready?.[step.kind]()
    if (ready && level !== undefined && step.kind === 'apply') setLogLevel(log, level)
  }
}

function leasesBy({ ask, release }: { readonly ask: Ask; readonly release: (lease: Lease) => void }): LeaseStore {
  return {
    acquire: (lease, ms, waitedMs = 0) => ask('acquire', lease, ms, waitedMs),
    renew: (lease, ms) => ask('renew', lease, ms),
    yield: (lease, ms) => ask('yield', lease, ms),
    release: async (lease) => release(lease),
  }
}

/** The embedded gateway runs in each worker or in the supervisor. */
async function gatewayOf(config: Config, log: Logger, ask: Ask): Promise<GatewayInUse> {
  if (config.gatewayUrl !== undefined) return obtainGateway(config, log)
  if (servicesInWorkers(config)) {
    const { startServices } = await import('../../../services/services.js')
    // The services run in the main thread, which alone can share a port.
    return startEmbedded(config, log, { platform: true, starter: { start: startServices } })
  }
  const { gateway, embedded, platform, payment } = await ask('services')
  return {
    url: gateway,
    embedded,
    platform: platform === undefined ? undefined : { url: platform },
    payment,
    account: () => ask('account'),
    stop: async () => {},
  }
}
