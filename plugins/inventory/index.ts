import { randomBytes } from 'node:crypto'
import { definePlugin, type JobFailure, Pace, type PluginGauge, z } from 'dealgate/plugin'
import { inventoryCalls } from './calls.js'
import { inventoryDefaults } from './defaults.js'
import { inventoryConfigurations } from './operations.js'
import { InventoryRecords, type RunInput } from './records.js'
import { inventoryRuns } from './run.js'
import { InventoryScheduler } from './scheduler.js'

const options = z.object({
  intervalMs: z
    .int()
    .min(0)
    .default(inventoryDefaults.intervalMs)
    .describe(
      'How often schedules are looked at, ms; 0 for never. `--inventory-interval-seconds` of the command line.',
    ),
  fileRows: z
    .int()
    .min(1)
    .default(inventoryDefaults.fileRows)
    .describe('Rows of a file; `--inventory-file-rows` of the command line.'),
  rate: z
    .int()
    .min(0)
    .default(inventoryDefaults.rate)
    .describe(
      'Objects that all runs of the process list per second; 0 for no bound. `--inventory-rate` of the command line.',
    ),
})

/** Inventories of buckets: their configurations, schedules and files. */
export default definePlugin({
  name: 'inventory',
  standard: true,
  summary: 'Inventories of buckets, as Amazon S3 Inventory writes them.',
  options,
  create(bounds, host) {
    const records = new InventoryRecords(host.state)
    // Without a burst: what is listed is known with its page alone.
    const pace = new Pace(bounds.rate, 1)

    /**
     * Announces a failed run to those who subscribe to events of the bucket: the key of the event is the id of the
     * configuration.
     */
    async function failed({ bucket, configuration }: RunInput, jobId: string, error: JobFailure): Promise<void> {
      const { id, by } = configuration
      const { code, message } = error
      host.log.error({ bucket, inventory: id, job: jobId, code, reason: message }, 'an inventory failed')
      await records.change(bucket, id, (record) => ({
        ...record,
        last: { jobId, ended: host.now(), failure: { code, message } },
      }))
      await host.own.plugins.hooks.inventoryFailed({
        ...{ name: 'Inventory:Failed', bucket, key: id, time: host.now(), failure: { code, message } },
        origin: { requestId: randomBytes(8).toString('hex').toUpperCase(), accessKeyId: by, remoteAddress: '' },
      })
    }

    return {
      operations: [...inventoryConfigurations, ...inventoryCalls({ records, now: host.now })],
      jobs: [inventoryRuns({ host, records, bounds, pace, failed })],
      gauges: [outcomes(records)],
      async start() {
        const { intervalMs } = bounds
        if (intervalMs > 0)
          host.schedule(new InventoryScheduler({ host, records, everySeconds: intervalMs / 1000, failed }).work)
      },
    }
  },
})

function outcomes(records: InventoryRecords): PluginGauge {
  return {
    name: 'configurations',
    help: 'Configurations of inventories by the outcome of the last inventory.',
    async read() {
      const counts = { Complete: 0, Failed: 0, None: 0 }
      for await (const { last } of records.all()) counts[last ? (last.failure ? 'Failed' : 'Complete') : 'None']++
      return Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value }))
    },
  }
}
