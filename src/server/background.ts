import { DAY_MS, HOUR_MS } from '../common/durations.js'
import type { Hooks } from '../plugins/forms/hooks.js'
import type { OwnJobs } from '../plugins/jobs/open-jobs.js'
import { createSealer } from '../plugins/kit/sealer.js'
import { sealingKeyOf } from '../plugins/kit/sealing-key.js'
import { kindsOf, type RunningPlugins } from '../plugins/loading/running-plugins.js'
import { startLifecycle } from '../s3/lifecycle/runner.js'
import type { Backends } from './backends.js'
import type { CleanupStack } from './cleanup-stack.js'
import type { Context } from './context.js'
import type { ContextFactory } from './contexts/context-factory.js'
import type { ProxyOptions } from './proxy-options.js'
import { startSweeps } from './sweeps.js'

export interface BackgroundParts extends Pick<Backends, 'state' | 'settings'> {
  readonly plugins: RunningPlugins
  readonly own: Context
  readonly ownerContext: ContextFactory['ofOwner']
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
  const { state, settings, plugins, own, ownerContext, jobs, hooks, options } = parts
  const { log } = own
  const now = options.now ?? Date.now
  cleanup.defer(startSweeps(state, options.uploadExpiryMs ?? 7 * DAY_MS, log))
  for (const kind of kindsOf(plugins.set)) jobs.register(kind)
  const { platformUrl, paymentUrl } = options
  const sealer = createSealer(sealingKeyOf(options))
  const shared = { state, settings, own, now, platformUrl, paymentUrl, sealer }
  await plugins.start({ shared, jobs })
  cleanup.defer(() => plugins.stop())
  jobs.start()
  cleanup.defer(() => jobs.stop())
  const lifecycle = startLifecycle({
    state,
    settings,
    ownerOf: async (owned) => {
      const context = owned === undefined ? own : await ownerContext(owned)
      return context && { store: context.store, requireOwner: context.checks.requireOwner }
    },
    get storageClasses() {
      return own.plugins.storageClasses
    },
    hooks,
    log,
    now,
    intervalMs: options.lifecycleIntervalMs ?? HOUR_MS,
  })
  cleanup.defer(() => lifecycle.stop())
}
