import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { postForm } from '../../cli/login.js'
import { PaymentApi } from '../../cli/payment-api.js'
import { readBounded } from '../../common/bounded-text.js'
import { ServiceClient } from '../../common/service-client.js'
import { PlatformClient } from '../../services/gateway/deals/offline/platform-client.js'
import type { Network } from '../../services/network/network.js'
import { PlatformDealer } from '../../services/payment/dealing/platform-dealer.js'
import { listen } from '../support/server/listen.js'
import { until } from '../support/waiting.js'

t.setTimeout(120_000)

/** A server that sends a text without an end, and the connections that take it. */
async function endless(t: Test): Promise<{ readonly url: string; open(): number }> {
  let open = 0
  const server = createServer((_, response) => {
    open++
    response.on('close', () => open--)
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', more)
    response.write('{"data": "')
    more()
  })
  const url = await listen(server, t)
  return { url: url, open: () => open }
}

t.test('an answer is read up to a bound', async (t) => {
  t.equal(await readBounded(new Response('ä'.repeat(50)), 100), 'ä'.repeat(50))
  t.equal(await readBounded(new Response(null), 0), '')
  await t.rejects(readBounded(new Response('x'.repeat(101)), 100), { name: 'TooLongError' })
})

t.test('no client takes an answer without an end', async (t) => {
  const { url, open } = await endless(t)
  const { signal } = new AbortController()
  const wallet = { address: `0x${'1'.repeat(40)}`, secretKey: Buffer.alloc(32, 7) }
  const dealer = new PlatformDealer({ url, tokenFor: async () => 'token' }, {} as Network)
  await t.rejects(new PaymentApi(url, 'dealgate.testnet', wallet).signIn(), { name: 'Failure' })
  await t.rejects(postForm('task platform', url, [], {}), { message: /more than 33554432 bytes/ })
  await t.rejects(
    new PlatformClient(new ServiceClient({ service: 'task platform', url }), 'token', signal).task('task'),
    { name: 'PlatformFailure' },
  )
  await t.rejects(dealer.progress('task', signal), { name: 'AnswerLost' })
  await until('all connections are closed', () => open() === 0)
})
