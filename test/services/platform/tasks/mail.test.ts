import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase, Writer } from '../../../../src/services/database.js'
import { silentLog } from '../../../../src/services/log.js'
import { compose, type Deliver, deliveryOf, ServerDownError } from '../../../../src/services/platform/mail-delivery.js'
import { Mailer, MailTable } from '../../../../src/services/platform/mailer.js'
import { migrate } from '../../../../src/services/platform/store.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { startCli } from '../../../support/server/cli.js'
import { until } from '../../../support/waiting.js'
import { send } from '../platform-client.js'
import { mailServer } from './mail-server.js'
import { CSV, formOf, PRIVATE, PUBLIC, startTasks, type TaskScene } from './task-scene.js'

function mailsOf({ scene }: TaskScene): string[] {
  const outbox = join(scene.folder, 'platform', 'outbox')
  if (!existsSync(outbox)) return []
  return readdirSync(outbox)
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .map((name) => readFileSync(join(outbox, name), 'utf8'))
}

t.test('a mail byte by byte', async (t) => {
  const mail = {
    id: 7,
    recipient: 'deals@meridian.example',
    subject: 'Task a',
    text: 'One\nTwo\n',
    created: 1e9,
    attempts: 0,
  }
  const bytes = await compose(mail, 'dealgate@localhost')
  t.equal(
    bytes.toString(),
    [
      'From: dealgate@localhost',
      'To: deals@meridian.example',
      'Subject: Task a',
      'Message-ID: <1000000000.7@localhost>',
      'Date: Sun, 09 Sep 2001 01:46:40 +0000',
      'Content-Transfer-Encoding: 7bit',
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'One',
      'Two',
      '',
    ].join('\r\n'),
  )
  t.same(await compose(mail, 'dealgate@localhost'), bytes, 'each time the same')
})

t.test('the provider of a private task gets a mail, as a file', async (t) => {
  const tasks = await startTasks(t)
  const uuid = await tasks.post({ ...PRIVATE, task_name: 'Größe', max_price: '0.5', expire_days: '3' })
  const [mail = ''] = await until('the mail is written', () => (mailsOf(tasks).length > 0 ? mailsOf(tasks) : undefined))
  const [head = '', body = ''] = mail.split('\r\n\r\n')
  t.match(head, /^To: deals@meridian\.example$/m)
  t.match(head, /^Subject: =\?UTF-8\?Q\?Task_Gr=C3=B6=C3=9Fe_is_assigned_to_/m)
  t.match(head, /^Content-Transfer-Encoding: quoted-printable$/m)
  const text = mail.slice(head.length + 4)
  t.match(body, /^The task Gr=C3=B6=C3=9Fe is assigned to your storage provider t01000\./)
  t.match(text, new RegExp(`^Task: ${uuid}\\r$`, 'm'))
  t.match(text, /^Deals: 1\r$/m)
  t.match(text, /^Price: at most 0\.5 fil per GiB and epoch\r$/m)
  t.match(text, /^Expires: 3 days after it was posted\r$/m)
  t.notMatch(mail, /(?<!\r)\n/, 'each line ends as the format asks')
  await tasks.scene.restart()
  t.equal(mailsOf(tasks).length, 1)
})

t.test('a public task sends its mail when a bid wins', async (t) => {
  const tasks = await startTasks(t)
  const uuid = await tasks.post(PUBLIC)
  await tasks.scene.network.control.advance(2)
  await tasks.task(uuid)
  t.same(mailsOf(tasks), [])
  await tasks.scene.network.control.advance(20)
  await tasks.task(uuid)
  const mails = await until('the mail is written', () => (mailsOf(tasks).length > 0 ? mailsOf(tasks) : undefined))
  t.match(mails, [/^Task: /m])
})

t.test('by SMTP', async (t) => {
  const { url, mails } = await mailServer(t)
  const tasks = await startTasks(t, { mail: { smtp: url, from: 'platform@example.com' } })
  const uuid = await tasks.post()
  await until('the mail arrives', () => mails.length === 1)
  t.match(mails[0], /^From: platform@example\.com\r\nTo: deals@meridian\.example\r$/m)
  t.match(mails[0], new RegExp(uuid))
  t.same(mailsOf(tasks), [])
})

t.test('a mail server that refuses fails no task, and gets the mail later', async (t) => {
  const broken = await mailServer(t, '554 no')
  const tasks = await startTasks(t, { mail: { smtp: broken.url } })
  const uuid = await tasks.post()
  t.match(await tasks.task(uuid), { task: { status: 'Assigned' } })
  await until('the mail server was asked', () => broken.greeted() > 0)
  const working = await mailServer(t)
  await tasks.scene.restart({ mail: { smtp: working.url } })
  await until('the mail arrives', () => working.mails.length === 1)
  t.match(working.mails[0], new RegExp(uuid))
})

t.test('from the command line', async (t) => {
  const { url, mails } = await mailServer(t)
  const secret = url.replace('smtp://', 'smtp://user:hidden-password@')
  const running = await startCli<{ platform: string; platformEmail: string; platformPassword: string }>(t, [
    'services',
    ...['--data', join(temporaryFolder(t), 'data'), '--gateway-port', '0', '--platform-port', '0'],
    ...['--platform-smtp', secret, '--platform-mail-from', 'us@example.com', '--platform-daemon', 'external'],
  ])
  const { platform, platformEmail: email, platformPassword: password } = running.line
  const { json } = await send(platform, 'POST', '/auth/login', { body: { email, password } })
  const token = json.auth_token
  const posted = await send(platform, 'POST', '/tasks', { body: formOf(PRIVATE, CSV), token })
  t.match(posted, { status: 200 })
  await until('the mail arrives', () => mails.length === 1)
  t.match(mails[0], /^From: us@example\.com\r$/m)
  t.match((await send(platform, 'GET', `/tasks/${posted.json.data.uuid}`, { token })).json.data.deal, [
    { status: 'Created' },
  ])
  const { stdout, stderr } = await running.stop()
  t.notMatch(stdout + stderr, 'hidden-password')
})

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
