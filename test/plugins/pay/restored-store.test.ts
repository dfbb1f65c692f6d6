import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLogger } from '../../../src/common/log.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { newKeys } from '../../services/payment/payment-client.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { farFromMidnight } from '../../support/waiting.js'
import { link, startPayment, startPayProxy } from './scene.js'

// A state store that is restored from a backup lacks the jobs of later requests. The client repeats such a request.

for (const variant of ['a', 'b'] as const) {
  t.test(`variant ${variant}: a client token uploads once, also when its job is lost`, async (t) => {
    await farFromMidnight()
    const scene = await startPayment(t, variant)
    const keys = newKeys()
    const data = temporaryFolder(t)
    const backup = join(temporaryFolder(t), 'backup')
    const start = () => startPayProxy(t, scene, { data, pay: { wallet: keys.address } })
    type Proxy = Awaited<ReturnType<typeof start>>
    const restored = async (proxy: Proxy) => {
      await proxy.close()
      rmSync(data, { recursive: true })
      cpSync(backup, data, { recursive: true })
      // The gateway notices it, and the operator accepts the loss.
      const noticing = await start()
      t.match(await order(noticing, object, 'one', { DurationDays: 525 }), { status: 503, body: /older than it was/ })
      await noticing.close()
      t.equal(await acceptLoss({ data, log: createLogger({ level: 'silent' }) }), true)
      return start()
    }
    const order = async (proxy: Proxy, target: string, token: string, body: unknown) => {
      const headers = { 'x-amz-client-token': token, prefer: 'wait=60' }
      const answer = await proxy.send('POST', target, { body, headers } as Parameters<Proxy['send']>[2])
      return { status: answer.status, body: answer.body, id: JSON.parse(answer.body).SourceFileUploadId as number }
    }
    const object = '/photos/a.txt?format=json&x-pay='
    const file = (name: string) => `/-/pay/v1/uploads?duration-days=525&file-name=${name}&format=json`
    const count = async (proxy: Proxy) => (await proxy.ask('GET', '/-/pay/v1/uploads')).TotalRecordCount
    const first = await start()
    if (variant === 'a') await link(first, keys)
    await first.send('PUT', '/photos')
    await first.send('PUT', '/photos/a.txt', { body: 'hello' })
    await first.close()
    cpSync(data, backup, { recursive: true })

    const second = await start()
    const ofObject = await order(second, object, 'one', { DurationDays: 525 })
    t.match(ofObject, { status: 200, id: Number }, ofObject.body)
    const ofFile = await order(second, file('b.txt'), 'two', 'bytes')
    t.match(ofFile, { status: 200, id: Number }, ofFile.body)
    const minted = await order(second, object, 'three', { DurationDays: 525, FileType: '1' })
    t.match(minted, { status: 200, id: Number }, minted.body)
    t.equal(await count(second), 2, 'the list has those by users')

    let third = await restored(second)
    t.match(await order(third, object, 'one', { DurationDays: 525 }), { status: 200, id: ofObject.id })
    t.match(await order(third, file('b.txt'), 'two', 'bytes'), { status: 200, id: ofFile.id })
    t.match(await order(third, object, 'three', { DurationDays: 525, FileType: '1' }), { status: 200, id: minted.id })
    t.equal(await count(third), 2, 'nothing was uploaded twice')
    third = await restored(third)
    for (const [target, body] of [
      [file('b.txt'), 'other'],
      [file('c.txt'), 'bytes'],
    ] as const)
      t.match(await order(third, target, 'two', body), { status: 409, body: /IdempotencyParameterMismatch/ })
    const other = await order(third, object, 'four', { DurationDays: 525 })
    t.equal(other.status, 200, other.body)
    t.not(other.id, ofObject.id, 'another token is another upload')
    await third.send('PUT', '/photos/a.txt', { body: 'world' })
    const replaced = await order(third, object, 'one', { DurationDays: 525 })
    t.equal(replaced.status, 200, replaced.body)
    t.not(replaced.id, ofObject.id, 'another content is another upload')
  })
}
