import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'

/** Everything below the data folder is readable by the account of the server alone. */

/** Files and folders that others than the owner may do anything with. */
function loose(data: string): string[] {
  return readdirSync(data, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o077) !== 0)
    .map((path) => relative(data, path))
}

t.test('files and folders are made for the owner alone, also under a loose umask', async (t) => {
  const umask = process.umask(0)
  t.teardown(() => process.umask(umask))
  const server = await startDealgate(t)
  const { data } = server
  const ask = (method: string, target: string, body?: string) =>
    send(server, { method, target, ...(body !== undefined && { body: Buffer.from(body) }) })
  t.equal((await ask('PUT', '/photos')).status, 200)
  t.equal((await ask('PUT', '/photos/small', 'x')).status, 200)
  t.equal((await ask('PUT', '/photos/large', 'x'.repeat(300_000))).status, 200)
  const { body } = await ask('POST', '/photos/parts?uploads')
  const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(body.toString())?.[1]
  t.equal((await ask('PUT', `/photos/parts?partNumber=1&uploadId=${uploadId}`, 'x'.repeat(300_000))).status, 200)
  const terms = '{"MinerId":"t01000","Price":"0.0000000005","DurationEpochs":518400}'
  t.equal((await ask('POST', '/photos/large?x-deal=', terms)).status, 200)
  const files = readdirSync(data, { recursive: true }).map(String)
  for (const kind of [/records\.sqlite$/, /-wal$/, /-shm$/, /objects\/.+/, /staging\/.+/, /\.car$/, /index\.db$/]) {
    t.ok(
      files.some((file) => kind.test(file)),
      `there is a file such as ${kind}`,
    )
  }
  t.same(loose(data), [])

  await server.stop()
  // As an earlier version left them.
  const left = readdirSync(data, { recursive: true, withFileTypes: true })
  for (const entry of left) {
    const folder = entry.name === 'staging' ? entry.parentPath === data : /^(state|spool|gateway)$/.test(entry.name)
    if (folder || /\.(sqlite|db)|^lock/.test(entry.name))
      chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644)
  }
  t.ok(loose(data).length >= 6, loose(data).join())
  await server.start()
  t.equal((await ask('GET', '/photos')).status, 200)
  t.same(loose(data), [], 'what was left open is closed at the next start')
})
