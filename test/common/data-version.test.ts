import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bringUpToDate, DataVersionError, requireUsableVersion } from '../../common/files/data-version.js'
import { lockFile } from '../../common/files/lock-file.js'
import { makePrivateDatabase } from '../../common/files/private-file.js'
import { lockShared } from '../../common/files/shared-lock.js'
import { startServices } from '../../services/index.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'

const versionOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'version.json'), 'utf8')).version
const setVersion = (folder: string, version: number) =>
  writeFileSync(join(folder, 'version.json'), JSON.stringify({ version, dealgate: '9.8.7' }))

t.test('each step runs once, in order, and again if it was interrupted', async (t) => {
  const folder = temporaryFolder(t)
  const ran: number[] = []
  const upgrades = [1, 2, 3].map((version) => () => void ran.push(version))
  bringUpToDate(folder, upgrades.slice(0, 1))
  t.equal(versionOf(folder), 1)
  const failing = () => {
    throw new Error('power failure')
  }
  t.throws(() => bringUpToDate(folder, [...upgrades.slice(0, 2), failing]), /power failure/)
  t.equal(versionOf(folder), 2)
  bringUpToDate(folder, upgrades)
  bringUpToDate(folder, upgrades)
  t.same(ran, [1, 2, 3])
  t.equal(versionOf(folder), 3)
})

t.test('the first of those that share a folder brings it up to date, alone', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'lock')
  makePrivateDatabase(file)
  const ends = [lockShared(file, folder), lockShared(file, folder)]
  const current = versionOf(folder)
  t.notOk(lockFile(file), 'none has it for itself beside them')
  setVersion(folder, current - 1)
  t.notOk(lockShared(file, folder), 'nor brings it up to date meanwhile')
  for (const end of ends) end?.()
  lockShared(file, folder)?.()
  t.equal(versionOf(folder), current)
  setVersion(folder, current + 1)
  t.throws(() => lockShared(file, folder), DataVersionError)
  const alone = lockFile(file)
  t.ok(alone, 'a refused one has left no lock')
  t.notOk(lockFile(file, 'shared'))
  alone?.()
})

t.test('a folder of a later version and a damaged version are refused and stay as they are', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'version.json')
  for (const text of [
    '{"version":99,"dealgate":"9.8.7"}',
    '{"version":-1,"dealgate":"1"}',
    '',
    '[]',
    '{"version":"1"}',
  ]) {
    writeFileSync(file, text)
    t.throws(() => bringUpToDate(folder), DataVersionError)
    t.throws(() => requireUsableVersion(folder), DataVersionError)
    t.equal(readFileSync(file, 'utf8'), text)
  }
})

t.test('a server and the commands refuse the data folder of a later version', async (t) => {
  const server = await startDealgate(t)
  const current = versionOf(server.data)
  t.equal(versionOf(join(server.data, 'services')), current)
  await server.stop()
  const refused = new RegExp(
    `data folder .* has version ${current + 1}, written by dealgate 9\\.8\\.7; this is dealgate \\S+, which can use version ${current}`,
  )
  const ports = ['--port', '0', '--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
  const run = (...args: string[]) => runCli([...args, '--data', server.data])
  setVersion(join(server.data, 'services'), current + 1)
  const listed = await run('account', 'list')
  t.equal(listed.code, 1)
  t.match(listed.stderr, refused)
  await t.rejects(
    startServices({
      data: join(server.data, 'services'),
      gateway: { host: '127.0.0.1', port: 0, accessKey: 'access', secretKey: 'secret-key' },
    }),
    { code: 'DATA_VERSION' },
  )
  setVersion(join(server.data, 'services'), current)
  setVersion(server.data, current + 1)
  for (const args of [
    ['serve', ...ports],
    ['serve', '--workers', '2', ...ports],
    ['doctor', '--port', '0'],
  ]) {
    const { code, stderr, stdout } = await run(...args)
    t.equal(code, 1, args.join(' '))
    t.match(stderr + stdout, refused, args.join(' '))
  }
  setVersion(server.data, current)
  await server.start()
})
