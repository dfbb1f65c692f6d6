import t from 'tap'
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

  // The owner of a server with its own services has signed in there without a step of its own.
  await tab.goTo('#/deals', 'There is no deal yet')
  await tab.goTo('#/payments', 'The wallet has no coins yet', 'This wallet has paid nothing yet', 'Left of it')
  await accessible('a wallet without coins')

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
  await tab.sees('Upload to IPFS again', 'The wallet has not paid yet')
  await accessible('an object with payments')
  await tab.click('button', 'Pay…', 'Coins of this server have no value')
  await tab.click('button', 'Get 100 test coins…', 'no value anywhere else')
  await tab.click('button', 'Get 100 coins')
  await tab.sees('The wallet has', '100 STABLE')
  await accessible('the confirmation of a payment')
  const { Amount } = await ask('GET', '/-/pay/v1/uploads/1/quote')
  const price = `${Number(Amount) / 1e6}`
  await tab.click('button', `Pay ${price} STABLE`, 'The payment was locked')
  await tab.goTo('#/payments', 'Locked for uploads', `${price} STABLE`, 'a<b>.txt')
  await tab.fill('File contains', 'none')
  await tab.click('button', 'Show', 'There is no such payment', 'Left of it')
  await tab.goTo('#/payments/uploads', 'a<b>.txt')
  const csv = tab.page.waitForResponse(
    (response) => response.request().method() === 'GET' && response.url().endsWith('/-/pay/v1/uploads.csv'),
  )
  await tab.click('button', 'Save all as CSV')
  t.match(await (await csv).text(), /\n.*180/)

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

  await tab.goTo('#/tasks', 'New task…')
  await tab.click('button', 'New task…', 'Nothing is paid before a provider has them')
  await tab.fill('Bucket', 'photos')
  await tab.choose('Who gets it', 'auto')
  await tab.click('button', 'Go on', 'cannot be undone')
  await accessible('the confirmation of a task')
  await tab.click('button', 'Post the task', 'deal:CreateBucketOfflineDeal')
  await tab.sees('Complete')
  await tab.goTo('#/tasks', 'photos')

  await t.test('another key pair reads what it lacks, and goes on from there', async () => {
    const { SecretAccessKey: secret } = await ask('POST', '/-/keys/v1/OTHER', { All: true })
    await tab.click('button', 'Sign out')
    await tab.signIn({ pair: { id: 'OTHER', secret } })
    await tab.goTo('#/payments', 'This key pair has no wallet', 'dealgate wallet link')
    await tab.goTo('#/payments/uploads', 'This key pair has no wallet at the payment service')
    await accessible('uploads without a wallet')
    await tab.goTo('#/tasks', 'This key pair is no user of the task platform')
    await tab.click('button', 'Sign in at the task platform…')
    await tab.fill('E-mail address', 'owner@localhost')
    await tab.fill('Password', server.platformPassword)
    await tab.click('button', 'Sign in', 'nightly<b>')
  })
  t.same(tab.complaints, [])
})
