import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ElementHandle, HTTPRequest } from 'puppeteer-core'
import t, { type Test } from 'tap'
import { bytes, MiB, sha256 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startBrowser, Tab } from './browser.js'

const FILES = 300
const LARGE = 40 * MiB
const PARTS = 5

t.test('uploads', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  // It comes back at the same ports.
  const args = ['--console-port', String(await lastingPort())]
  const server = await startDealgate(t, { port: await lastingPort(), args })
  await send(server, { method: 'PUT', target: '/photos' })
  const tab = await Tab.open(t, browser, server)
  await tab.signIn()
  await t.test('a folder, while the server is killed and comes back', (t) => folder(t, tab, server))
  await t.test('what is there already is skipped', (t) => again(t, tab, server))
  await t.test('a large file continues after a reload of the page', (t) => large(t, tab, server))
  t.same(tab.complaints, [])
})

function nameOf(n: number): string {
  return n % 50 === 0 ? `deep/${n} ä+%25 'a'.txt` : `${n}.txt`
}

function filesIn(t: Test): string {
  const folder = join(temporaryFolder(t), 'album')
  mkdirSync(join(folder, 'deep'), { recursive: true })
  for (let n = 0; n < FILES; n++) writeFileSync(join(folder, nameOf(n)), `content of file ${n}`)
  return folder
}

async function choose(tab: Tab, input: string, path: string): Promise<void> {
  const found = (await tab.page.waitForSelector(input)) as ElementHandle<never> | null
  await (found as unknown as { uploadFile(path: string): Promise<void> } | null)?.uploadFile(path)
}

async function keys(server: Dealgate): Promise<string[]> {
  const { body } = await send(server, { method: 'GET', target: '/photos?prefix=album/' })
  return [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => key)
}

async function folder(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  await tab.goTo('#/buckets/photos/objects')
  await choose(tab, 'input[webkitdirectory]', filesIn(t))
  await tab.untilTrue(`Number(/(\\d+) of 300 files/.exec(document.body.innerText)?.[1]) >= 40`)
  await server.kill9()
  await tab.goTo('#/uploads', 'no answer, tries again')
  t.same(await tab.accessibility(), [], 'uploads break no rule of axe')
  const before = Number(/(\d+) of 300 files/.exec(await tab.text())?.[1])
  t.ok(before < FILES, `${before} files were uploaded when the server was killed`)
  await server.start()
  await tab.sees('300 files uploaded')
  const stored = await keys(server)
  t.equal(stored.length, FILES)
  for (const n of [0, 1, 50, FILES - 1]) {
    const target = `/photos/album/${nameOf(n).split('/').map(encode).join('/')}`
    t.equal((await send(server, { method: 'GET', target })).body.toString(), `content of file ${n}`)
  }
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/'/g, '%27')
}

async function again(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  await send(server, { method: 'DELETE', target: '/photos/album/7.txt' })
  await tab.goTo('#/buckets/photos/objects')
  await tab.pick('More ways to add', 'Skip files that are there already')
  await choose(tab, 'input[webkitdirectory]', filesIn(t))
  await tab.sees('1 file uploaded, 299 skipped because they are there already')
  t.equal((await keys(server)).length, FILES)
}

async function large(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  const content = bytes('film', LARGE)
  const file = join(temporaryFolder(t), 'film.bin')
  writeFileSync(file, content)
  await tab.goTo('#/buckets/photos/objects')
  await tab.pick('More ways to add', 'Skip files that are there already')
  // It cannot end before it is paused.
  const hold = (request: HTTPRequest) => void (/partNumber=[3-9]/.test(request.url()) || request.continue())
  tab.page.on('request', hold)
  await tab.page.setRequestInterception(true)
  await choose(tab, 'input[type=file][multiple]', file)
  await tab.goTo('#/uploads')
  const uploaded = () => partsIn(server.log)
  await until('two parts are there', () => uploaded() === 2)
  await tab.click('button', 'Pause film.bin', 'paused')
  await tab.page.setRequestInterception(false)
  tab.page.off('request', hold)
  await tab.page.reload()
  await tab.signIn()
  await tab.goTo('#/uploads', 'Interrupted uploads')
  t.same(await tab.accessibility(), [], 'interrupted uploads break no rule of axe')
  await choose(tab, 'table input[type=file]', file)
  await tab.sees('1 file uploaded')
  t.equal(uploaded(), PARTS, 'each part was sent once')
  const { body } = await send(server, { method: 'GET', target: '/photos/film.bin' })
  t.equal(sha256(body), sha256(content))
  t.notMatch(await tab.text(), 'Interrupted uploads')
}

function partsIn(log: string): number {
  return log.split('\n').filter((line) => line.includes('"UploadPart"') && line.includes('"status":200')).length
}
