import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { logText } from '../../common/log.js'
import { bytes, KiB } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs } from '../support/server/child.js'
import { CLI, environment, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { type AtTerminal, atTerminal, withoutTerminal as skip, untilShown } from './terminal.js'

const PORTS = ['--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
/** A line of the log for people. */
const TEXT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO |WARN |ERROR) \S/
/** Removes what stands right of the cursor. */
const CLEARED = '\u001b[K'
/** A variable that no option has: each start warns of it. */
const ODD = { DEALGATE_LOG_LEVLE: 'debug' }

t.test('serve at a terminal logs text, and no line of it stands in the start message', { skip }, async (t) => {
  for (const workers of ['1', '2']) {
    const data = join(temporaryFolder(t), 'data')
    const args = ['serve', '--port', '0', ...PORTS, '--workers', workers, '--data', data]
    const server = atTerminal(t, args, { env: ODD })
    await untilShown(server, 'Stop with Ctrl-C')
    const [, endpoint] = /endpoint +(http\S+)/.exec(server.shown) ?? []
    t.equal((await fetch(`${endpoint}/-/live`)).status, 200)
    await untilShown(server, / INFO {2}access .*operation=Live .*status=200 /)
    process.kill(server.pid, 'SIGINT')
    t.equal(await server.ended, 0)
    const lines = linesOf(server)
    const begin = lines.indexOf('dealgate is ready.')
    const end = lines.indexOf('Stop with Ctrl-C.')
    t.notOk(
      lines.slice(begin, end).some((line) => TEXT.test(line) || line.startsWith('{')),
      'the start message is whole',
    )
    t.ok(end > begin && begin >= 0)
    const logged = [...lines.slice(0, begin), ...lines.slice(end + 1)].filter((line) => line !== '')
    t.same(
      logged.filter((line) => !TEXT.test(line) && !line.startsWith('    ')),
      [],
      'all else is lines of the log',
    )
    t.match(server.shown, / WARN {2}The variable DEALGATE_LOG_LEVLE/)
    t.match(server.shown, / INFO {2}shutting down signal=SIGINT\r\n/)
    t.notMatch(server.shown, '\u001b')
  }
})
t.test('a log without a terminal is JSON, and text if told so', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  for (const [format, line] of [
    ['auto', /^\{"level":40,"time":"[^"]+","msg":"The variable DEALGATE_LOG_LEVLE/m],
    ['text', /^\S+Z WARN {2}The variable DEALGATE_LOG_LEVLE/m],
  ] as const) {
    const args = [...CLI, 'services', ...PORTS, '--data', data, '--log-format', format]
    const child = spawn(process.execPath, args, { env: environment(ODD), stdio: 'pipe' })
    endsWithUs(child)
    let log = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
    const closed = new Promise((resolve) => child.once('close', resolve))
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('Stop with Ctrl-C')) child.kill('SIGTERM')
    })
    t.equal(await closed, 0)
    t.match(log, line)
  }
})

t.test('backup, restore and doctor show their progress at a terminal alone', { skip }, async (t) => {
  const server = await startDealgate(t)
  t.equal((await send(server, { method: 'PUT', target: '/photos' })).status, 200)
  const body = bytes('a photo', 300 * KiB)
  t.equal((await send(server, { method: 'PUT', target: '/photos/a', body })).status, 200)
  const folder = temporaryFolder(t)
  const [backups, data, output] = [join(folder, 'backups'), join(folder, 'data'), join(folder, 'output')]
  const commands: readonly { args: readonly string[]; progress: RegExp; result: RegExp }[] = [
    {
      args: ['backup', backups, '--data', server.data],
      progress: /^copied \d+ of \d+ changed files, read [\d.]+ (bytes|KiB)$/,
      result: /^backup .*\nfiles /,
    },
    {
      args: ['restore', backups, '--data', data],
      progress: /^restored \S+ \S+ of [\d.]+ [KM]iB, \d+ %$/,
      result: /^backup .*\nfiles /,
    },
    { args: ['doctor', '--data', server.data], progress: /^checking: Node$/, result: /^ok +options\nok +Node: / },
  ]
  for (const { args, progress, result } of commands) {
    const name = args.slice(0, 2).join(' ')
    // `restore` fills an empty folder only.
    const again = args.map((arg) => (arg === data ? `${data}-again` : arg))
    t.match(await runCli(again), { code: 0, stderr: '', stdout: result }, `${name} without a terminal`)
    const terminal = atTerminal(t, args, { redirect: `>'${output}'` })
    t.equal(await terminal.ended, 0, name)
    const [, first = '', ...more] = terminal.shown.replace(/^pid=.*\r\n/, '').split('\r')
    t.ok(first.endsWith(CLEARED), name)
    t.match(first.slice(0, -CLEARED.length), progress, name)
    t.equal(more.at(-1), CLEARED, 'the line is gone at the end')
    t.match(readFileSync(output, 'utf8'), result)
    t.notMatch(readFileSync(output, 'utf8'), '\u001b')
  }
})

t.test('fields, errors and hostile texts in a line for people', async (t) => {
  const line = { level: 50, time: '2026-01-02T03:04:05.678Z', worker: 2 }
  const err = { type: 'Error', message: 'no room', stack: 'Error: no room\n    at write (a.js:1:2)', code: 'ENOSPC' }
  t.equal(
    logText(`${JSON.stringify({ ...line, err, key: 'a b', path: '/a', list: [1], none: null, msg: 'it failed' })}\n`),
    '2026-01-02T03:04:05.678Z ERROR it failed worker=2 err.code=ENOSPC key="a b" path=/a list=[1] none=null\n' +
      '    Error: no room\n        at write (a.js:1:2)\n',
  )
  const hostile = { level: 30, time: line.time, 'na\nme': '\u001b[2J\u009b\u202eb', msg: 'a\r\nb\u001b' }
  t.equal(
    logText(JSON.stringify(hostile)),
    `${line.time} INFO  a\\u000d\\u000ab\\u001b na\\u000ame="\\u001b[2J\\u009b\\u202eb"\n`,
  )
})

function linesOf({ shown }: AtTerminal): string[] {
  return shown.replace(/^pid=.*\r\n/, '').split('\r\n')
}
