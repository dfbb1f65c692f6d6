import { type AnyOperation, type Context, defineCall, S3Error, z } from 'dealgate/plugin'
import type { InventoryConfiguration } from './configuration.js'
import { confirmed } from './operations.js'
import type { InventoryRecords } from './records.js'
import { CREATE_INVENTORY } from './run.js'
import { nextDue } from './scheduler.js'

const source = 'docs/inventory.md'

const count = z.int().min(0)
const manifest = z.string().describe('Key of the manifest in the bucket of the destination.')

const createBucketInventory = defineCall({
  name: 'CreateBucketInventory',
  source,
  summary: 'Writes an inventory of a bucket now, as one of its configurations says, with the rights of the caller.',
  access: 'owner',
  on: { method: 'POST', resource: 'bucket', subresource: 'x-inventory' },
  body: z.strictObject({ Id: z.string().max(64).describe('Of the configuration; it need not be enabled.') }),
  result: z.object({
    Bucket: z.string(),
    Id: z.string(),
    JobId: z.string(),
    Manifest: manifest,
    Files: count,
    Rows: count,
  }),
  root: 'InventoryResult',
  job: CREATE_INVENTORY,
  spends: false,
  async order({ request: { bucket }, body: { Id } }, context) {
    const configuration = (await confirmed(context, bucket)).find(({ id }) => id === Id)
    if (!configuration) throw new S3Error('NoSuchConfiguration', { fields: { BucketName: bucket } })
    return { resource: `/${bucket}`, input: { bucket, configuration } }
  },
})

const state = z.object({
  Id: z.string(),
  Enabled: z.boolean(),
  SetBy: z.string().describe('Access key id of the identity with whose rights it is written.'),
  NextDue: z.string().optional().describe('RFC 3339; absent for a configuration that is disabled.'),
  LastStatus: z.enum(['Complete', 'Failed']).optional().describe('Absent before the first inventory has ended.'),
  LastEnded: z.string().optional().describe('RFC 3339.'),
  LastJobId: z.string().optional(),
  Manifest: manifest.optional(),
  Files: count.optional(),
  Rows: count.optional(),
  FailureCode: z.string().optional(),
  FailureMessage: z.string().optional(),
  RunningJobId: z.string().optional().describe('The inventory of the schedule that is being written.'),
})

function listBucketInventories({ records, now }: StateDeps) {
  return defineCall({
    name: 'ListBucketInventories',
    source,
    summary: 'Lists the configurations of inventories of a bucket, each with the outcome of the last one.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-inventory' },
    pages: 'Inventories',
    result: z.object({ Bucket: z.string(), Inventories: z.array(state).meta({ element: 'Inventory' }) }),
    async answer({ request: { bucket } }, context) {
      const configurations = await confirmed(context, bucket)
      const Inventories = await Promise.all(
        configurations.map((one) => stateOf({ records, now }, context, bucket, one)),
      )
      return { Bucket: bucket, Inventories }
    },
  })
}

async function stateOf(
  { records, now }: { readonly records: InventoryRecords; readonly now: () => number },
  { jobs }: Context,
  bucket: string,
  { id, enabled, by, frequency }: InventoryConfiguration,
): Promise<z.output<typeof state>> {
  const { last, scheduled } = (await records.get(bucket, id)) ?? {}
  const job = scheduled && scheduled.jobId !== last?.jobId ? await jobs.get(scheduled.jobId) : undefined
  const isRunning = job?.status === 'New' || job?.status === 'Active'
  return {
    ...{ Id: id, Enabled: enabled, SetBy: by },
    ...(enabled && { NextDue: timeText(scheduled ? nextDue(frequency, now()) : now()) }),
    ...(last && {
      ...{ LastStatus: last.failure ? ('Failed' as const) : ('Complete' as const), LastJobId: last.jobId },
      LastEnded: timeText(last.ended),
    }),
    ...(last?.manifest !== undefined && { Manifest: last.manifest, Files: last.files, Rows: last.rows }),
    ...(last?.failure && { FailureCode: last.failure.code, FailureMessage: last.failure.message }),
    ...(isRunning && { RunningJobId: job.id }),
  }
}

function timeText(time: number): string {
  return new Date(time).toISOString()
}

interface StateDeps {
  readonly records: InventoryRecords
  readonly now: () => number
}

export function inventoryCalls(deps: StateDeps): readonly AnyOperation[] {
  return [createBucketInventory, listBucketInventories(deps)]
}
