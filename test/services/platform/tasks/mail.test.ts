import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../../../support/content/folders.js'
import { rowsOf } from '../../../support/content/rows.js'
import { startCli } from '../../../support/server/cli.js'
import { until } from '../../../support/waiting.js'
import { onPostgres } from '../../engine.js'
import { send } from '../platform-client.js'
import { mailServer } from './mail-server.js'
import { CSV, formOf, PRIVATE, startTasks, type TaskScene } from './task-scene.js'

function mailsOf({ scene }: TaskScene): string[] {
  const outbox = join(scene.folder, 'platform', 'outbox')
  if (!existsSync(outbox)) return []
  return readdirSync(outbox)
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .map((name) => readFileSync(join(outbox, name), 'utf8'))
}

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

t.test('a stop does not wait for a mail server', { skip: onPostgres }, async (t) => {
  const sockets = new Set<Socket>()
  // An answer without an end: no timeout of the client ends it.
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.write('220 mail ready\r\n')
    const more = setInterval(() => socket.write('250-more\r\n'), 1000)
    socket.on('close', () => clearInterval(more))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const tasks = await startTasks(t, { mail: { smtp: `smtp://127.0.0.1:${port}` } })
  await tasks.post()
  await until('the mail server is asked', () => sockets.size === 1)
  await tasks.scene.restart({ mail: {} })
  for (const socket of sockets) await until('the connection is closed', () => socket.readableEnded || socket.destroyed)
  await until('the mail is written', () => mailsOf(tasks).length === 1)
  const mails = rowsOf(join(tasks.scene.folder, 'platform', 'platform.db'), 'SELECT attempts FROM mails')
  t.match(mails, [{ attempts: 0 }], 'it is no failure')
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
