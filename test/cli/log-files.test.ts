import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
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
