// The screen with each part of the console, which no server has.
import { readFileSync } from 'node:fs'
import type { HTTPRequest } from 'puppeteer-core'
import type { Tab } from './browser.js'

const FILES: Readonly<Record<string, () => string>> = {
  '/screens.js': () =>
    readFileSync('console/screens.js', 'utf8').replace(
      'screens = [',
      "screens = [\n  { path: '/parts', group: 'Storage', file: 'parts', view: 'Parts' },",
    ),
  '/screens/parts.js': () => readFileSync('test/console/parts-screen.js', 'utf8'),
}

/** Has a tab find the screen `#/parts` once it loads its page again. */
export async function withParts({ page }: Tab): Promise<void> {
  page.on('request', (request: HTTPRequest) => {
    const file = FILES[new URL(request.url()).pathname]
    if (!file) return request.continue()
    return request.respond({ status: 200, contentType: 'text/javascript', body: file() })
  })
  await page.setRequestInterception(true)
  await page.reload()
}
