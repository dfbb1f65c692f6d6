import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { Delivery, laneName } from '../../../plugins/notifications/delivery.js'
import { Outbox } from '../../../plugins/notifications/outbox.js'
import { Sender } from '../../../plugins/notifications/sender.js'
import { WebhookClient } from '../../../plugins/notifications/webhook-client.js'
import type { Webhook } from '../../../plugins/notifications/webhooks.js'
import type { ObjectEvent } from '../../../src/api/hooks.js'
import type { State } from '../../../src/api/state.js'
import { acquireTaskLease } from '../../../src/state/locks/task-lease.js'
import { openState } from '../../../src/state/open-state.js'
import { createBucketSettings } from '../../../src/state/records/bucket-settings.js'
import { creationTimesOf } from '../../support/gateway/creation-times.js'
import { keptLog } from '../../support/server/kept-log.js'
import { until } from '../../support/waiting.js'
import { WebhookReceiver } from '../../support/webhook-receiver.js'

function clientOf(t: Test, webhooks: Record<string, Omit<Webhook, 'name'>>, timeoutMs?: number): WebhookClient {
  const client = new WebhookClient(
    new Map(Object.entries(webhooks).map(([name, rest]) => [name, { name, ...rest }])),
    timeoutMs,
  )
  t.teardown(() => client.close())
  return client
}

async function stateOf(t: Test): Promise<State> {
  const state = await openState({ data: t.testdir(), log: keptLog().log })
  t.teardown(() => state.close())
  return state
}

t.test('the client', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const { host } = new URL(receiver.url)
  const client = clientOf(t, {
    plain: { url: `${receiver.url}/path?token=abc#part`, secret: undefined },
    login: { url: `http://me:p%40ss@${host}/`, secret: 'the secret' },
    nobody: { url: 'http://127.0.0.1:1/?token=abc' },
  })
  t.ok(client.knows('plain'))
  t.notOk(client.knows('other'))

  await t.test('takes 2xx for an answer', async (t) => {
    t.equal(await client.send('plain', { id: 'id-1', body: '{"a":"ä"}' }), undefined)
    const [got] = receiver.taken
    t.equal(got?.url, '/path?token=abc')
    t.same(got?.body, { a: 'ä' })
    t.match(got?.headers, { 'content-type': 'application/json', 'x-dealgate-delivery': 'id-1' })
    t.equal(got?.headers['x-dealgate-signature'], undefined)
    t.equal(got?.headers.authorization, undefined)
  })

  await t.test('signs, and logs in', async (t) => {
    t.equal(await client.send('login', { id: 'id-2', body: '{}' }), undefined)
    const { headers = {} } = receiver.taken.at(-1) ?? {}
    const [, time, value] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-dealgate-signature'])) ?? []
    t.equal(value, createHmac('sha256', 'the secret').update(`${time}.{}`).digest('hex'))
    t.equal(headers.authorization, `Basic ${Buffer.from('me:p@ss').toString('base64')}`)
  })

  await t.test('says why not, without secrets', async (t) => {
    const send = () => client.send('plain', { id: 'x', body: '{}' })
    receiver.behave = (response) => response.writeHead(500).end('no')
    t.equal(await send(), 'it answered 500')
    receiver.behave = (response) => response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end()
    const before = receiver.all.length
    t.equal(await send(), 'it answered 302')
    t.equal(receiver.all.length, before + 1, 'a redirect is not followed')
    receiver.behave = (response) => void response.socket?.destroy()
    t.match(await send(), /UND_ERR_SOCKET|ECONNRESET/)
    receiver.behave = () => {}
    const hasty = clientOf(t, { plain: { url: receiver.url } }, 300)
    t.match(await hasty.send('plain', { id: 'x', body: '{}' }), /no answer within 300 ms/, 'one that says nothing')
    t.equal(await client.send('nobody', { id: 'x', body: '{}' }), 'ECONNREFUSED')
    t.equal(await client.send('other', { id: 'x', body: '{}' }), 'the webhook is not declared')
    const stopped = AbortSignal.abort()
    t.equal(await client.send('plain', { id: 'x', body: '{}' }, stopped), 'the server stops')
  })

  await t.test('an answer without end is not waited for', async (t) => {
    receiver.behave = (response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'.repeat(10_000)), 1)
      response.on('close', () => clearInterval(timer))
    }
    t.equal(await client.send('plain', { id: 'x', body: '{}' }), undefined)
    receiver.behave = (response) => void response.writeHead(200).write('and then nothing')
    t.equal(await client.send('plain', { id: 'x', body: '{}' }), undefined)
    receiver.behave = undefined
  })
})

t.test('each object’s messages come in order and at least once, whatever the receiver does', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const { log, lines } = keptLog()
  const outbox = new Outbox(await stateOf(t), log, 1000)
  const client = clientOf(t, { hook: { url: receiver.url } }, 200)
  const delivery = new Delivery({ outbox, client, log, giveUpAfterMs: 60_000, firstRetryMs: 1 })
  t.teardown(() => delivery.stop())
  let active = 0
  let most = 0
  const send = client.send.bind(client)
  // Counted where they are sent: one that the client has given up may only be over later for the receiver.
  client.send = async (...sent) => {
    most = Math.max(most, ++active)
    return send(...sent).finally(() => active--)
  }
  let turn = 0
  receiver.behave = (response, received) => {
    // Every second attempt works; the others fail in all ways there are.
    const kind = turn++ % 10
    if (kind % 2 === 0) return receiver.accept(response, received)
    if (kind === 1) return void response.writeHead(503).end()
    if (kind === 3) return void response.destroy()
    if (kind === 5) return void setTimeout(() => response.destroy(), 5)
    if (kind === 7) return
    response.writeHead(404).end()
  }
  const sent: Record<string, number[]> = {}
  for (let i = 0; i < 60; i++) {
    const key = `key ${i % 12}`
    sent[key] = [...(sent[key] ?? []), i]
    const message = { webhook: 'hook', bucket: 'b', key, since: Date.now(), body: JSON.stringify({ key, i }) }
    const id = await outbox.add(String(i).padStart(16, '0'), message, delivery.waiting)
    delivery.add(id ?? '', 'hook', laneName(message))
    delivery.add(id ?? '', 'hook', laneName(message))
  }
  await until('all have arrived', () => delivery.waiting === 0)
  const taken: Record<string, number[]> = {}
  for (const { body } of receiver.taken) {
    const before = taken[body.key] ?? []
    // At least once: one whose answer was late comes again, but before any other.
    taken[body.key] = before.at(-1) === body.i ? before : [...before, body.i]
  }
  t.same(taken, sent)
  t.ok(most > 1 && most <= 8, `${most} at once`)
  for await (const [id] of outbox.entries()) t.fail(`${id} is still kept`)
  t.ok(lines.some(({ msg }) => msg.startsWith('a webhook did not accept')))
})

t.test('one object’s trouble is not another’s', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const { log } = keptLog()
  const outbox = new Outbox(await stateOf(t), log, 1000)
  const client = clientOf(t, { hook: { url: receiver.url }, down: { url: 'http://127.0.0.1:1/' } })
  const delivery = new Delivery({ outbox, client, log, giveUpAfterMs: 60_000, firstRetryMs: 50 })
  t.teardown(() => delivery.stop())
  receiver.behave = (response, received) =>
    received.body.key === 'poison' ? response.writeHead(500).end() : receiver.accept(response, received)
  const add = async (n: number, webhook: string, key: string) => {
    const message = { webhook, bucket: 'b', key, since: Date.now(), body: JSON.stringify({ key }) }
    delivery.add((await outbox.add(`${n}`.padStart(16, '0'), message, 0)) ?? '', webhook, laneName(message))
  }
  for (let i = 0; i < 20; i++) await add(i, 'down', `key ${i}`)
  await add(20, 'hook', 'poison')
  await add(21, 'hook', 'well')
  await until('the other one is there', () => receiver.taken.some(({ body }) => body.key === 'well'))
  await until('it waits no longer', () => delivery.waiting === 21)
})

t.test('too old is given up, loudly; too many are dropped, loudly', async (t) => {
  const { log, lines } = keptLog()
  const state = await stateOf(t)
  const outbox = new Outbox(state, log, 2)
  const client = clientOf(t, { down: { url: 'http://127.0.0.1:1/' } })
  const delivery = new Delivery({ outbox, client, log, giveUpAfterMs: 100, firstRetryMs: 10 })
  t.teardown(() => delivery.stop())
  const message = (webhook: string) => ({ webhook, bucket: 'b', key: 'k', since: Date.now(), body: '{}' })
  // All are there before the first can be too old.
  const webhooks = ['down', 'not declared any more', 'down']
  const ids: (string | undefined)[] = []
  for (const [waiting, webhook] of webhooks.entries())
    ids.push(await outbox.add('0'.repeat(16), message(webhook), waiting))
  t.match(ids, [String, String, undefined])
  for (const [i, webhook] of webhooks.entries()) {
    const id = ids[i]
    if (id !== undefined) delivery.add(id, webhook, laneName(message(webhook)))
  }
  await until('both are given up', () => delivery.waiting === 0)
  const errors = lines.filter(({ level }) => level === 50).map(({ msg }) => msg)
  t.match(errors, [/^dropped notifications/, /^discarded a notification/, /^discarded a notification/])
  for await (const [id] of outbox.entries()) t.fail(`${id} is still kept`)
})

const event = (key: string, i: number): ObjectEvent => ({
  name: 'ObjectCreated:Put',
  bucket: 'b',
  key,
  size: i,
  etag: 'e',
  time: Date.now(),
  origin: { requestId: 'R', accessKeyId: 'me', remoteAddress: '' },
})

t.test('of two proxies on one state one delivers for both, and the other when it is gone', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const { log, lines } = keptLog()
  const own = await stateOf(t)
  const state: State = Object.assign(Object.create(own), { shared: true })
  const settings = createBucketSettings(state, creationTimesOf())
  const rules = [{ id: 'r', kind: 'Queue', webhook: 'hook', events: ['s3:ObjectCreated:*'], suffix: '.jpg' }] as const
  await settings.set('b', 'notifications', { owner: 'o', rules })
  const client = clientOf(t, { hook: { url: receiver.url } })
  const lease = () => acquireTaskLease(state, 'notifications', log)
  const options = { state, settings, lease, client, region: 'r', log, giveUpAfterMs: 60_000 }
  const make = () => new Sender({ ...options, firstRetryMs: 10 })
  const [first, second] = [make(), make()]
  await first.start()
  await second.start()
  await second.notify(event('a.jpg', 1))
  await second.notify(event('a.png', 1))
  await first.notify(event('b.jpg', 2))
  await until('its own is delivered', () => receiver.events.length === 1)
  t.same(receiver.events, ['ObjectCreated:Put b.jpg'])
  await first.stop()
  await until('the other one has taken over', () => receiver.events.length === 2)
  t.same(receiver.events, ['ObjectCreated:Put b.jpg', 'ObjectCreated:Put a.jpg'])
  await second.stop()

  await second.notify(event('late.jpg', 3))
  await second.notify(event('too late.jpg', 4))
  const third = new Sender({ ...options, maxWaiting: 1 })
  await third.start()
  await until('the one for which there was room is told', () => receiver.events.length === 3)
  t.equal(receiver.events.at(-1), 'ObjectCreated:Put late.jpg')
  t.ok(lines.some(({ msg }) => msg.startsWith('dropped notifications')))
  await third.stop()
  for await (const [id] of state.records('notifications').entries()) t.fail(`${id} is still kept`)
})
