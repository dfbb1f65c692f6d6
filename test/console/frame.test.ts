import type { Test } from 'tap'
import t from 'tap'
import type { Dealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'
import { intercept, startConsole, type Tab } from './browser.js'
import { withParts } from './parts.js'

/** Markup, hidden characters, no place to break: every part has to show it as text. */
const HOSTILE = `"'><img src=x onerror="window.ran=1">\u202e${'long'.repeat(40)}.txt`

/** How far down the first row of objects may begin, by the width of the window, px. */
const FIRST_ROW: Readonly<Record<number, number>> = { 1280: 260, 320: 420 }

t.test('the frame and the parts of every screen', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { server, tab } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  for (const key of ['2026/a.txt', '2026/b.txt', HOSTILE, ...Array.from({ length: 230 }, (_, i) => `many/${1000 + i}`)])
    await send(server, { method: 'PUT', target: targetOf('photos', key), body: Buffer.from(key.slice(0, 9)) })
  await tab.signIn()
  await t.test('navigation', (t) => navigation(t, tab, server))
  await t.test('palette', (t) => palette(t, tab))
  await t.test('objects', (t) => objects(t, tab))
  await t.test('pages', () => pages(tab))
  await t.test('folders and names', (t) => folders(t, tab, server))
  await t.test('parts', (t) => parts(t, tab))
  t.same(tab.complaints, [])
})

async function navigation(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  const { page } = tab
  await page.setViewport({ width: 1280, height: 800 })
  const shown = `document.querySelector('header').innerText`
  t.match(await page.evaluate(shown), server.accessKey, 'the header names the key pair, not its session')
  const marked = `[...document.querySelectorAll('nav [aria-current]')].map((a) => a.textContent)`
  for (const [address, entry] of [
    ['#/providers', 'Deals'],
    ['#/payments/uploads', 'Payments'],
    ['#/accounts', 'Accounts'],
    ['#/buckets/photos/settings', 'Buckets'],
  ] as const) {
    await tab.goTo(address)
    await tab.untilTrue(`document.querySelector('main h1')`)
    await tab.untilTrue(`JSON.stringify(${marked}).includes('"${entry}"')`, `${address} marks ${entry}`)
  }
  t.same(await page.evaluate(`[...document.querySelectorAll('.beside h2')].map((h) => h.textContent)`), [
    'Storage',
    'Archive',
    'Access',
    'Server',
  ])
  await page.setViewport({ width: 320, height: 700 })
  t.equal(await page.evaluate(`document.querySelector('.beside').checkVisibility()`), false)
  await tab.click('button', 'Screens', 'Who changed what')
  t.same(await tab.accessibility(), [], 'the menu breaks no rule of axe')
  await page.keyboard.press('Escape')
  await tab.untilTrue(`document.querySelector('dialog') === null`)
  t.equal(await page.evaluate(`document.activeElement.ariaLabel`), 'Screens', 'the focus is where it was')
  await tab.click('button', 'Screens')
  await tab.click('link', 'Jobs', 'There is no job yet')
  await tab.untilTrue(`document.querySelector('dialog') === null`, 'the menu stays open on another screen')
  await page.setViewport({ width: 1280, height: 800 })
}

async function palette(t: Test, tab: Tab): Promise<void> {
  const { keyboard } = tab.page
  const open = async (words: string) => {
    await keyboard.down('Control')
    await keyboard.press('k')
    await keyboard.up('Control')
    await tab.untilTrue(`document.activeElement.getAttribute('role') === 'combobox'`)
    await keyboard.type(words)
  }
  const chosen = (name: string) =>
    tab.untilTrue(
      `document.querySelector('[aria-selected=true]')?.innerText.startsWith(${JSON.stringify(name)}) &&
        document.activeElement.getAttribute('aria-activedescendant') === document.querySelector('[aria-selected=true]').id`,
      `${name} is not chosen`,
    )
  await open('CreateObjectD')
  await chosen('CreateObjectDeal')
  t.same(await tab.accessibility(), [], 'the palette breaks no rule of axe')
  await keyboard.press('Enter')
  await tab.untilTrue(`location.hash === '#/calls/deal_CreateObjectDeal_POST'`)
  await open('phot')
  await chosen('photos')
  await keyboard.press('Enter')
  await tab.sees('2 folders and 1 object on this page')
  await open('of photos')
  await chosen('Objects of photos')
  await keyboard.press('ArrowDown')
  await keyboard.press('ArrowDown')
  await chosen('Inventories of photos')
  await keyboard.press('ArrowUp')
  await keyboard.press('ArrowUp')
  await keyboard.press('ArrowUp')
  await keyboard.press('Escape')
  await tab.untilTrue(`document.querySelector('dialog') === null`)
  await open('no such thing')
  await tab.sees('There is no such place')
  await keyboard.press('Escape')
}

async function objects(t: Test, tab: Tab): Promise<void> {
  const { page } = tab
  await tab.goTo('#/buckets/photos/objects?prefix=many%2F', '100 objects on this page')
  for (const [width, most] of Object.entries(FIRST_ROW)) {
    await page.setViewport({ width: Number(width), height: 800 })
    const top = Number(await page.evaluate(`document.querySelector('tbody tr').getBoundingClientRect().top + scrollY`))
    t.ok(top <= most, `the first row begins at ${top} of ${width} px`)
    await tab.click('checkbox', 'Select 1050', '1 selected')
    await page.evaluate(`document.querySelector('tbody tr:nth-child(90)').scrollIntoView()`)
    const inView = `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)([...document.querySelectorAll('.toolbar button')].at(-1).getBoundingClientRect())`
    t.equal(await page.evaluate(inView), true, `what is done with the selection stays in view at ${width} px`)
    await tab.click('button', 'Clear', 'on this page')
    await page.evaluate('scrollTo(0, 0)')
  }
  await page.setViewport({ width: 1280, height: 800 })
  await tab.fill('Filter this page, or find names that begin with', '107')
  await tab.sees('10 match the filter')
  await page.keyboard.press('Enter')
  await tab.untilTrue(`new URLSearchParams(location.hash.split('?')[1]).get('prefix') === 'many/107'`)
  await tab.sees('0 folders and 10 objects')
  await tab.click('button', 'Actions on 1075')
  t.same(await tab.accessibility(), [], 'a menu breaks no rule of axe')
  await page.keyboard.press('ArrowDown')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Share…')
  await page.keyboard.press('End')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Delete…')
  await page.keyboard.press('Enter')
  await tab.sees('1 object of the bucket')
  await page.keyboard.press('Escape')
  await tab.untilTrue(`document.activeElement.ariaLabel === 'Actions on 1075'`, 'the focus is where it was')
}

/** There and back, though a server tells only the next page. */
async function pages(tab: Tab): Promise<void> {
  const first = (name: string) =>
    tab.untilTrue(`document.querySelector('tbody a')?.textContent === ${JSON.stringify(name)}`, `${name} is not first`)
  await tab.goTo('#/buckets/photos/objects?prefix=many%2F')
  for (const [link, name] of [
    ['Next page', '1100'],
    ['Next page', '1200'],
    ['Previous page', '1100'],
    ['Previous page', '1000'],
    ['Next page', '1100'],
    ['First page', '1000'],
  ] as const) {
    await tab.click('link', link)
    await first(name)
  }
}

async function folders(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  const keys = async () => {
    const { body } = await send(server, { method: 'GET', target: '/photos?list-type=2&prefix=2' })
    return [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key)
  }
  await tab.goTo('#/buckets/photos/objects')
  await tab.click('button', 'New folder')
  await tab.fill('Name of the folder', '2026')
  await tab.click('button', 'Create folder', '2026/ exists already')
  await tab.fill('Name of the folder', '2027')
  await tab.click('button', 'Create folder', 'The folder 2027/ was created')
  t.same(await keys(), ['2026/a.txt', '2026/b.txt', '2027/'])
  await tab.click('button', 'Undo', 'The folder 2027/ is gone again')
  t.same(await keys(), ['2026/a.txt', '2026/b.txt'])

  await tab.pick('Actions on 2026/', 'Rename…')
  await tab.fill('New name', 'a/b')
  await tab.click('button', 'Rename', 'A slash would make a folder')
  await tab.fill('New name', '2025')
  await tab.click('button', 'Rename', '2026/ is now 2025/')
  t.same(await keys(), ['2025/a.txt', '2025/b.txt'])
  await tab.click('link', '2025/', '2 objects on this page')
  await tab.pick('Actions on a.txt', 'Rename…')
  await tab.fill('New name', 'b.txt')
  await tab.click('button', 'Rename', '2025/b.txt exists already')
  await tab.fill('New name', HOSTILE.replaceAll('/', ''))
  await tab.click('button', 'Rename', '2025/a.txt is now')
  t.equal((await send(server, { method: 'HEAD', target: targetOf('photos', `2025/${HOSTILE}`) })).status, 200)
  t.equal((await send(server, { method: 'HEAD', target: '/photos/2025/a.txt' })).status, 404)
  await tab.click('button', 'Undo', '2025/a.txt has its name again')
  t.same(await keys(), ['2025/a.txt', '2025/b.txt'])
  t.equal((await send(server, { method: 'GET', target: '/photos/2025/a.txt' })).body.toString(), '2026/a.tx')
  await taken(t, tab, server)

  await tab.pick('Actions on c.txt', 'Rename…')
  await tab.fill('New name', 'd.txt')
  await tab.click('button', 'Rename', '2025/c.txt is now 2025/d.txt')
  await tab.click('button', 'Undo', 'has its name again')
  await tab.goTo('#/keys', 'has its name again')
  await tab.page.evaluate(`{ const { now } = Date; Date.now = () => now() + 5000 }`)
  await tab.goTo('#/jobs', 'There is no job yet')
  await tab.untilTrue(`document.querySelector('.notice') === null`, 'an old notice stays on another screen')
}

/** What somebody else stores during a move or before it is taken back is neither removed nor renamed. */
async function taken(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  const write = (key: string, content: string) =>
    send(server, { method: 'PUT', target: targetOf('photos', key), body: Buffer.from(content) })
  const read = async (key: string) =>
    (await send(server, { method: 'GET', target: targetOf('photos', key) })).body.toString()
  await tab.pick('Actions on b.txt', 'Rename…')
  await tab.fill('New name', 'c.txt')
  await tab.click('button', 'Rename', '2025/b.txt is now 2025/c.txt')
  await write('2025/c.txt', 'another')
  await tab.click('button', 'Undo', '2025/c.txt was written by somebody else meanwhile, and keeps its name')
  t.equal(await read('2025/c.txt'), 'another')

  // Between the copy and the removal.
  const done = await intercept(tab, /[?&]delete=/, async (request) => {
    await write('2025/a.txt', 'newer')
    await request.continue()
  })
  await tab.click('checkbox', 'Select a.txt')
  await tab.click('button', 'Copy or move…')
  await tab.fill('To prefix', 'moved/')
  await tab.click('checkbox', 'Move: delete each object once its copy exists')
  await tab.click('button', 'Copy', 'after it was copied to moved/a.txt: both are there now')
  await done()
  await tab.click('button', 'Cancel')
  t.equal(await read('2025/a.txt'), 'newer')
  t.equal(await read('moved/a.txt'), '2026/a.tx')
  await tab.click('button', 'Clear')
}

/** What the library shows is right in both themes, and what others have written is text. */
async function parts(t: Test, tab: Tab): Promise<void> {
  await withParts(tab)
  await tab.signIn()
  await tab.goTo('#/parts', 'Parts')
  await tab.untilTrue(`document.querySelectorAll('main section').length === 12`)
  for (const width of [320, 1280]) {
    await tab.page.setViewport({ width, height: 800 })
    t.equal(await tab.page.evaluate('document.documentElement.scrollWidth'), width, `they fit ${width} px`)
  }
  t.same(await tab.accessibility(), [], 'the parts break no rule of axe')
  t.match(await tab.text(), /invoiceU\+202Efdp\.exe/)
  await tab.click('button', 'Notify', 'The folder 2026/ was created')
  t.same(await tab.accessibility(), [], 'a notice breaks no rule of axe')
  await tab.click('button', 'Undo', 'is gone again')
}
