import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { ulid } from 'ulid'
import type { Dealgate } from '../support/server/dealgate.js'
import { ask } from '../support/server/many-deaths.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startConsole, type Tab } from './browser.js'

const OBJECTS = 100_000
const DEALS = 2000
const JOBS = 10_000

/** The page after which memory is compared with that after the last one. */
const EARLY = 3
const MAX_ELEMENTS = 4000
const MAX_GROWTH_BYTES = 4 * 1024 * 1024

const TERMS = { MinerId: 't01000', Price: '0.0000005', DurationEpochs: 518_400, ConfirmPrice: true }

t.test('large lists', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { server, tab } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/first.txt', body: Buffer.from('content') })
  const made = await ask(server, 'POST', '/photos/first.txt?x-deal=', { json: TERMS })
  t.equal(made.status, 200)
  const { JobId, Deal } = made.json
  await server.stop()
  fillRecords(join(server.data, 'state/records.sqlite'), JobId, Deal.DealCid)
  fillObjects(join(server.data, 'services/gateway/index.db'))
  await server.start()
  await tab.page.goto(server.console)

  await tab.signIn()
  await tab.sees('1 bucket')
  await turned(t, server, tab, {
    name: 'objects',
    operation: 'ListObjectsV2',
    hash: '#/buckets/photos/objects?prefix=many%2F',
    rows: 200,
    pages: 50,
  })
  await turned(t, server, tab, { name: 'jobs', operation: 'ListJobs', hash: '#/jobs', rows: 100, pages: 20 })
  await turned(t, server, tab, { name: 'deals', operation: 'ListDeals', hash: '#/deals', rows: 100, pages: 20 })
  t.same(tab.complaints, [])
})

function fillObjects(file: string): void {
  const db = new DatabaseSync(file)
  db.exec(`
    BEGIN;
    INSERT INTO objects
      (bucket, key, size, modified, generation, etag, content_type, headers, body_at, fence, write_id)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${OBJECTS})
      SELECT bucket, CAST(printf('many/photo-%06d.jpg', n) AS BLOB), size, modified, lower(hex(randomblob(16))), etag,
        content_type, headers, body_at, fence, write_id
      FROM objects, numbers;
    INSERT INTO bodies SELECT generation, CAST('content' AS BLOB) FROM objects WHERE true ON CONFLICT DO NOTHING;
    UPDATE buckets SET objects = (SELECT count(*) FROM objects), bytes = (SELECT sum(size) FROM objects);
    COMMIT`)
  db.close()
}

/** Copies of a job and of a deal that were really made. The order of deals is in records of a hundred. */
function fillRecords(file: string, jobId: string, dealCid: string): void {
  const db = new DatabaseSync(file)
  const write = db.prepare('INSERT OR REPLACE INTO entry (key, value) VALUES (?, ?)')
  const copies = (kinds: readonly string[], id: string, ids: readonly string[]) => {
    for (const kind of kinds) {
      const row = db.prepare('SELECT value FROM entry WHERE key = ?').get(`${kind}:${id}`) as { value: string }
      for (const copy of ids) write.run(`${kind}:${copy}`, row.value.replaceAll(id, copy))
    }
  }
  db.exec('BEGIN')
  const begun = Date.now() - JOBS
  copies(
    ['x-job-index', 'x-jobs', 'x-job-logs'],
    jobId,
    numbers(JOBS - 1).map((n) => `j-${ulid(begun + n)}`),
  )
  const deals = numbers(DEALS - 1).map((n) => `${dealCid.slice(0, -6)}${String(n).padStart(6, '0')}`)
  copies(['x-deals'], dealCid, deals)
  const ordered = [dealCid, ...deals]
  for (let at = 0; at < DEALS; at += 100)
    write.run(`x-deal-order:${at / 100}`, JSON.stringify({ value: ordered.slice(at, at + 100) }))
  write.run('x-deal-order:last', JSON.stringify({ value: [String(DEALS / 100 - 1)] }))
  db.exec('COMMIT')
  db.close()
}

function numbers(count: number): number[] {
  return [...new Array(count).keys()]
}

interface List {
  readonly name: string
  /** By which a page is asked for. */
  readonly operation: string
  readonly hash: string
  readonly rows: number
  /** Pages that are turned. */
  readonly pages: number
}

/** Turns pages of a list; what the page holds and asks for must not grow with them. */
async function turned(
  t: Test,
  server: Dealgate,
  tab: Tab,
  { name, operation, hash, rows, pages }: List,
): Promise<void> {
  const asked = () => server.log.split(`"operation":"${operation}"`).length - 1
  const rowsShown = `document.querySelectorAll('tbody tr').length`
  // This screen asks for nothing.
  await tab.goTo('#/none', 'This address belongs to no screen')
  const before = asked()
  const begun = performance.now()
  await tab.goTo(hash)
  await tab.untilTrue(`${rowsShown} > 0`)
  const first = performance.now() - begun
  await tab.untilTrue(`${rowsShown} === ${rows}`)
  const whole = performance.now() - begun
  const seen = new Set<string>()
  const early = { heap: 0, elements: 0 }
  const turning = performance.now()
  for (let page = 1; page < pages; page++) {
    const last = String(await tab.page.evaluate(LAST_ROW))
    seen.add(last)
    await tab.click('link', 'Next page')
    await tab.untilTrue(`${rowsShown} === ${rows} && ${LAST_ROW} !== ${JSON.stringify(last)}`)
    if (page === EARLY) Object.assign(early, await held(tab))
  }
  const each = (performance.now() - turning) / (pages - 1)
  const late = await held(tab)
  t.equal(seen.size, pages - 1, `${name}: each page shows other rows`)
  t.ok(late.elements <= MAX_ELEMENTS && late.elements <= early.elements + 10, `${late.elements} elements`)
  await until('the log has the last request', () => asked() - before >= pages)
  t.equal(asked() - before, pages, 'one request for each page')
  t.ok(late.heap - early.heap <= MAX_GROWTH_BYTES, `${late.heap} bytes of heap, ${early.heap} after ${EARLY} pages`)
  t.comment(
    `${name}: first rows after ${Math.round(first)} ms, all after ${Math.round(whole)} ms, a page in ${Math.round(each)} ms, ${Math.round(late.heap / 1024)} KiB of heap`,
  )
}

const LAST_ROW = `document.querySelector('tbody tr:last-child a').textContent`

/** What the page holds once the garbage is gone. */
async function held({ page }: Tab): Promise<{ heap: number; elements: number }> {
  const debug = await page.createCDPSession()
  await debug.send('HeapProfiler.collectGarbage')
  await debug.detach()
  const { JSHeapUsedSize = 0 } = await page.metrics()
  return { heap: JSHeapUsedSize, elements: Number(await page.evaluate(`document.querySelectorAll('*').length`)) }
}
