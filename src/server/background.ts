import type { CleanupStack } from '../../common/cleanup-stack.js'
import { isReported } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { HOUR_MS, PeriodicTask } from '../../common/time.js'
import type { Decide, Perform } from '../api/child-request.js'
import type { Context } from '../api/context.js'
import type { Hooks } from '../api/hooks.js'
import type { PluginHost } from '../api/plugin.js'
import type { State } from '../api/state.js'
import { partChecksumRecords } from '../objects/part-checksums.js'
import type { OwnJobs } from '../plugins/jobs/open-jobs.js'
import { type PluginSet, startPlugins } from '../plugins/running-plugins.js'
import { createSealer, sealingKeyOf } from '../plugins/sealer.js'
import { type LifecycleOptions, startLifecycle } from '../s3/lifecycle/runner.js'
import type { Backends } from './backends.js'
import { defaultPeriods } from './limits.js'
import type { ProxyOptions } from './proxy-options.js'

interface BackgroundDeps extends Pick<Backends, 'state' | 'settings'> {
  readonly plugins: PluginSet
  readonly own: Context
  readonly ownerOf: LifecycleOptions['ownerOf']
  readonly acted: LifecycleOptions['acted']
  readonly perform: Perform
  readonly storage: PluginHost['storage']
  readonly decide: Decide
  readonly jobs: OwnJobs
  readonly hooks: Hooks
  readonly options: Pick<
    ProxyOptions,
    'now' | 'uploadExpiryMs' | 'lifecycleIntervalMs' | 'platformUrl' | 'paymentUrl' | 'sealingKey' | 'data' | 'stateUrl'
  >
}

/**
 * Starts the work that no request asks for: sweeps, plugins, jobs and lifecycle rules.
 * @throws PluginError if a plugin fails to start
 */
export async function startBackground(deps: BackgroundDeps, cleanup: CleanupStack): Promise<void> {
  const { state, settings, plugins, own, ownerOf, acted, perform, decide, storage, jobs, hooks, options } = deps
  const { log } = own
  const now = options.now ?? Date.now
  cleanup.defer(startSweeps(state, options.uploadExpiryMs ?? defaultPeriods.uploadExpiryMs, log))
  for (const kind of plugins.jobs) jobs.register(kind)
  const { platformUrl, paymentUrl } = options
  const sealer = createSealer(sealingKeyOf(options))
  const operations = () => plugins.table.rows
  const board = state.signals
  const facts = { operations, storage, now, platformUrl, paymentUrl }
  const shared = { state, settings, own, perform, decide, sealer, board, ...facts }
  cleanup.defer(await startPlugins(plugins.plugins, shared, log))
  jobs.start()
  cleanup.defer(() => jobs.stop())
  const lifecycle = startLifecycle({
    state,
    settings,
    ownerOf,
    acted,
    storageClasses: own.plugins.storageClasses,
    hooks,
    log,
    now,
    intervalMs: options.lifecycleIntervalMs ?? defaultPeriods.lifecycleIntervalMs,
  })
  cleanup.defer(() => lifecycle.stop())
}

/**
 * Removes abandoned multipart uploads and part checksums of deleted objects from the state, now and every hour.
 * @param uploadExpiryMs age at which an incomplete multipart upload is aborted, ms; 0 for never
 * @returns a function that stops the sweeps without waiting for one under way
 */
function startSweeps(state: State, uploadExpiryMs: number, log: Logger): () => void {
  const partChecksums = partChecksumRecords(state)
  const sweep = async (what: string, run: () => Promise<number>) => {
    try {
      // Everything looks abandoned in a store that has lost its records.
      await state.requireIntact()
      const count = await run()
      if (count > 0) log.info({ count }, `removed ${what}`)
    } catch (err) {
      if (!isReported(err, log)) log.error({ err }, `removing ${what} failed`)
    }
  }
  const sweepAll = () =>
    Promise.all([
      sweep('abandoned multipart uploads', () =>
        state.uploads.sweep(uploadExpiryMs > 0 ? Date.now() - uploadExpiryMs : 0),
      ),
      sweep('part checksums of deleted objects', () => partChecksums.sweep()),
    ])
  const task = new PeriodicTask(sweepAll, (err) => log.error({ err }, 'the sweeps failed'))
  task.start(HOUR_MS)
  return () => task.stopTimer()
}
