import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase, Writer } from '../../../../src/services/database.js'
import { silentLog } from '../../../../src/services/log.js'
import { type Deliver, deliveryOf, ServerDownError } from '../../../../src/services/platform/mail-delivery.js'
import { Mailer, MailTable } from '../../../../src/services/platform/mailer.js'
import { migrate } from '../../../../src/services/platform/store.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { until } from '../../../support/waiting.js'

interface MailScene {
  readonly mailer: Mailer
  readonly mails: MailTable
  readonly writer: Writer
  /** Numbers of the mails that wait. */
  pending(): number[]
  /** Refuses what mails become, as a full disk does. */
  setFull(full: boolean): void
}

/** A mailer with so many mails, which sends when it is kicked. */
async function startMailer(t: Test, deliver: Deliver, count: number): Promise<MailScene> {
  const db = openDatabase(join(temporaryFolder(t), 'platform.db'), '', migrate)
  const writer = new Writer(db)
  const mails = new MailTable(db)
  const mail = { recipient: 'a@b.example', subject: 'a', text: 'b' }
  await writer.run(() => {
    for (let n = 0; n < count; n++) mails.add(mail, 1)
  })
  const mailer = new Mailer(mails, writer, deliver, silentLog)
  t.teardown(async () => {
    await mailer.stop()
    writer.close()
    db.close()
  })
  const full = "CREATE TRIGGER full BEFORE UPDATE ON mails BEGIN SELECT raise(ABORT, 'the disk is full'); END"
  return {
    mailer,
    mails,
    writer,
    pending: () => mails.pendingAfter(0, 1000, 1000).map(({ id }) => id),
    setFull: (isFull) => db.exec(isFull ? full : 'DROP TRIGGER full'),
  }
}

t.test('mails that a full disk cannot settle are sent once, and hold up no other', async (t) => {
  const sent: number[] = []
  const { mailer, pending, setFull } = await startMailer(t, async ({ id }) => void sent.push(id), 3)
  setFull(true)
  await mailer.kick()
  await mailer.kick()
  t.same(sent, [1, 2, 3])
  t.same(pending(), [1, 2, 3])
  setFull(false)
  await mailer.kick()
  t.same(sent, [1, 2, 3])
  t.same(pending(), [])
})

t.test('a pass ends at a server that is down, and the next begins with another mail', async (t) => {
  const tried: number[] = []
  const deliver: Deliver = async ({ id }) => {
    tried.push(id)
    if (id === 2) throw new ServerDownError('down')
    if (id === 4) throw new Error('this mail is refused')
  }
  const { mailer, mails, writer, pending } = await startMailer(t, deliver, 5)
  await mailer.kick()
  t.same(tried, [1, 2])
  await writer.run(() => mails.add({ recipient: 'a@b.example', subject: 'a', text: 'b' }, 1))
  await mailer.kick()
  t.same(tried, [1, 2, 3, 4, 5, 6], 'mails behind it, and new ones')
  t.same(pending(), [2, 4])
})

t.test('a stop does not wait for a mail server', async (t) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const { mailer, mails, pending } = await startMailer(t, deliveryOf({ smtp: `smtp://127.0.0.1:${port}` }, ''), 2)
  const kicked = mailer.kick()
  await until('the mail server is asked', () => sockets.size === 1)
  await mailer.stop()
  await kicked
  t.same(pending(), [1, 2])
  t.match(mails.pendingAfter(0, 0, 2), [{ id: 1 }, { id: 2 }], 'it is no failure')
  t.equal(sockets.size, 1)
  for (const socket of sockets) await until('the connection is closed', () => socket.readableEnded || socket.destroyed)
})

t.test('a server that cannot be reached is down', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  const deliver = deliveryOf({ smtp: `smtp://127.0.0.1:${port}` }, '')
  const mail = { id: 1, recipient: 'a@b.example', subject: 'a', text: 'b', created: 1, attempts: 0 }
  await t.rejects(deliver(mail, new AbortController().signal), ServerDownError)
})
