import { createLogger, type Logger } from '../../../common/log.js'
import { Metrics } from '../../../common/metrics/metrics.js'
import { render } from '../../../common/metrics/render.js'
import { CleanupStack } from '../../../server/cleanup-stack.js'
import { processMetrics } from '../../../server/metrics/process-metrics.js'
import type { LeaseStore } from '../../../state/locks/lease-store.js'
import { SignalBoard } from '../../../state/signals/signals.js'
import { type Config, variable } from '../../config/config.js'
import { EXIT_FAILURE } from '../../failure.js'
import { startEndpoint } from '../endpoint.js'
import { type GatewayInUse, obtainGateway } from '../gateway.js'
import type { FromWorker, Question, Questions, ToWorker } from './messages.js'
import { WORKER_NUMBER, WORKER_PORT } from './supervisor.js'

/**
 * Serves requests until the supervisor asks to stop. Without a supervisor, the process ends at once: another server may
 * use the data folder then.
 */
export async function runWorker(given: Config): Promise<void> {
  // A terminal sends its signals to all processes; the supervisor decides.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
  const number = Number(variable(WORKER_NUMBER))
  const config = { ...given, port: Number(variable(WORKER_PORT) ?? given.port) }
  const log = createLogger({ level: config.logLevel, worker: number })
  const metrics = new Metrics()
  const channel = openChannel(metrics)
  const cleanup = new CleanupStack()
  cleanup.defer(processMetrics(metrics))
  const { ask } = channel
  try {
    const worker = { number, leases: leasesBy(ask), signals: channel.board }
    const scrape = async (accept?: string) => render(await ask('metrics'), accept)
    const gateway = () => gatewayOf(config, log, ask)
    const started = await startEndpoint({ config, log, cleanup, worker, metrics, scrape, gateway })
    channel.send({ kind: 'ready', url: started.url })
    log.info({ pid: process.pid }, 'a worker is ready')
    await channel.stopped
    log.info('shutting down')
  } finally {
    await cleanup.close()
    process.disconnect()
  }
}

type Ask = <Name extends Question>(
  name: Name,
  ...args: Parameters<Questions[Name]>
) => Promise<ReturnType<Questions[Name]>>

function openChannel(metrics: Metrics) {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  const send = (message: FromWorker) => {
    if (process.connected) process.send?.(message)
  }
  const board = new SignalBoard((text) => send({ kind: 'signal', text }))
  let stop: () => void = () => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  let stopping = false
  let last = 0
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'signal') board.receive(message.text)
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
  })
  process.on('disconnect', () => {
    // The worker's own disconnect comes after everything is closed.
    process.exit(stopping ? process.exitCode : EXIT_FAILURE)
  })
  const ask: Ask = (name, ...args) =>
    new Promise((resolve, reject) => {
      const id = ++last
      waiting.set(id, { resolve: (value) => resolve(value as Awaited<ReturnType<Ask>> as never), reject })
      send({ kind: 'question', id, name, args })
    })
  return { ask, send, board, stopped }
}

function leasesBy(ask: Ask): LeaseStore {
  return {
    acquire: (lease, ms, waitedMs = 0) => ask('acquire', lease, ms, waitedMs),
    renew: (lease, ms) => ask('renew', lease, ms),
    yield: (lease, ms) => ask('yield', lease, ms),
    release: (lease) => ask('release', lease),
  }
}

/** The embedded gateway runs in the supervisor. */
async function gatewayOf(config: Config, log: Logger, ask: Ask): Promise<GatewayInUse> {
  if (config.gatewayUrl !== undefined) return obtainGateway(config, log)
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
