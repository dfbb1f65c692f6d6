import { pathToFileURL } from 'node:url'
import type { HTTPRequest } from 'puppeteer-core'
import t, { type Test } from 'tap'
import type { Dealgate } from '../support/server/dealgate.js'
import { ask } from '../support/server/many-deaths.js'
import { send, targetOf } from '../support/sign/send.js'
import { forward, startConsole, Tab } from './browser.js'

/** A name that is markup, ends attributes, hides and reorders text, and has no place to break. */
const HOSTILE = `"'><img src=x onerror="window.ran=1"><b onclick="x">\u202e\n../${'long'.repeat(60)}`

/** The width of a small telephone, which WCAG 2.2 (1.4.10) names, of a tablet, and of a wide window. */
const WIDTHS = [320, 768, 1920]

const KEY = `${HOSTILE.slice(0, 60)}/${'k'.repeat(900)}.txt`
const TERMS = { MinerId: 't01000', Price: '0.0000005', DurationEpochs: 518_400, ConfirmPrice: true }

t.test('every screen', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { browser, server, tab } = scene
  const addresses = await filled(t, server)
  await tab.page.setRequestInterception(true)
  let answer = (request: HTTPRequest): Promise<void> => request.continue()
  tab.page.on('request', (request) => {
    const asked = request.url().startsWith(server.endpoint) && request.method() !== 'OPTIONS'
    return asked ? answer(request) : request.continue()
  })
  await tab.page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }])
  await tab.page.setViewport({ width: 320, height: 800 })
  t.same(await tooWide(tab), [], 'sign-in fits 320 px')
  await tab.signIn()
  for (const [what, how] of Object.entries({
    'as it is': asItIs,
    'hostile answers': spoilt,
    'hostile errors': refused,
  })) {
    answer = how
    await t.test(what, async (t) => {
      for (const address of addresses) {
        await tab.goTo('#/none', 'This address belongs to no screen')
        await tab.goTo(address)
        await tab.untilTrue(`document.querySelector('main h1') && !/no screen|Loading…/.test(document.body.innerText)`)
        await checked(t, tab, address)
        if (how === asItIs) t.same(await tab.accessibility(), [], `${address} breaks no rule of axe`)
      }
    })
  }
  const other = await Tab.open(t, browser, server)
  await t.test('by keyboard alone', (t) => byKeyboard(t, other, server))
  t.same([...tab.complaints, ...other.complaints], [])
})

/** From the sign-in to the object and back, with the keys that a keyboard has for it. */
async function byKeyboard(t: Test, tab: Tab, server: Dealgate): Promise<void> {
  const { keyboard } = tab.page
  await reach(tab, 'Access key id')
  await keyboard.type(server.accessKey)
  await reach(tab, 'Secret access key')
  await keyboard.type(server.secretKey)
  await keyboard.press('Enter')
  await tab.sees('1 bucket')
  for (const [name, shown] of [
    ['photos', 'on this page'],
    ['plain.txt', 'Share…'],
  ] as const) {
    await reach(tab, name)
    await keyboard.press('Enter')
    await tab.sees(shown)
    await tab.untilTrue(`document.activeElement.tagName === 'H1'`, 'a reader does not begin at the heading')
  }
  await reach(tab, 'Delete…')
  await keyboard.press('Enter')
  await tab.untilTrue(`document.activeElement.closest('dialog[open]')`)
  await keyboard.press('Escape')
  await tab.untilTrue(`document.querySelector('dialog') === null`)
  await tab.untilTrue(`document.activeElement.textContent.trim() === 'Delete…'`, 'the focus is not where it was')
  t.equal((await send(server, { method: 'HEAD', target: '/photos/plain.txt' })).status, 200)
}

function focused({ page }: Tab, member: string): Promise<unknown> {
  return page.evaluate(`document.activeElement.${member}`)
}

/** Goes on until what has this name has the focus. */
async function reach(tab: Tab, name: string): Promise<void> {
  for (let pressed = 0; pressed < 100; pressed++) {
    await tab.page.keyboard.press('Tab')
    const found = await focused(
      tab,
      'ariaLabel ?? (document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()',
    )
    if (found === name) return
  }
  throw new Error(`${name} cannot be reached by the keyboard`)
}

/** Fits every width, does not move; and what others have written is text. */
async function checked(t: Test, tab: Tab, address: string): Promise<void> {
  await tab.page.evaluate(
    `for (const summary of document.querySelectorAll('main details:not([open]) > summary')) summary.click()`,
  )
  await tab.untilTrue(`!/Loading…/.test(document.body.innerText)`)
  for (const width of WIDTHS) {
    await tab.page.setViewport({ width, height: 800 })
    t.same(await tooWide(tab), [], `${address} fits ${width} px`)
  }
  const moving = `document.getAnimations().length + [...document.querySelectorAll('*')].filter((element) => getComputedStyle(element).transitionDuration !== '0s').length`
  t.equal(await tab.page.evaluate(moving), 0, `${address} does not move`)
  const made = `[document.querySelectorAll('main img, main b, main script').length, window.ran ?? 'not run']`
  t.same(await tab.page.evaluate(made), [0, 'not run'], `${address} makes no element of a text`)
  t.same((await tab.text()).match(/.*\u202e.*/g), null, `${address} marks hidden characters`)
  t.notMatch(await tab.page.title(), /[\u202e\n]/)
}

/** What makes the page itself scroll sideways: elements that leave it and are in no region that scrolls by itself. */
async function tooWide({ page }: Tab): Promise<string[]> {
  return (await page.evaluate(`(() => {
    const root = document.documentElement
    if (root.scrollWidth <= root.clientWidth) return []
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1 && !element.closest('.scroll table'))
      .map((element) => element.outerHTML.slice(0, 120))
  })()`)) as string[]
}

/** Data of every kind, and the addresses of all screens with them. */
async function filled(t: Test, server: Dealgate): Promise<string[]> {
  await send(server, { method: 'PUT', target: '/photos' })
  const headers = {
    'x-amz-meta-note': '<b onclick=x>',
    // No UTF-8.
    'x-amz-meta-raw': '\xff\xfe',
    'x-amz-tagging': `${'t'.repeat(120)}=${'v'.repeat(250)}`,
  }
  for (const key of [KEY, 'plain.txt']) {
    const put = await send(server, {
      method: 'PUT',
      target: targetOf('photos', key),
      headers,
      body: Buffer.from('content'),
    })
    t.equal(put.status, 200)
  }
  const made = await ask(server, 'POST', '/photos/plain.txt?x-deal=', { json: TERMS })
  t.equal(made.status, 200)
  const { JobId, Deal } = made.json
  const names: Readonly<Record<string, string>> = { bucket: 'photos', id: JobId, cid: Deal.DealCid }
  const { screens } = (await import(pathToFileURL('console/screens.js').href)) as {
    screens: readonly { readonly path: string }[]
  }
  return screens.map(({ path }) => {
    if (path === '/calls/:id') return '#/calls/deal_CreateObjectDeal_POST'
    const address = path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(names[name] ?? HOSTILE))
    return `#${address}?${new URLSearchParams({ key: KEY })}`
  })
}

const asItIs = (request: HTTPRequest) => request.continue()

const CORS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' }

/** With a hostile text behind every text, as a gateway or provider may send it. */
async function spoilt(request: HTTPRequest): Promise<void> {
  const answer = await forward(request)
  const type = answer.headers.get('content-type') ?? ''
  const text = await answer.text()
  // The description of the calls comes from the plugins, and names what a form sends.
  const body =
    /openapi/.test(request.url()) || !answer.ok ? text : type.includes('json') ? spoiltJson(text) : spoiltXml(text)
  await request.respond({ status: answer.status, headers: CORS, contentType: type, body })
}

function spoiltJson(text: string): string {
  return JSON.stringify(JSON.parse(text), (_, value) => (typeof value === 'string' ? value + HOSTILE : value))
}

function spoiltXml(text: string): string {
  const escaped = HOSTILE.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`)
  return text.replace(/>([^<>\s][^<>]*)<\//g, (_, content) => `>${content}${escaped}</`)
}

async function refused(request: HTTPRequest): Promise<void> {
  const body = JSON.stringify({ Code: HOSTILE, Message: HOSTILE, message: HOSTILE })
  const headers = { ...CORS, 'x-amz-request-id': HOSTILE.replace(/[^ -~]/g, '') }
  await request.respond({ status: 400, headers, contentType: 'application/json', body })
}
