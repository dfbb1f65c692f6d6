import t from 'tap'
import { PayStory } from './pay-story.js'

t.setTimeout(600_000)

/** What the wallet has at first, millionths of a coin. */
const COINS = 10_000_000n

t.test('a file is uploaded, paid, stored by a provider, and the bill adds up', async (t) => {
  const story = await PayStory.start(t)
  if (!story) return
  await story.store()
  t.match(await story.pay(), { code: 1, stderr: /Fund the wallet first/ })
  await story.fund('10')
  t.match(await story.pay('0.000001'), { code: 1, stderr: /pay_amount must be at least/ }, 'underpaid')
  const paid = await story.pay()
  t.match(paid, { code: 0 })
  t.match(await story.pay('0.5'), { code: 1, stderr: /paid already/ }, 'paid twice')
  await story.untilStatus('Success')
  const { deals, paid: amount, unlocked } = await story.show()
  t.match(deals, [/^t01000\s+StorageDealActive\s+Success$/])
  t.ok(unlocked > 0n && unlocked < amount, `${unlocked} of ${amount}`)
  t.equal(await story.balance(), COINS - unlocked, 'the rest came back')
})
