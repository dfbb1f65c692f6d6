import { Pace } from '../../../common/pace.js'
import type { JobFailure } from '../../api/jobs.js'
import type { Plugin, PluginGauge, PluginHost } from '../../api/plugin.js'
import { ownOrigin } from '../../plugins/hooks.js'
import { inventoryCalls } from './calls.js'
import { inventoryConfigurations } from './operations.js'
import { InventoryRecords, type RunInput } from './records.js'
import { type InventoryBounds, inventoryRuns } from './run.js'
import { InventoryScheduler } from './scheduler.js'

interface InventoryOptions extends InventoryBounds {
  /** How often schedules are looked at, ms; 0 for never. */
  readonly intervalMs: number
}

/** Inventories of buckets: their configurations, schedules and files. */
export function inventories(options: InventoryOptions): Plugin {
  let started: { readonly host: PluginHost; readonly records: InventoryRecords } | undefined
  // Without a burst: what is listed is known with its page alone.
  const pace = new Pace(options.rate, 1)
  const running = () => {
    if (!started) throw new Error('the plugin is not started')
    return started
  }

  /** Who subscribes to events of the bucket learns of it, too: the key of the event is the id of the configuration. */
  async function failed({ bucket, configuration }: RunInput, jobId: string, error: JobFailure): Promise<void> {
    const { host, records } = running()
    const { id, by } = configuration
    const { code, message } = error
    host.log.error({ bucket, inventory: id, job: jobId, code, reason: message }, 'an inventory failed')
    await records.change(bucket, id, (record) => ({
      ...record,
      last: { jobId, ended: host.now(), failure: { code, message } },
    }))
    await host.own.plugins.hooks.inventoryFailed({
      ...{ name: 'Inventory:Failed', bucket, key: id, time: host.now(), failure: { code, message } },
      origin: { ...ownOrigin(), accessKeyId: by },
    })
  }

  return {
    name: 'inventory',
    operations: [
      ...inventoryConfigurations,
      ...inventoryCalls({ records: () => running().records, now: () => running().host.now() }),
    ],
    jobs: [inventoryRuns(() => ({ ...running(), bounds: options, pace, failed }))],
    gauges: [outcomes(() => running().records)],
    async start(host) {
      started = { host, records: new InventoryRecords(host.state) }
      const { intervalMs } = options
      if (intervalMs > 0)
        host.schedule(new InventoryScheduler({ ...started, everySeconds: intervalMs / 1000, failed }).work)
    },
  }
}

function outcomes(records: () => InventoryRecords): PluginGauge {
  return {
    name: 'configurations',
    help: 'Configurations of inventories by the outcome of the last inventory.',
    async read() {
      const counts = { Complete: 0, Failed: 0, None: 0 }
      for await (const { last } of records().all()) counts[last ? (last.failure ? 'Failed' : 'Complete') : 'None']++
      return Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value }))
    },
  }
}
