import { DAY_MS, HOUR_MS } from '../common/durations.js'
import type { Hooks } from '../plugins/forms/hooks.js'
import type { PluginServices } from '../plugins/forms/services.js'
import type { OwnJobs } from '../plugins/jobs/open-jobs.js'
import { createSealer } from '../plugins/kit/sealer.js'
import { sealingKeyOf } from '../plugins/kit/sealing-key.js'
import type { PluginSet } from '../plugins/loading/combine-plugins.js'
import { startPlugins } from '../plugins/loading/plugin-lives.js'
import { startLifecycle } from '../s3/lifecycle/runner.js'
import type { Backends } from './backends.js'
import type { CleanupStack } from './cleanup-stack.js'
import type { Context } from './context.js'
import type { ProxyOptions } from './proxy-options.js'
import { startSweeps } from './sweeps.js'

export interface BackgroundParts extends Pick<Backends, 'state' | 'settings'>, Pick<PluginSet, 'plugins'> {
  readonly own: Context
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
export async function startBackground(parts: BackgroundParts, cleanup: CleanupStack): Promise<void> {
  const { state, settings, plugins, own, jobs, hooks, options } = parts
  const {
    log,
    plugins: { storageClasses },
  } = own
  const now = options.now ?? Date.now
  cleanup.defer(startSweeps(state, options.uploadExpiryMs ?? 7 * DAY_MS, log))
  for (const kind of plugins.flatMap((plugin) => plugin.jobs ?? [])) jobs.register(kind)
  const { platformUrl, paymentUrl } = options
  const sealer = createSealer(sealingKeyOf(options))
  const offered: PluginServices = Object.assign({}, ...plugins.map(({ offers }) => offers))
  const shared = { state, settings, own, now, platformUrl, paymentUrl, sealer, offered }
  cleanup.defer(await startPlugins(plugins, shared, log))
  jobs.start()
  cleanup.defer(() => jobs.stop())
  const lifecycle = startLifecycle({
    state,
    settings,
    store: own.store,
    requireOwner: own.checks.requireOwner,
    storageClasses,
    hooks,
    log,
    now,
    intervalMs: options.lifecycleIntervalMs ?? HOUR_MS,
  })
  cleanup.defer(() => lifecycle.stop())
}
