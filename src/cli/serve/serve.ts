import cluster from 'node:cluster'
import { CleanupStack } from '../../common/cleanup-stack.js'
import { createLogger } from '../../common/log.js'
import { type Config, unknownVariables } from '../config/config.js'
import { loadEmbedded } from './gateway.js'
import { onReopen } from './observability.js'
import { boundStop, ServiceManager, untilSignal } from './process.js'
import { Hangups, type Reloader, recordReload } from './reload.js'
import { workersOf } from './server-options.js'

/** `dealgate serve`: starts the server, prints its address, and stops on a signal. A failed start stops everything. */
export async function serveUntilSignal(config: Config): Promise<void> {
  if (cluster.isWorker) return (await import('./workers/worker.js')).runWorker(config)
  const signalled = untilSignal()
  const log = createLogger({ level: config.logLevel, format: config.logFormat })
  boundStop(signalled, config, log)
  for (const warning of unknownVariables()) log.warn(warning)
  const manager = new ServiceManager(log)
  const cleanup = new CleanupStack()
  const hangups = new Hangups(log)
  cleanup.defer(() => hangups.close())
  // A program that rotates logs may send it before they are open; without a listener, it would end the process.
  cleanup.defer(onReopen(() => {}))
  const thread = loadEmbedded(config)
  cleanup.defer(() => thread?.discard())
  try {
    // Two threads load at the same time: the embedded services there, the server here.
    const start =
      workersOf(config) > 1
        ? (await import('./workers/primary.js')).startWorkers
        : (await import('./start-server.js')).startServer
    const onReloadable = (reloader: Reloader) =>
      hangups.pass(() => recordReload({ config, log }, () => reloader.reload('SIGHUP')))
    process.stdout.write(await start(config, log, cleanup, { thread, onReloadable }))
    await manager.ready()
    log.info({ signal: await signalled }, 'shutting down')
    await manager.stopping()
  } finally {
    await cleanup.close()
  }
}
