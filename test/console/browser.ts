import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import {
  type Browser,
  type ConsoleMessage,
  type ElementHandle,
  type HTTPRequest,
  launch,
  type Page,
} from 'puppeteer-core'
import type { Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient } from '../support/programs/run.js'
import { type Dealgate, type StartOptions, startDealgate } from '../support/server/dealgate.js'

/** Longest wait for anything in a page, ms: the machine may be busy. */
const PATIENCE_MS = 90_000
const POLLING_MS = 50

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A browser for one test file; undefined, with the test skipped (failed with REQUIRE_CLIENTS=1), without Chromium. */
export async function startBrowser(t: Test): Promise<Browser | undefined> {
  const executablePath = await findClient(t, 'chromium')
  if (executablePath === undefined) return undefined
  const browser = await launch({
    executablePath,
    // A container has no user namespaces for the sandbox, and little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    protocolTimeout: 2 * PATIENCE_MS,
    // Wide enough for the navigation to stand beside the screens.
    defaultViewport: { width: 1280, height: 800 },
  })
  t.teardown(() => browser.close())
  return browser
}

/** A page that waits as long as a loaded machine needs. */
export async function openPage(opener: Pick<Browser, 'newPage'>): Promise<Page> {
  const page = await opener.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  return page
}

export interface ConsoleScene {
  readonly browser: Browser
  readonly server: Dealgate
  readonly tab: Tab
  /** Checks the screen that the tab shows, by the name given. */
  accessible(screen: string): Promise<unknown>
}

/** A server with a console, and a tab of it; undefined, with the test skipped, without Chromium. */
export async function startConsole(
  t: Test,
  { config, args = [], ...options }: StartOptions & { readonly config?: object } = {},
): Promise<ConsoleScene | undefined> {
  const browser = await startBrowser(t)
  if (!browser) return undefined
  const file = join(temporaryFolder(t), 'dealgate.json')
  if (config) writeFileSync(file, JSON.stringify(config))
  const all = ['--console-port', '0', ...(config ? ['--config', file] : []), ...args]
  const server = await startDealgate(t, { ...options, args: all })
  const tab = await Tab.open(t, browser, server)
  const accessible = async (screen: string) => t.same(await tab.accessibility(), [], `${screen} breaks no rule of axe`)
  return { browser, server, tab, accessible }
}

type ConsoleServer = Pick<Dealgate, 'console' | 'accessKey' | 'secretKey'>

/** Of axe, by theme. */
const RULES = {
  light: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  dark: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
}

/** Runs in each page, which has the types of a browser. */
const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
  console.error('policy', violatedDirective, blockedURI, sample))`

/** Sets where the bar, the toolbar, notices and uploads stand; '' is as their style says. */
function inPlace(position: string): string {
  return `for (const part of document.querySelectorAll('.top, .toolbar, .notices, .transfers')) part.style.position = '${position}'`
}

/** Roles by which a tab finds what it clicks. */
const ROLES = {
  button: 'button',
  link: 'a[href]',
  item: '[role^=menuitem]',
  checkbox: 'input[type=checkbox]',
  summary: 'summary',
}

/** A tab of its own, without the cookies and storage of others. */
export class Tab {
  readonly page: Page
  /** Errors and warnings of the page's log, exceptions, and violations of its policy. */
  readonly complaints: string[] = []
  readonly #server: ConsoleServer

  private constructor(page: Page, server: ConsoleServer) {
    this.page = page
    this.#server = server
    page.on('console', (message) => this.#logged(message))
    page.on('pageerror', (error) => this.complaints.push(String(error)))
  }

  static async open(t: Test, browser: Browser, server: ConsoleServer): Promise<Tab> {
    const context = await browser.createBrowserContext()
    t.teardown(() => context.close())
    const tab = new Tab(await openPage(context), server)
    await tab.page.evaluateOnNewDocument(REPORT_VIOLATIONS)
    await tab.page.goto(server.console)
    return tab
  }

  /** What the browser itself logs for an answer with an error status is expected where a test makes one. */
  #logged(message: ConsoleMessage): void {
    if (!['error', 'warn'].includes(message.type())) return
    if (/^Failed to load resource/.test(message.text())) return
    this.complaints.push(message.text())
  }

  /** Signs in with the key pair of the server, or another one. */
  async signIn(options: { pair?: { id: string; secret: string }; boxes?: readonly string[] } = {}): Promise<void> {
    const { pair = { id: this.#server.accessKey, secret: this.#server.secretKey }, boxes = [] } = options
    await this.fill('Access key id', pair.id)
    await this.fill('Secret access key', pair.secret)
    for (const box of boxes) await this.click('checkbox', box)
    await this.click('button', 'Sign in', 'Sign out')
  }

  /** Goes to a screen by its address, without a load of the page, and waits until it shows these texts. */
  async goTo(hash: string, ...shown: readonly string[]): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
    await this.sees(...shown)
  }

  /**
   * Clicks what has this role and this name for screen readers, also if what loads later moves it meanwhile, and waits
   * until the page shows these texts.
   */
  async click(role: keyof typeof ROLES, name: string, ...shown: readonly string[]): Promise<void> {
    await (await this.#find(ROLES[role], name)).evaluate((element) => (element as { click(): void }).click())
    await this.sees(...shown)
  }

  /** Clicks an item of the menu whose button has this name. */
  async pick(menu: string, item: string, ...shown: readonly string[]): Promise<void> {
    await this.click('button', menu)
    await this.click('item', item, ...shown)
  }

  async fill(label: string, text: string): Promise<void> {
    await (await this.#find('input, textarea', label)).focus()
    await this.page.keyboard.down('Control')
    await this.page.keyboard.press('KeyA')
    await this.page.keyboard.up('Control')
    if (text === '') await this.page.keyboard.press('Backspace')
    // At once: a message to the browser for each key would be most of the time of a sign-in.
    else await this.page.keyboard.sendCharacter(text)
  }

  async choose(label: string, value: string): Promise<void> {
    await (await this.#find('select', label)).evaluate((select, value) => {
      Object.assign(select, { value })
      ;(select as EventTarget).dispatchEvent(new Event('change', { bubbles: true }))
    }, value)
  }

  /** Waits until the page shows each of these texts, one after the other. */
  async sees(...texts: readonly string[]): Promise<void> {
    for (const text of texts)
      await this.untilTrue(`document.body.innerText.includes(${JSON.stringify(text)})`, `${text} is not shown`)
  }

  async untilTrue(expression: string, failure = expression): Promise<ElementHandle<never>> {
    const found = this.page.waitForFunction(expression, { polling: POLLING_MS })
    return found.catch(async (error) => {
      const complaints = this.complaints.join('\n')
      throw new Error(`${failure}: ${error.message}\n${complaints}\n${await this.text().catch(String)}`)
    }) as Promise<ElementHandle<never>>
  }

  #find(selector: string, name: string): Promise<ElementHandle<never>> {
    const nameOf = '(element.ariaLabel ?? (element.labels?.[0] ?? element).textContent).trim()'
    const found = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((element) =>
      !element.disabled && element.checkVisibility() && ${nameOf} === ${JSON.stringify(name)})`
    return this.untilTrue(found, `${selector} ${name} is not there`)
  }

  text(): Promise<string> {
    return this.page.evaluate('document.body.innerText') as Promise<string>
  }

  /** The rules of axe that the screen breaks: all in the light theme, and those about colours in the dark one, too. */
  async accessibility(): Promise<string[]> {
    // By the debugger, which no policy of the page stops; it uses sinks that the policy forbids to the page itself.
    if (await this.page.evaluate('window.axe === undefined')) await this.page.evaluate(AXE)
    // What stays in view covers a part of what scrolls below it, which would be too small a target.
    await this.page.evaluate(inPlace('static'))
    const found: string[] = []
    for (const [value, runOnly] of Object.entries(RULES)) {
      await this.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      const options = JSON.stringify({ runOnly, resultTypes: ['violations'] })
      const broken = `axe.run(${options}).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`
      for (const rule of (await this.page.evaluate(broken)) as string[]) found.push(`${value} ${rule}`)
    }
    await this.page.evaluate(inPlace(''))
    return found
  }
}

/** Fills in the key pair by which a change is signed. */
export async function signBy(
  tab: Tab,
  { accessKey, secretKey }: Pick<Dealgate, 'accessKey' | 'secretKey'>,
): Promise<void> {
  await tab.fill('Your access key id', accessKey)
  await tab.fill('Your secret access key', secretKey)
}

/** What a page holds once the garbage is gone. @returns bytes of the heap of scripts, and elements */
export async function held({ page }: Tab): Promise<{ heap: number; elements: number }> {
  const debug = await page.createCDPSession()
  await debug.send('HeapProfiler.collectGarbage')
  await debug.detach()
  const { JSHeapUsedSize = 0 } = await page.metrics()
  return { heap: JSHeapUsedSize, elements: Number(await page.evaluate(`document.querySelectorAll('*').length`)) }
}

/** Answers requests whose address matches, but not their preflights, until the returned function is called. */
export async function intercept(
  { page }: Tab,
  address: RegExp,
  answer: (request: HTTPRequest) => Promise<void>,
): Promise<() => Promise<void>> {
  const onRequest = (request: HTTPRequest) =>
    address.test(request.url()) && request.method() !== 'OPTIONS' ? answer(request) : request.continue()
  page.on('request', onRequest)
  await page.setRequestInterception(true)
  return async () => {
    // In this order: what is requested in between goes on when the interception ends.
    page.off('request', onRequest)
    await page.setRequestInterception(false)
  }
}

/** Sends a request of the page to the server. */
export function forward(request: HTTPRequest): Promise<Response> {
  const body = request.postData() ?? null
  return fetch(request.url(), { method: request.method(), headers: request.headers(), body })
}

/** Answers a request of the page with this body, as the server would to another origin. */
export function respond(request: HTTPRequest, body: string | object, status = 200): Promise<void> {
  const headers = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' }
  const contentType = typeof body === 'string' && body.startsWith('<') ? 'application/xml' : 'application/json'
  return request.respond({ status, headers, contentType, body: typeof body === 'string' ? body : JSON.stringify(body) })
}
