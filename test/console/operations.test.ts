import t from 'tap'
import { send } from '../support/sign/send.js'
import { forward, intercept, respond, startConsole } from './browser.js'

t.test('deals, jobs, calls and the server', async (t) => {
  const scene = await startConsole(t, { args: ['--network-epoch-seconds', '0.02'] })
  if (!scene) return
  const { server, tab, accessible } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a%3Cb%3E.txt', body: Buffer.alloc(100_000, 'a') })
  const unavailable = await intercept(tab, /config\.json$/, (request) => request.respond({ status: 503 }))
  await tab.page.reload()
  await tab.sees('The server of the console does not answer')
  await unavailable()
  await tab.signIn({ boxes: ['Stay signed in in this tab'] })

  await tab.goTo('#/buckets/photos/archive', 'This address names no object')
  await tab.goTo('#/buckets/photos/archive?key=another')
  await tab.fill('Days', '200')
  await tab.goTo('#/buckets/photos/archive?key=a%3Cb%3E.txt')
  await tab.untilTrue(`document.querySelector('input[name=days]').value === '180'`)
  await tab.goTo('#/buckets/photos/object?key=a%3Cb%3E.txt', 'There is no deal for this object')
  await tab.click('link', 'Make a deal')
  await tab.click('button', 'Get a quote', 'Score')
  await accessible('a quote')
  await tab.click('button', 'Choose t01000', 'A deal cannot be undone')
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
  await tab.sees('deal:CreateObjectDeal', 'Complete')
  await accessible('a job')
  let status = 200
  const polled = await intercept(tab, /\/-\/jobs\/v1\/[^/]+$/, async (request) => {
    await respond(request, { ...((await (await forward(request)).json()) as object), Status: 'Active' }, status)
  })
  await tab.page.reload()
  await tab.sees('Active')
  status = 503
  await tab.sees('This failed', 'Active')
  await polled()
  await tab.sees('Complete')
  t.notMatch(await tab.text(), 'This failed')
  await tab.goTo('#/jobs', '1 job')
  await tab.goTo('#/deals', '1 deal', 'photos/a<b>.txt')
  let state: string | undefined = 'StorageDealSealing'
  const held = await intercept(tab, /\/-\/deal\/v1\/deals\/bafy/, async (request) => {
    const answer = (await (await forward(request)).json()) as object
    await respond(request, { ...answer, ...(state !== undefined && { Status: state }) })
  })
  await tab.page.locator('td.first a').click()
  await tab.sees('Sealing', 'The provider packs the data', 'StorageDealSealing')
  state = undefined
  await tab.sees('StorageDealActive')
  await held()
  await tab.goTo('#/deals')
  await tab.fill('Bucket', 'none-such')
  await tab.fill('Ends within days', '200')
  await tab.click('button', 'Show', 'There is no such deal')
  await tab.fill('Bucket', 'photos')
  await tab.page.select('select[name=status]', 'StorageDealExpired')
  await tab.click('button', 'Show', 'There is no such deal')
  await tab.page.evaluate('history.back()')
  await tab.page.evaluate('history.back()')
  await tab.sees('photos/a<b>.txt')
  await tab.click('link', 'Providers and their prices', 't01005')

  await tab.goTo('#/overview', 'Requests and errors', 'Deals by state')
  await tab.goTo('#/server', 'GLACIER')

  await tab.goTo('#/calls', 'CreateObjectDeal')
  await tab.goTo('#/calls/deal_ListObjectDeals_GET')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Key', 'a<b>.txt')
  await tab.click('button', 'Send', 'success')
  await accessible('a call and its answer')
  await tab.goTo('#/calls/deal_QuoteObjectDeal_POST')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Key', 'a<b>.txt')
  await tab.page.locator('input[name=DurationEpochs]').fill('518400')
  await tab.click('button', 'Continue…', 'POST /photos/a%3Cb%3E.txt')
  await tab.click('button', 'Send the request', 'Candidates')

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

  // Temporary credentials cannot be narrowed.
  await tab.fill('Access key id', server.accessKey)
  await tab.fill('Secret access key', server.secretKey)
  await tab.page.locator('summary').click()
  await tab.fill('Session token', 'token')
  await tab.click('checkbox', 'Read only')
  await tab.click('button', 'Sign in', 'Temporary credentials cannot be made read only')
  t.same(tab.complaints, [])
})
