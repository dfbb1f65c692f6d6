import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants as fs, readFileSync, renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs } from '../support/server/child.js'
import { CLI, environment, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

// `dealgate serve --access-log-file --audit-log`: files of several processes, which a signal opens again.

function linesOf(path: string): string[] {
  return readFileSync(path, { encoding: 'utf8', flag: 'a+' }).split('\n').slice(0, -1)
}

t.test('all workers append to the files, and open them again at SIGUSR2', async (t) => {
  const folder = temporaryFolder(t)
  const [access, audit] = [join(folder, 'access.log'), join(folder, 'audit.log')]
  const files = ['--access-log-file', access, '--access-log-format', 's3', '--audit-log', audit]
  const server = await startDealgate(t, { args: ['--workers', '2', ...files] })
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const ask = (method: string, path: string) =>
    signedRequest(server.endpoint, keys, { method, path, headers: { connection: 'close' } })

  t.equal((await ask('PUT', '/audited')).status, 200)
  for (let n = 0; n < 8; n++) await ask('HEAD', '/audited')
  await until('nine requests are logged', () => linesOf(access).length === 9)
  for (const line of linesOf(access))
    t.match(line, /^- audited \[.*\] 127\.0\.0\.1 \S+ [0-9A-F]{16} REST\.(PUT|HEAD)\.BUCKET - "/)
  t.same(
    linesOf(audit).map((line) => JSON.parse(line).action),
    ['CreateBucket'],
  )

  for (const file of [access, audit]) renameSync(file, `${file}.1`)
  process.kill(server.pid, 'SIGUSR2')
  await until('both workers use the new files', async () => {
    const before = linesOf(access).length
    for (let n = 0; n < 4; n++) await ask('HEAD', '/audited')
    return linesOf(access).length >= before + 4
  })
  t.equal((await ask('DELETE', '/audited')).status, 204)
  t.match(linesOf(audit).at(-1), /"action":"DeleteBucket".*"outcome":"ok"/)
  t.equal(linesOf(`${audit}.1`).length, 1)
})

t.test('files that cannot be written, and the format of S3 without a file, are refused at the start', async (t) => {
  const start = ['serve', '--port', '0', '--gateway-port', '0', '--data', temporaryFolder(t)]
  const absent = await runCli([...start, '--audit-log', join(temporaryFolder(t), 'none/audit.log')])
  t.equal(absent.code, 1)
  t.match(absent.stderr, /Cannot write to the file of --audit-log: ENOENT/)
  t.match(
    (await runCli([...start, '--access-log-format', 's3'])).stderr,
    /--access-log-format s3 needs --access-log-file/,
  )
})

const isLinux = process.platform === 'linux'
t.test('SIGUSR2 before the files are open does not end the server', { skip: !isLinux && 'needs Linux' }, async (t) => {
  const folder = temporaryFolder(t)
  const access = join(folder, 'access.log')
  // The start waits here until someone reads.
  execFileSync('mkfifo', [access])
  const start = ['serve', '--port', '0', '--gateway-port', '0', '--data', join(folder, 'data')]
  const server = spawn(process.execPath, [...CLI, ...start, '--access-log-file', access], {
    env: environment({ DEALGATE_PLATFORM_PORT: '0', DEALGATE_PAYMENT_PORT: '0' }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endsWithUs(server)
  const exit = once(server, 'exit')
  await until('the signal is caught', () => catches(server.pid ?? 0, 'SIGUSR2'))
  server.kill('SIGUSR2')
  // A server that has ended opens nothing: without the flag, this would wait for it.
  const reader = await open(access, fs.O_RDONLY | fs.O_NONBLOCK)
  await Promise.race([once(server.stdout, 'data'), exit])
  server.kill('SIGTERM')
  t.same(await exit, [0, null])
  await reader.close()
})

/** https://man7.org/linux/man-pages/man5/proc_pid_status.5.html */
function catches(pid: number, signal: NodeJS.Signals): boolean {
  const [, caught = '0'] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return ((BigInt(`0x${caught}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n
}
