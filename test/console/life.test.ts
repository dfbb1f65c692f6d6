import t from 'tap'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startConsole } from './browser.js'

/** Deals become active within a second, and copies are then evicted. */
const configuration = {
  networkEpochSeconds: 0.001,
  plugins: [
    {
      use: 'deal',
      options: {
        terms: { minerId: 't01000', price: '0.0000000005', duration: 1_555_200 },
        ...{ eviction: 'verified', evictionIntervalSeconds: 1, statusIntervalSeconds: 1, maxTimesAsk: 'none' },
      },
    },
  ],
}

t.test('the life of an object, and what mends it', async (t) => {
  const scene = await startConsole(t, { config: configuration })
  if (!scene) return
  const { server, tab, accessible } = scene
  const put = (key: string, headers: Record<string, string>) =>
    send(server, { method: 'PUT', target: `/photos/${key}`, body: Buffer.alloc(1000, 'a'), headers })
  await send(server, { method: 'PUT', target: '/photos' })
  await put('a', { 'x-amz-storage-class': 'GLACIER' })
  const unknown = 'miner=t09999;price=0.0000000005;duration=1555200'
  await put('failed', { 'x-amz-storage-class': 'GLACIER', 'x-amz-meta-deal-terms': unknown })
  await until('the copy is evicted', async () => {
    const { headers } = await send(server, { method: 'HEAD', target: '/photos/a' })
    return headers['x-amz-storage-class'] === 'GLACIER' && headers['x-amz-restore'] === undefined
  })
  await tab.signIn()

  await tab.goTo('#/buckets/photos/object?key=failed', 'The deal failed', 'DealRejected', 'Make another deal')
  await accessible('a failed deal')
  await tab.click('button', 'Retry…', 'may cost money')
  await tab.click('button', 'Run it again', 'The request to retry the job was accepted')
  const failures = `document.body.innerText.split('The deal failed').length === 3`
  await tab.untilTrue(failures, 'the second failure is not shown')

  await tab.goTo('#/buckets/photos/object?key=a', 'A deal was made with t01000', 'The network reported', 'Active')
  await tab.sees('the bytes are only in deals')
  const context = tab.page.browserContext()
  await context.overridePermissions(new URL(server.console).origin, [
    'clipboard-read',
    'clipboard-write',
    'clipboard-sanitized-write',
  ])
  await tab.click('button', 'Copy the piece CID', 'Copied the piece CID')
  t.match(await tab.page.evaluate('navigator.clipboard.readText()'), /^baga/)
  await tab.click('button', 'Restore…')
  await tab.fill('Days', '2')
  await accessible('the dialog of a restore')
  await tab.click('button', 'Restore', 'The restore was requested', 'Restored until')
  await tab.untilTrue(`!document.body.innerText.includes('Restore…')`, 'the button is still there')
  const { headers } = await send(server, { method: 'HEAD', target: '/photos/a' })
  t.match(headers['x-amz-restore'], 'expiry-date')

  await tab.goTo('#/providers', '1 of 1, 0 failed')
  t.match(await tab.text(), /\d+ (second|minute)s?\b/, 'how long it took to be active')
  t.same(tab.complaints, [])
})
