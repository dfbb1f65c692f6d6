import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { CleanupStack } from '../../../common/cleanup-stack.js'
import { bringUpToDate } from '../../../common/files/data-version.js'
import type { Logger } from '../../../common/log.js'
import { Metrics } from '../../../common/metrics.js'
import { aggregate, render } from '../../../common/render-metrics.js'
import { featuresOf, parseQuirks } from '../../../services/gateway/legacy/quirks.js'
import { urlOf } from '../../../services/http/server.js'
import { makeFolder } from '../../../src/state/folder-record.js'
import { type Lease, MemoryLeases } from '../../../src/state/locks/memory-leases.js'
import { STORE } from '../../../src/state/signals.js'
import { lockFolder } from '../../../src/state/sqlite-lock.js'
import type { Config } from '../../config/config.js'
import { obtainKeys } from '../../keys/keys.js'
import { processMetrics } from '../../process/process-metrics.js'
import { readinessProblem } from '../../readiness.js'
import { recordServer } from '../../running.js'
import { banner, shownPlatform } from '../banner.js'
import { openConsole, shownConsole } from '../console.js'
import { type GatewayInUse, obtainGateway, servicesFolder } from '../gateway.js'
import { onReopen, openMetricsPort } from '../observability.js'
import { endingMs } from '../process.js'
import { prepareAll, Reloader } from '../reload.js'
import { servicesInWorkers, workersOf } from '../server-options.js'
import type { StartOptions } from '../start-server.js'
import type { QuestionName, SharedServices } from './messages.js'
import { Supervisor } from './supervisor.js'

/**
 * Longest time for which a request that a worker has sent to the embedded gateway may take effect after its death, ms.
 * A write that is even later is refused, because the next holder of the lease has a higher fence.
 */
const MAX_LATE_WRITE_MS = 3000

/**
 * Starts the workers that serve requests, and the embedded services in this process, unless the workers run them.
 * Resolves to the start message.
 * @throws Failure, StateError
 */
export async function startWorkers(
  config: Config,
  log: Logger,
  cleanup: CleanupStack,
  { thread, onReloadable }: StartOptions = {},
): Promise<string> {
  const lock = lockFolder(makeFolder(join(config.data, 'state')))
  cleanup.defer(() => lock.release())
  bringUpToDate(config.data)
  const keys = await obtainKeys(config)
  const pages = await openConsole(config, log, cleanup)
  const inWorkers = servicesInWorkers(config)
  const ports = await choosePorts(config, inWorkers)
  const gateway = inWorkers
    ? gatewayOfWorkers({ ...config, ...ports })
    : await obtainGateway(config, log, { platform: true, ...(thread && { starter: thread }) })
  cleanup.defer(() => gateway.stop())
  const { url, embedded, payment } = gateway
  const services: SharedServices = {
    gateway: url,
    embedded,
    platform: gateway.platform?.url,
    payment,
    console: pages.address,
  }

  const own = new Metrics()
  cleanup.defer(processMetrics(own))
  if (gateway.metrics) own.include(gateway.metrics)
  const metricsOfAll = async () => aggregate([await supervisor.metrics(), await own.snapshot()])

  const fenced = featuresOf(new Set(parseQuirks(config.gatewayQuirks)), new Set()).includes('write-fences')
  const leases = new MemoryLeases((token) => supervisor.broadcast(`${STORE} lease ${token}`))
  const supervisor: Supervisor = new Supervisor({
    count: workersOf(config),
    log,
    // The services in workers end after the requests, and have the time that the whole server has.
    graceMs: inWorkers ? undefined : endingMs(config),
    ended(worker) {
      if (embedded && fenced) leases.abandon(worker, MAX_LATE_WRITE_MS)
    },
    release(lease) {
      void leases.release(lease)
    },
    async answer(name: QuestionName, args, worker) {
      const [lease, ms, waitedMs] = args as [Lease, number, number]
      switch (name) {
        case 'services':
          return services
        case 'config':
          return { ...(await reloader.current(() => supervisor.include(worker))), ...ports }
        case 'reload':
          return reloader.reload('POST /-/reload', args[0] as string)
        case 'account':
          return typeof gateway.account === 'function' ? gateway.account() : gateway.account
        case 'acquire':
          return leases.acquire(lease, ms, waitedMs, worker)
        case 'renew':
          return leases.renew(lease, ms)
        case 'yield':
          return leases.yield(lease, ms)
        case 'metrics':
          return metricsOfAll()
      }
    },
  })
  const reloader: Reloader = new Reloader({
    config,
    log,
    prepare: (next) => prepareAll([() => supervisor.prepare({ ...next, ...ports }), () => pages.prepare(next)]),
  })
  cleanup.defer(() => supervisor.stop())
  cleanup.defer(onReopen(() => supervisor.signal('SIGUSR2')))
  const endpoint = await supervisor.start()
  pages.begin(endpoint)
  const scrape = async (accept?: string) => render(await metricsOfAll(), accept)
  const metrics = await openMetricsPort({ config, scrape, log, cleanup })
  onReloadable?.(reloader)
  const { region, data } = config
  cleanup.defer(recordServer(data, { endpoint, region, gateway: url, platform: services.platform, payment }))
  const platform = await shownPlatform(gateway.platform)
  const console = shownConsole(pages.address)
  const problem = embedded ? undefined : await readinessProblem(endpoint)
  return banner(
    { gateway: url, embedded, platform, payment, endpoint, console, keys, region, metrics, problem },
    config,
  )
}

/** The embedded services that each worker starts beside its endpoint, on ports that all workers share. */
function gatewayOfWorkers(config: Config): Omit<GatewayInUse, 'account'> & Partial<GatewayInUse> {
  const { gatewayHost, gatewayPort, platformUrl, platformHost, platformPort, paymentUrl, database } = config
  const platform = {
    url: urlOf(platformHost, platformPort),
    async makeFirstUser() {
      const { openUserRegistry } = await import('../../../services/platform/user-registry.js')
      const users = await openUserRegistry(servicesFolder(config), database)
      return users.makeFirstUser().finally(() => users.close())
    },
  }
  return {
    url: urlOf(gatewayHost, gatewayPort),
    platform: platformUrl === undefined ? platform : { url: platformUrl },
    payment: paymentUrl ?? urlOf(config.paymentHost, config.paymentPort),
    embedded: true,
    stop: async () => {},
  }
}

const ENDPOINT = ['port', 'host'] as const
const SERVICES = [
  ['gatewayPort', 'gatewayHost'],
  ['platformPort', 'platformHost'],
  ['paymentPort', 'paymentHost'],
] as const

type SharedPorts = { -readonly [Name in (typeof ENDPOINT | (typeof SERVICES)[number])[0]]?: number }

/**
 * Chooses free ports for all workers where the options say 0: each must stay the same when all workers die.
 * @param withServices true if the workers run the embedded services, too
 */
async function choosePorts(config: Config, withServices: boolean): Promise<SharedPorts> {
  const chosen: SharedPorts = {}
  const wanted = [ENDPOINT, ...(withServices ? SERVICES : [])].filter(([name]) => config[name] === 0)
  // All at the same time, so that each gets another one.
  const servers = await Promise.all(
    wanted.map(async ([name, host]) => {
      const server = createServer()
      const listening = once(server, 'listening')
      server.listen(0, config[host])
      await listening
      chosen[name] = (server.address() as AddressInfo).port
      return server
    }),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return chosen
}
