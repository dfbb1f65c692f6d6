import type { HTTPRequest } from 'puppeteer-core'
import t from 'tap'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { startBrowser, Tab } from './browser.js'

t.test('deals, jobs, calls and the server', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const server = await startDealgate(t, { args: ['--console-port', '0'] })
  const tab = await Tab.open(t, browser, server)
  const accessible = async (screen: string) => t.same(await tab.accessibility(), [], `${screen} breaks no rule of axe`)
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a%3Cb%3E.txt', body: Buffer.alloc(100_000, 'a') })
  const unavailable = await intercept(tab, /config\.json$/, (request) => request.respond({ status: 503 }))
  await tab.page.reload()
  await tab.sees('The server of the console does not answer')
  await unavailable()
  await tab.signIn({ boxes: ['Stay signed in in this tab'] })

  await tab.goTo('#/buckets/photos/archive')
  await tab.sees('This address names no object')
  await tab.goTo('#/buckets/photos/archive?key=another')
  await tab.fill('Days', '200')
  await tab.goTo('#/buckets/photos/archive?key=a%3Cb%3E.txt')
  await tab.untilTrue(`document.querySelector('input[name=days]').value === '180'`)
  await tab.goTo('#/buckets/photos/object?key=a%3Cb%3E.txt')
  await tab.sees('There is no deal for this object')
  await tab.click('link', 'Make a deal')
  await tab.click('button', 'Get a quote')
  await tab.sees('Score')
  await accessible('a quote')
  await tab.click('button', 'Choose t01000')
  await tab.sees('A deal cannot be undone')
  await accessible('the confirmation of a payment')
  const resumed = await intercept(tab, /\?x-deal=$/, async (request) => {
    t.equal((await forward(request)).status, 202, 'the server has carried it out')
    await request.abort()
  })
  await tab.page.locator('::-p-text(Pay 0.)').click()
  await tab.sees('No answer came')
  await resumed()
  await tab.click('button', 'Cancel')
  await tab.click('button', 'Choose t01000')
  await tab.page.locator('::-p-text(Pay 0.)').click()
  await tab.sees('deal:CreateObjectDeal')
  await tab.sees('Complete')
  await accessible('a job')
  let status = 200
  const polled = await intercept(tab, /\/-\/jobs\/v1\/[^/]+$/, async (request) => {
    const job = { ...((await (await forward(request)).json()) as object), Status: 'Active' }
    const headers = { 'access-control-allow-origin': '*' }
    await request.respond({ status, headers, contentType: 'application/json', body: JSON.stringify(job) })
  })
  await tab.page.reload()
  await tab.sees('Active')
  status = 503
  await tab.sees('This failed')
  await tab.sees('Active')
  await polled()
  await tab.sees('Complete')
  t.notMatch(await tab.text(), 'This failed')
  await tab.goTo('#/jobs')
  await tab.sees('1 job')
  await accessible('jobs')
  await tab.goTo('#/deals')
  await tab.sees('1 deal')
  await tab.sees('photos/a<b>.txt')
  await accessible('deals')
  await tab.fill('Bucket', 'none-such')
  await tab.fill('Ends within days', '200')
  await tab.click('button', 'Show')
  await tab.sees('There is no such deal')
  await tab.fill('Bucket', 'photos')
  await tab.page.select('select[name=status]', 'StorageDealExpired')
  await tab.click('button', 'Show')
  await tab.sees('There is no such deal')
  await tab.page.evaluate('history.back()')
  await tab.page.evaluate('history.back()')
  await tab.sees('photos/a<b>.txt')
  await tab.click('link', 'Providers and their prices')
  await tab.sees('t01005')
  await accessible('providers')

  await tab.goTo('#/overview')
  await tab.sees('The numbers')
  await tab.sees('Deals by state')
  await accessible('the overview')
  await tab.goTo('#/server')
  await tab.sees('GLACIER')
  await accessible('the server')

  await tab.goTo('#/calls')
  await tab.sees('CreateObjectDeal')
  await accessible('calls')
  await tab.goTo('#/calls/deal_ListObjectDeals_GET')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Key', 'a<b>.txt')
  await tab.click('button', 'Send')
  await tab.sees('success')
  await accessible('a call and its answer')
  await tab.goTo('#/calls/deal_QuoteObjectDeal_POST')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Key', 'a<b>.txt')
  await tab.page.locator('input[name=DurationEpochs]').fill('518400')
  await tab.click('button', 'Continue…')
  await tab.sees('POST /photos/a%3Cb%3E.txt')
  await tab.click('button', 'Send the request')
  await tab.sees('Candidates')

  // A tab that comes back after the time without input, and a session that the server no longer knows.
  await tab.page.evaluate(`addEventListener('pagehide', () =>
    sessionStorage.setItem('dealgate-last-input', String(Date.now() - 16 * 60_000)))`)
  await tab.page.reload()
  await tab.sees('The console was not used for 15 minutes')
  await tab.signIn({ boxes: ['Stay signed in in this tab'] })
  await tab.goTo('#/server')
  await tab.page.evaluate(`addEventListener('pagehide', () => {
    const kept = JSON.parse(sessionStorage.getItem('dealgate-session'))
    sessionStorage.setItem('dealgate-session', JSON.stringify({ ...kept, sessionToken: 'another' }))
  })`)
  await tab.page.reload()
  await tab.sees('The session has ended')

  // A session that only reads.
  await tab.signIn({ boxes: ['Read only'] })
  await tab.goTo('#/overview')
  await tab.sees('StorageDeal')
  await tab.goTo('#/calls/deal_CreateObjectDeal_POST')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Key', 'a<b>.txt')
  await tab.click('button', 'Continue…')
  await tab.click('button', 'Send the request')
  await tab.sees('Not allowed')
  await tab.click('button', 'Cancel')

  // One of a key pair that may not list the plugins.
  const added = await runCli(['keys', 'add', '--data', server.data, '--right', 'read:photos/', '--print', 'json'])
  const { accessKeyId: id, secretAccessKey: secret } = JSON.parse(added.stdout)
  await tab.click('button', 'Sign out')
  await tab.signIn({ pair: { id, secret }, boxes: ['Read only'] })
  await tab.goTo('#/buckets/photos/objects')
  await tab.sees('1 object on this page')

  // Temporary credentials cannot be narrowed.
  await tab.click('button', 'Sign out')
  await tab.fill('Access key id', id)
  await tab.fill('Secret access key', secret)
  await tab.page.locator('summary').click()
  await tab.fill('Session token', 'token')
  await tab.click('checkbox', 'Read only')
  await tab.click('button', 'Sign in')
  await tab.sees('Temporary credentials cannot be made read only')
  t.same(tab.complaints, [])
})

/** Answers requests whose address matches, but not their preflights, until the returned function is called. */
async function intercept(
  { page }: Tab,
  address: RegExp,
  answer: (request: HTTPRequest) => Promise<void>,
): Promise<() => Promise<void>> {
  const onRequest = (request: HTTPRequest) =>
    address.test(request.url()) && request.method() !== 'OPTIONS' ? answer(request) : request.continue()
  page.on('request', onRequest)
  await page.setRequestInterception(true)
  return async () => {
    await page.setRequestInterception(false)
    page.off('request', onRequest)
  }
}

/** Sends a request of the page to the server. */
function forward(request: HTTPRequest): Promise<Response> {
  const body = request.postData() ?? null
  return fetch(request.url(), { method: request.method(), headers: request.headers(), body })
}
