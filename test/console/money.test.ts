import { join } from 'node:path'
import t from 'tap'
import { paymentOrderText } from '../../services/payment/billing.js'
import { openWalletRegistry } from '../../services/payment/store.js'
import { NETWORK, newKeys } from '../services/payment/payment-client.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startConsole } from './browser.js'

t.test('payments and tasks', async (t) => {
  const scene = await startConsole(t, { config: { networkEpochSeconds: 0.5 } })
  if (!scene) return
  const { server, tab, accessible } = scene
  const ask = async (method: string, target: string, json?: object, more: Record<string, string> = {}) => {
    const headers = { ...(json && { 'content-type': 'application/json' }), accept: 'application/json', ...more }
    const body = json && { body: Buffer.from(JSON.stringify(json)) }
    const answer = await send(server, { method, target, headers, ...body })
    if (answer.status >= 300) throw new Error(answer.body.toString())
    return JSON.parse(answer.body.toString())
  }
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a%3Cb%3E.txt', body: Buffer.alloc(100_000, 'a') })
  await tab.signIn()

  await tab.goTo('#/payments', 'Sign a wallet in', 'The key pair acts as no wallet', 'Left of it')
  const { address, sign } = newKeys()
  const { Nonce } = await ask('POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress: address })
  const pay = async (wCid: string) => {
    const registry = await openWalletRegistry(join(server.data, 'services'))
    await registry.fund(address, 1_000_000n)
    await registry.close()
    const order = { w_cid: wCid, pay_amount: '500000', signature: sign(paymentOrderText(wCid, 500_000n, NETWORK)) }
    const request = { method: 'POST', body: JSON.stringify(order) }
    t.equal((await fetch(`${server.payment}/api/v1/billing/deal/lockpayment`, request)).status, 200)
  }
  const session = { Nonce, Signature: sign(Nonce), PublicKeyAddress: address, Network: NETWORK, Store: true }
  await ask('POST', '/-/pay/v1/wallet/session', session)
  await tab.click('button', 'Refresh', 'This wallet has paid nothing yet')

  await tab.goTo('#/buckets/photos/object?key=a%3Cb%3E.txt')
  await tab.click('link', 'Upload to IPFS for payment')
  await tab.fill('Days', '180')
  await tab.click('button', 'Get a quote', 'Left of it')
  await accessible('a quote of an upload')
  await tab.click('button', 'Upload…', 'What is published cannot be taken back')
  await accessible('the confirmation of an upload')
  const tokens: (string | undefined)[] = []
  tab.page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('?x-pay='))
      tokens.push(request.headers()['x-amz-client-token'])
  })
  await tab.page.evaluate(`(() => {
    const button = [...document.querySelectorAll('dialog button')].find(({ textContent }) => textContent.trim() === 'Upload')
    button.click()
    button.click()
  })()`)
  await tab.sees('pay:UploadObjectToIpfs', 'Complete')
  t.equal(tokens.length, 1, 'a double click costs once')
  t.match(tokens[0], /^[0-9a-f-]{36}$/)
  await send(server, {
    method: 'POST',
    target: '/photos/a%3Cb%3E.txt?x-pay=',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{"DurationDays":3}'),
  })
  await tab.goTo('#/buckets/photos/object?key=a%3Cb%3E.txt', 'The upload to IPFS failed', 'Retry…')
  await tab.sees('Upload to IPFS again', 'The wallet has not paid yet: dealgate wallet pay 1')
  await accessible('an object with payments')
  const [upload] = (await ask('GET', '/photos/a%3Cb%3E.txt?x-pay=')).Uploads
  await pay(upload.WCid)
  await tab.click('button', 'Refresh', '500000 smallest units of')
  await tab.goTo('#/payments', 'Locked for uploads', '0.5 STABLE')
  await tab.fill('File contains', 'none')
  await tab.click('button', 'Show', 'This wallet has paid nothing yet', 'Left of it')
  await tab.goTo('#/payments/uploads', 'a<b>.txt')
  const csv = tab.page.waitForResponse(
    (response) => response.request().method() === 'GET' && response.url().endsWith('/-/pay/v1/uploads.csv'),
  )
  await tab.click('button', 'Save all as CSV')
  t.match(await (await csv).text(), /\n.*180/)

  await ask('POST', '/-/task/v1/session', { Email: 'owner@localhost', Password: server.platformPassword, Store: true })
  const File = 'file_source_url,file_size\nhttp://127.0.0.1:9/x.car,1000\n'
  const terms = { IsPublic: true, BidMode: 0, TaskName: 'nightly<b>', MaxPrice: '0.000001', File }
  await ask('POST', '/-/task/v1/tasks', terms, { 'x-amz-client-token': 'one' })
  await tab.goTo('#/tasks', 'nightly<b>')
  await tab.click('link', 'nightly<b>')
  await until('providers bid', async () => {
    await tab.click('button', 'Refresh')
    return (await tab.text()).includes('Accept…')
  })
  await accessible('a task with bids')
  await tab.click('button', 'Accept the bid of t01000', 'fil per GiB and epoch of each piece. The other bids lose')
  await tab.sees('Costs at most')
  await tab.click('button', 'Accept')
  await tab.untilTrue(`location.hash.startsWith('#/jobs/')`)
  await tab.sees('Complete')
  await tab.goTo('#/tasks')
  await tab.click('link', 'nightly<b>', 'Won')
  await tab.untilTrue(`!document.body.innerText.includes('Accept…')`)
  t.same(tab.complaints, [])
})
