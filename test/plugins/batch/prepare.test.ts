import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { rowsOfManifest } from '../../../plugins/batch/manifest.js'
import type { BatchOrder, FilterSource, ManifestSource } from '../../../plugins/batch/order.js'
import { prepareRows } from '../../../plugins/batch/prepare.js'
import { type BatchRecord, type BatchRun, NEW_RECORD } from '../../../plugins/batch/records.js'
import type { OwnRequest } from '../../../src/api/child-request.js'

const NONE = { prefixes: [], suffixes: [], substrings: [], storageClasses: [], tags: [], dealStates: [] }

/** What a run has on record of a job. */
function recorded() {
  const state: { record: BatchRecord; readonly rows: unknown[] } = { record: NEW_RECORD, rows: [] }
  const run = {
    get: async () => state.record,
    change: async (to: (record: BatchRecord) => BatchRecord) => {
      state.record = to(state.record)
      return state.record
    },
    put: async (number: number, { rows }: { readonly rows: unknown }) => {
      state.rows[number] = rows
    },
  }
  // The only members that the preparation has use for.
  return { state, run: run as unknown as BatchRun }
}

t.test('a filter that accepts little can be stopped, and goes on where it has ended', async (t) => {
  const filter: FilterSource = { ...NONE, bucket: 'things', versions: 'Current', suffixes: ['5'] }
  const order = { filter } as unknown as BatchOrder
  const keys = Array.from({ length: 20 }, (_, at) => `k${String(at).padStart(2, '0')}`)
  const after: (string | undefined)[] = []
  const ask = async ({ query }: OwnRequest) => {
    const from = query?.['start-after']
    after.push(from)
    const contents = keys.filter((key) => key > (from ?? '')).map((key) => `<Contents><Key>${key}</Key></Contents>`)
    return { status: 200, headers: {}, body: `<ListBucketResult>${contents.join('')}</ListBucketResult>` }
  }
  const { state, run } = recorded()
  let turns = 0
  const stopped = prepareRows(
    run,
    order,
    ask,
    async () => {
      if (++turns === 10) throw new Error('paused')
    },
    { saveMs: 0 },
  )
  await t.rejects(stopped, { message: 'paused' })
  t.same(state.rows, [[['things', 'k05']]])
  await prepareRows(run, order, ask, async () => {})
  t.same(after, [undefined, 'k09'], 'behind the last place on record')
  t.same(state.rows, [[['things', 'k05']], [['things', 'k15']]])
  t.match(state.record, { prepared: true, listing: { chunks: 2, rows: 2 } })
})

t.test('a job has a bound of rows, and a manifest one of decompressed bytes', async (t) => {
  const etag = 'e'
  const manifest: ManifestSource = {
    ...{ format: 'S3BatchOperations_CSV_20180820', fields: ['Bucket', 'Key'], bucket: 'b', key: 'm.csv', etag },
  }
  const order = { manifest } as unknown as BatchOrder
  const csv = async () => ({ status: 200, headers: {}, body: 'things,a\nthings,b\n' })
  const prepared = (maxRows: number) => prepareRows(recorded().run, order, csv, async () => {}, { maxRows })
  await t.rejects(prepared(1), { code: 'InvalidRequest' })
  await t.resolves(prepared(2))

  const file = gzipSync('\n'.repeat(100_000))
  const MD5checksum = createHash('md5').update(file).digest('hex')
  const files: object[] = Array.from({ length: 3 }, () => ({ key: 'f.csv.gz', MD5checksum }))
  const inventory = { fileFormat: 'CSV', fileSchema: 'Bucket, Key', destinationBucket: 'b', files }
  const ask = async ({ key }: OwnRequest) => ({
    ...{ status: 200, headers: {} },
    body: key === 'f.csv.gz' ? file : JSON.stringify(inventory),
  })
  const source = { ...manifest, format: 'S3InventoryReport_CSV_20161130' } as const
  const rows = async (most: number) => {
    for await (const row of rowsOfManifest(source, etag, ask, most)) t.fail(`${row}`)
  }
  await t.resolves(rows(300_000))
  await t.rejects(rows(299_999), { code: 'InvalidManifest', message: /299999 bytes, decompressed/ })
  files.push({ key: 'f.csv.gz' })
  await t.rejects(rows(400_000), { code: 'InvalidManifest', message: /lacks the MD5checksum/ })
})
