import cluster from 'node:cluster'
import type { Config } from '../config/config.js'
import { loadEmbedded } from './gateway.js'
import { onReopen } from './observability.js'
import { requirePorts } from './ports.js'
import { runUntilSignal } from './process.js'
import { Hangups, type Reloader, recordReload } from './reload.js'
import { workersOf } from './server-options.js'

/** `dealgate serve`: starts the server, prints its address, and stops on a signal. A failed start stops everything. */
export async function serveUntilSignal(config: Config): Promise<void> {
  if (cluster.isWorker) return (await import('./workers/worker.js')).runWorker()
  await runUntilSignal(config, async (log, cleanup) => {
    const hangups = new Hangups(log)
    cleanup.defer(() => hangups.close())
    // A program that rotates logs may send it before they are open; without a listener, it would end the process.
    cleanup.defer(onReopen(() => {}))
    await requirePorts(config, 'server')
    const thread = loadEmbedded(config)
    cleanup.defer(() => thread?.discard())
    // Two threads load at the same time: the embedded services there, the server here.
    const start =
      workersOf(config) > 1
        ? (await import('./workers/primary.js')).startWorkers
        : (await import('./start-server.js')).startServer
    const onReloadable = (reloader: Reloader) =>
      hangups.pass(() => recordReload({ config, log }, () => reloader.reload('SIGHUP')))
    return start(config, log, cleanup, { thread, onReloadable })
  })
}
