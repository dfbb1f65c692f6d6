import t from 'tap'
import { CHAIN_ID, EvmNode } from '../services/payment/chain/evm-node.js'
import { PaymentContract } from '../services/payment/chain/payment-contract.js'
import { newKeys } from '../services/payment/payment-client.js'
import { until } from '../support/waiting.js'
import { PayStory } from './pay-story.js'

t.setTimeout(600_000)

/** What the wallet has at first, millionths of a coin. */
const COINS = 10_000_000n

t.test('on a chain, an upload waits for a payment that a reorganisation takes away', async (t) => {
  const secretKey = Buffer.alloc(32, 7)
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node)
  const env = {
    DEALGATE_PAYMENT_CHAIN_URL: node.url,
    DEALGATE_PAYMENT_CHAIN_ID: String(CHAIN_ID),
    DEALGATE_PAYMENT_CHAIN_CONTRACT: contract.address,
    DEALGATE_PAYMENT_CHAIN_TOKEN: contract.token,
    DEALGATE_PAYMENT_CHAIN_RECIPIENT: contract.recipient,
    DEALGATE_PAYMENT_CHAIN_CONFIRMATIONS: '2',
    DEALGATE_PAYMENT_CHAIN_START_BLOCK: '1',
  }
  const story = await PayStory.start(t, { env, walletKey: secretKey })
  if (!story) return
  await t.rejects(story.fund('10'), /on a chain/)
  await contract.fund(secretKey, COINS)
  const id = await story.store()
  t.match(await story.pay(), { code: 1, stderr: /lockTokenPayment/ })
  await contract.lock(secretKey, { id, amount: 400_000n })
  await node.mineEmpty(2)
  await story.untilStatus('Processing')
  const dropped = await node.reorganise(3)
  await story.untilStatus('Pending')
  for (const raw of dropped) await node.mine(raw)
  await node.mineEmpty(2)
  await until('the deal is active', async () => (await story.deals()).includes('Active'))
  await contract.unlock(id, 100_000n)
  await contract.refund(id)
  await node.mineEmpty(2)
  await story.untilStatus('Success')
  t.match(await story.show(), { paid: 400_000n, unlocked: 100_000n })
  t.equal(await contract.balance(newKeys(secretKey).address), COINS - 100_000n)
})
