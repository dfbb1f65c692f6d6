import t from 'tap'
import { ask } from '../support/server/many-deaths.js'
import { send } from '../support/sign/send.js'
import { forward, intercept, respond, startConsole } from './browser.js'

t.test('deals for selected objects', async (t) => {
  const scene = await startConsole(t, { args: ['--network-epoch-seconds', '0.02'] })
  if (!scene) return
  const { server, tab, accessible } = scene
  const deals = async () => (await ask(server, 'GET', '/-/deal/v1/deals')).json.Deals
  const limit = (MaxSpendPerDay?: string) =>
    ask(server, 'POST', '/photos?x-deal-config=', { json: MaxSpendPerDay === undefined ? {} : { MaxSpendPerDay } })
  await send(server, { method: 'PUT', target: '/photos' })
  for (const key of ['a%3Cb%3E.txt', 'folder/c', 'folder/d', 'other'])
    await send(server, { method: 'PUT', target: `/photos/${key}`, body: Buffer.alloc(1000, 'a') })
  await tab.signIn()

  const open = async () => {
    await tab.goTo('#/buckets')
    await tab.goTo('#/buckets/photos/objects')
    await tab.click('checkbox', 'Select a<b>.txt')
    await tab.click('checkbox', 'Select folder/')
    await tab.click('button', 'Archive…', 'Get quotes')
  }
  await limit('0.000000000000000001')
  await open()
  await tab.click('button', 'Get quotes', 'for 3 deals')
  await tab.page.select('dialog select', 't01000')
  await tab.sees('The deals would exceed what may be spent today')
  t.equal(await tab.page.evaluate(`document.querySelector('dialog button.danger').disabled`), true)
  await accessible('deals that may not be paid')
  await tab.page.keyboard.press('Escape')

  await limit()
  await open()
  await tab.click('button', 'Get quotes', 'for 3 deals')
  await tab.page.select('dialog select', 't01000')
  await tab.untilTrue(`!document.querySelector('dialog button.danger').textContent.includes('Pay 0 fil')`)
  const facts = await tab.page.evaluate(`document.querySelector('dialog .facts').innerText`)
  const price = Number(/Price\s+([\d.]+) fil/.exec(String(facts))?.[1])
  const terms = { MinerId: 't01000', DurationEpochs: 518_400 }
  const { Total } = (await ask(server, 'POST', '/photos/other?x-deal-quote=', { json: terms })).json
  t.match(facts, /Objects\s+3\s+Size\s+2\.9 KiB/)
  t.match(facts, /Cap of the day\s+10 fil\s+Left of it\s+10 fil/)
  t.ok(Math.abs(price - 3 * Number(Total)) < 1e-12, `${price} is three times ${Total}`)
  await tab.sees('for 180 days')

  const tokens: [path: string, token: string | undefined][] = []
  let lost = 0
  const resumed = await intercept(tab, /\?x-deal=$/, async (request) => {
    const path = new URL(request.url()).pathname
    tokens.push([path, request.headers()['x-amz-client-token']])
    const answer = await forward(request)
    if (path.endsWith('/c') && lost++ === 0) return request.abort()
    return respond(request, await answer.text(), answer.status)
  })
  await tab.page.evaluate(`(() => {
    const button = document.querySelector('dialog button.danger')
    button.click()
    button.click()
  })()`)
  await tab.sees('No answer came', '2 deals made', 'for 1 deal')
  await accessible('a deal that failed among others')
  t.equal(tokens.length, 3, 'a double click orders each deal once')
  t.equal(new Set(tokens.map(([, token]) => token)).size, 3, 'each with a token of its own')
  await tab.page.locator('dialog button.danger').click()
  await tab.untilTrue(`document.querySelector('dialog') === null`, 'the dialog does not close')
  await tab.sees('3 deals made')
  await resumed()
  t.equal(tokens.length, 4, 'only what had failed is ordered again')
  const ofC = tokens.filter(([path]) => path.endsWith('/c')).map(([, token]) => token)
  t.equal(ofC[0], ofC[1], 'by the same token')
  t.same(
    (await deals()).map(({ Key }: { Key: string }) => Key).sort(),
    ['a<b>.txt', 'folder/c', 'folder/d'],
    'the server made each deal once',
  )

  await tab.goTo('#/buckets')
  await tab.goTo('#/buckets/photos/objects')
  await tab.click('checkbox', 'Select other')
  await tab.click('button', 'Archive…')
  await tab.click('button', 'Get quotes', 'for 1 deal')
  await tab.page.select('dialog select', 't01000')
  await tab.untilTrue(`!document.querySelector('dialog button.danger').textContent.includes('Pay 0 fil')`)
  await limit('0.000000000000000001')
  await tab.page.locator('dialog button.danger').click()
  await tab.sees('(SpendCapReached)')
  await limit()
  await tab.page.locator('dialog button.danger').click()
  await tab.sees('1 deal made')
  t.equal((await deals()).length, 4)
  t.same(tab.complaints, [])
})
