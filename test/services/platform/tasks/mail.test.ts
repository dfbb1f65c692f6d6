import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { compose } from '../../../../src/services/platform/mail/compose.js'
import { until } from '../../../support/waiting.js'
import { PRIVATE, PUBLIC, startTasks, type TaskScene } from './task-scene.js'

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

/** A mail server that takes every mail, or answers with `refusal`. Ends with the test. */
async function mailServer(t: Test, refusal?: string): Promise<{ url: string; mails: string[]; greeted: () => number }> {
  const mails: string[] = []
  let greeted = 0
  const server: Server = createServer((socket) => {
    greeted++
    let data = ''
    let inMail = false
    socket.on('error', () => {})
    socket.write(refusal === undefined ? '220 mail ready\r\n' : `${refusal}\r\n`)
    socket.on('data', (chunk) => {
      data += chunk
      for (;;) {
        const end = data.indexOf(inMail ? '\r\n.\r\n' : '\r\n')
        if (end < 0) return
        const line = data.slice(0, end)
        data = data.slice(end + (inMail ? 5 : 2))
        if (inMail) {
          mails.push(`${line}\r\n`)
          inMail = false
          socket.write('250 taken\r\n')
        } else if (/^DATA/i.test(line)) {
          inMail = true
          socket.write('354 go on\r\n')
        } else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n')
        else socket.write('250 fine\r\n')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return { url: `smtp://127.0.0.1:${port}`, mails, greeted: () => greeted }
}

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
