import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { held, startConsole } from './browser.js'

const OBJECTS = 100_000
/** Rows of a page, and pages that are turned. */
const ROWS = 100
const PAGES = 50

/** The page after which memory is compared with that after the last one. */
const EARLY = 3
const MAX_ELEMENTS = 4000
const MAX_GROWTH_BYTES = 4 * 1024 * 1024

const ROWS_SHOWN = `document.querySelectorAll('tbody tr').length`
const LAST_ROW = `document.querySelector('tbody tr:last-child a').textContent`

t.test('what a page holds and asks for does not grow with the pages of a list', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { server, tab } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/first.txt', body: Buffer.from('content') })
  await server.stop()
  fillObjects(join(server.data, 'services/gateway/index.db'))
  await server.start()
  await tab.page.goto(server.console)
  await tab.signIn()
  await tab.sees('1 bucket')

  const asked = () => server.log.split('"operation":"ListObjectsV2"').length - 1
  await tab.goTo('#/buckets/photos/objects?prefix=many%2F')
  await tab.untilTrue(`${ROWS_SHOWN} === ${ROWS}`)
  const seen = new Set<string>()
  const early = { heap: 0, elements: 0 }
  for (let page = 1; page < PAGES; page++) {
    const last = String(await tab.page.evaluate(LAST_ROW))
    seen.add(last)
    await tab.click('link', 'Next page')
    await tab.untilTrue(`${ROWS_SHOWN} === ${ROWS} && ${LAST_ROW} !== ${JSON.stringify(last)}`)
    if (page === EARLY) Object.assign(early, await held(tab))
  }
  const late = await held(tab)
  t.equal(seen.size, PAGES - 1, 'each page shows other rows')
  t.ok(late.elements <= MAX_ELEMENTS && late.elements <= early.elements + 10, `${late.elements} elements`)
  await until('the log has the last request', () => asked() >= PAGES)
  t.equal(asked(), PAGES, 'one request for each page')
  t.ok(late.heap - early.heap <= MAX_GROWTH_BYTES, `${late.heap} bytes of heap, ${early.heap} after ${EARLY} pages`)
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
    INSERT INTO bodies (generation, body)
      SELECT generation, CAST('content' AS BLOB) FROM objects WHERE true ON CONFLICT DO NOTHING;
    UPDATE buckets SET objects = (SELECT count(*) FROM objects), bytes = (SELECT sum(size) FROM objects);
    COMMIT`)
  db.close()
}
