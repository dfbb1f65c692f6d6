// `npm run pictures`: makes the pictures of the console in the docs. Names, sizes and deals are always the same; times
// are those of the run.
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { md5 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { answerTo, insist, open, send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startBrowser, Tab } from './browser.js'
import { withParts } from './parts.js'

const FOLDER = 'docs/pictures'
const MAX_BYTES = 150_000
const SIZE = { width: 1280, height: 860 }

const TERMS = { minerId: 't01000', price: '0.0000000005', duration: 518_400 }
const configuration = {
  networkEpochSeconds: 0.005,
  plugins: [{ use: 'deal', options: { terms: TERMS, statusIntervalSeconds: 1, maxSpendPerDay: '5' } }],
}

/** Names with sizes in KiB. */
const OBJECTS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  photos: {
    '2025/readme.txt': 3,
    '2026/06-lisbon/tram-28.jpg': 2400,
    '2026/06-lisbon/belem-tower.jpg': 3150,
    '2026/06-lisbon/notes.txt': 4,
    '2026/08-norway/fjord.jpg': 4020,
    '2026/08-norway/cabin.jpg': 2890,
    '2026/contact-sheet.pdf': 860,
    '2026/index.json': 12,
    '2026/panorama.tif': 5300,
  },
  backups: { 'db/2026-11-24.dump': 3900, 'db/2026-11-25.dump': 3950, 'mail/archive.mbox': 2100 },
  research: { 'runs/0417/results.parquet': 4400, 'runs/0418/results.parquet': 4650, 'paper/draft.tex': 64 },
  website: { 'index.html': 8, 'assets/logo.png': 40 },
}

t.test('pictures', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const config = join(temporaryFolder(t), 'dealgate.json')
  writeFileSync(config, JSON.stringify(configuration))
  const server = await startDealgate(t, { args: ['--config', config, '--console-port', '0'] })
  await fill(server)
  await server.stop()
  fillActivity(join(server.data, 'state/records.sqlite'))
  await server.start()
  const tab = await Tab.open(t, browser, server)
  await tab.page.setViewport(SIZE)
  await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }])
  await tab.page.emulateTimezone('UTC')
  await tab.signIn()
  mkdirSync(FOLDER, { recursive: true })
  const picture = async (name: string, hash: string, shown: string) => {
    if (hash !== '') await tab.goTo(hash)
    await tab.sees(shown)
    await tab.untilTrue(`!document.body.innerText.includes('Loading…')`)
    // The heading has the focus, and a picture has no reader.
    await tab.page.evaluate('document.activeElement.blur()')
    const path = join(FOLDER, `${name}.png`)
    await tab.page.screenshot({ path: path as `${string}.png` })
    t.ok(statSync(path).size < MAX_BYTES, `${statSync(path).size} bytes in ${path}`)
  }
  await picture('overview', '#/overview', 'Deals by state')
  await picture('objects', '#/buckets/photos/objects?prefix=2026%2F', '2 folders and 3 objects')
  await picture('versions', '#/buckets/contracts/versions?prefix=2026%2F', 'Locked: legal hold')
  await picture('settings', '#/buckets/contracts/settings', 'Save object lock')
  for (const key of ['2026/06-lisbon/notes.txt', '2026/index.json']) {
    const unsigned = open(server, 'GET', targetOf('photos', key), {})
    unsigned.end()
    await answerTo(unsigned)
  }
  await picture('requests', '#/requests?bucket=photos', 'explicit deny')
  await picture('deals', '#/deals', 'Active')
  await tab.page.setViewport({ ...SIZE, height: 1000 })
  const lease = new URLSearchParams({ key: '2026/lease.csv' })
  await tab.goTo(`#/buckets/contracts/object?${lease}`, 'Locked until', 'A deal was made')
  await picture('object', '', 'Active')
  await tab.page.setViewport(SIZE)
  await tab.goTo(`#/buckets/photos/archive?${new URLSearchParams({ key: '2026/08-norway/fjord.jpg' })}`)
  await tab.click('button', 'Get a quote', 'Score')
  await tab.click('button', 'Choose t01000')
  await picture('payment', '', 'A deal cannot be undone')
  await parts(t, tab)
  t.same(tab.complaints, [])
})

/** Each part of the console, for its library: light and dark side by side, or one after the other. */
async function parts(t: Test, tab: Tab): Promise<void> {
  const { page } = tab
  await page.setViewport({ ...SIZE, width: 1440 })
  await withParts(tab)
  await tab.signIn()
  await tab.goTo('#/parts', 'Parts')
  const take = async (name: string, selector: string, over = false) => {
    const path = join(FOLDER, `part-${name}.png`) as `${string}.png`
    const element = await page.waitForSelector(selector)
    const box = await element?.boundingBox()
    const scrolled = Number(await page.evaluate('scrollY'))
    // The picture of an element resizes the window, and a menu would close.
    if (over && box)
      await page.screenshot({ path, clip: { ...box, y: box.y + scrolled }, captureBeyondViewport: false })
    else await element?.screenshot({ path })
    t.ok(statSync(path).size < MAX_BYTES, `${statSync(path).size} bytes in ${path}`)
  }
  await page.evaluate('document.activeElement.blur()')
  const names = (await page.evaluate(
    `[...document.querySelectorAll('main section')].map(({ id }) => id.slice(5))`,
  )) as string[]
  for (const name of names) if (name !== 'menu') await take(name, `#part-${name} > div`)
  for (const theme of ['light', 'dark']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }])
    // A menu closes when the page moves below it, of which the browser tells at its next frame.
    await page.evaluate(`new Promise((done) => {
      document.getElementById('part-menu').scrollIntoView({ block: 'center' })
      requestAnimationFrame(() => requestAnimationFrame(done))
    })`)
    await tab.click('button', `Actions on tram-28.jpg, ${theme}`)
    await take(`menu-${theme}`, '[popover]:popover-open', true)
    await page.keyboard.press('Escape')
    await tab.click('button', 'Ask', 'cannot be undone')
    await take(`dialog-${theme}`, 'dialog', true)
    await tab.click('button', 'Cancel')
    await tab.click('button', 'Notify', 'was created')
    await take(`notice-${theme}`, '.notice', true)
    await tab.click('button', 'Undo', 'is gone again')
    await tab.click('button', 'Close this notice')
  }
}

/** Nobody reads the notes, by name: a refusal that says why. */
const POLICY = {
  Version: '2012-10-17',
  Statement: [
    {
      ...{ Sid: 'NoNotes', Effect: 'Deny', Principal: '*', Action: 's3:GetObject' },
      Resource: 'arn:aws:s3:::photos/2026/06-lisbon/notes.txt',
    },
  ],
}

async function fill(server: Dealgate): Promise<void> {
  for (const [bucket, objects] of Object.entries(OBJECTS)) {
    await send(server, { method: 'PUT', target: `/${bucket}` })
    for (const [key, kib] of Object.entries(objects))
      await send(server, { method: 'PUT', target: targetOf(bucket, key), body: Buffer.alloc(kib * 1024, key) })
  }
  await insist(server, 'the policy', {
    method: 'PUT',
    target: '/photos?policy',
    body: Buffer.from(JSON.stringify(POLICY)),
  })
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const deal = async (bucket: string, key: string, MinerId: string) => {
    const body = Buffer.from(JSON.stringify({ MinerId, Price: '0.00000001', ConfirmPrice: true }))
    await send(server, { method: 'POST', target: targetOf(bucket, key, 'x-deal='), headers, body })
  }
  await deal('backups', 'db/2026-11-24.dump', 't01000')
  await deal('backups', 'db/2026-11-25.dump', 't01001')
  await deal('research', 'runs/0417/results.parquet', 't01005')
  await deal('research', 'runs/0418/results.parquet', 't01000')
  await deal('photos', '2026/panorama.tif', 't01001')
  await contracts(server)
  await deal('contracts', '2026/lease.csv', 't01000')
  await until('the deals are active', async () => {
    const { body } = await send(server, {
      method: 'GET',
      target: '/-/deal/v1/deals',
      headers: { accept: 'application/json' },
    })
    return (body.toString().match(/StorageDealActive/g)?.length ?? 0) >= 6
  })
}

/** A bucket with object lock: versions, locks and a delete marker. */
async function contracts(server: Dealgate): Promise<void> {
  const put = async (target: string, headers = {}, text = '') => {
    const { headers: answered } = await insist(server, target, {
      ...{ method: 'PUT', target, body: Buffer.from(text) },
      headers: { 'content-md5': Buffer.from(md5(text), 'hex').toString('base64'), ...headers },
    })
    return String(answered['x-amz-version-id'])
  }
  await put('/contracts', { 'x-amz-bucket-object-lock-enabled': 'true' })
  const lease = (query = '') => targetOf('contracts', '2026/lease.csv', query)
  const csv = { 'content-type': 'text/csv' }
  const rows = ['Flat,Tenant,Rent', '1,Amália Reis,840', '2,Jonas Berg,910']
  const first = await put(lease(), csv, rows.slice(0, 2).join('\n'))
  await put(lease(), csv, rows.join('\n'))
  await put(lease(`legal-hold&versionId=${first}`), {}, '<LegalHold><Status>ON</Status></LegalHold>')
  await put(lease(), csv, `${rows.join('\n')}\n3,Ines Sol,875`)
  const until = new Date(Date.now() + 400 * 86_400_000).toISOString()
  const retention = `<Retention><Mode>COMPLIANCE</Mode><RetainUntilDate>${until}</RetainUntilDate></Retention>`
  await put(lease('retention'), {}, retention)
  const offer = targetOf('contracts', '2026/old-offer.csv')
  await put(offer, csv, rows[0])
  await insist(server, offer, { method: 'DELETE', target: offer })
}

/** A day of requests, more by day than by night. The server keeps a record for each interval of five minutes. */
function fillActivity(file: string): void {
  const db = new DatabaseSync(file)
  const write = db.prepare('INSERT OR REPLACE INTO entry (key, value) VALUES (?, ?)')
  const last = Math.floor(Date.now() / 300_000)
  for (let at = 1; at < 288; at++) {
    const interval = last - at
    const day = 1 + Math.sin(((288 - at) / 288) * 2 * Math.PI - 2)
    const requests = Math.round(120 * day + ((at * 37) % 41))
    const value = { interval, requests, clientErrors: at % 5, serverErrors: 0 }
    const bytes = { bytesIn: requests * 41_000, bytesOut: requests * 187_000 }
    write.run(`x-activity:${interval % 288}`, JSON.stringify({ value: { ...value, ...bytes } }))
  }
  db.close()
}
