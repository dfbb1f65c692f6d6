import t from 'tap'
import { BlockRate } from '../../../services/payment/ipfs/block-rate.js'
import { paymentLimits } from '../../../services/payment/limits.js'

async function* blocks(count: number): AsyncIterable<Uint8Array> {
  for (let n = 0; n < count; n++) yield Buffer.from('block')
}

t.test('many small blocks are read at a rate, for a client and for all', async (t) => {
  let now = 0
  const pause = async (ms: number) => {
    now += ms
  }
  const rate = new BlockRate(paymentLimits.blockRates, pause, () => now)
  const read = async (client: string, count: number) => {
    const begun = now
    let read = 0
    for await (const block of rate.paced(client, blocks(count))) read += block.length
    t.equal(read, 5 * count, 'all bytes come')
    return (now - begun) / 1000
  }
  const { perClient, total } = paymentLimits.blockRates
  t.equal(await read('one', perClient.burst), 0, 'a common content does not wait')
  const seconds = await read('one', 200_000)
  t.ok(Math.abs(seconds - 200_000 / perClient.perSecond) < 1, `${seconds} s for 200,000 blocks`)
  t.equal(await read('two', 64), 0, 'another client does not wait for it')
  for (const client of ['a', 'b', 'c']) await read(client, perClient.burst)
  const shared = await read('d', 8_000)
  t.ok(shared > 0, `${shared} s: all together have a rate of ${total.perSecond}`)
})
