import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { bytes, hashTree, KiB, MiB, sha256, sha256OfFile, writeTree } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { findBuilt, findClient, run, runFailing } from '../../support/programs/run.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'

// Clients that the other tests do not use, at their defaults: a short round each. `.ci/run` installs them.

const CLIENTS = resolve('.ci/clients/bin')
const server = await startDealgate(t)
// restic removes what its prune finds: at a gateway without the embedded one's features, too.
const legacy = await startDealgate(t, { mode: 'legacy' })
await t.test('s5cmd', (t) => s5cmd(t, server))
await t.test('boto3', (t) => python(t, server, 'boto3', server.endpoint))
await t.test('boto3, version 2', (t) => python(t, server, 'boto3', server.endpoint, 'boto3_version2'))
await t.test('boto3, inventories', (t) => python(t, server, 'boto3', server.endpoint, 'boto3_inventory'))
await t.test('minio-py', (t) => python(t, server, 'minio', `127.0.0.1:${server.port}`))
await t.test('restic', (t) => restic(t, server))
await t.test('restic, legacy', (t) => restic(t, legacy))

async function s5cmd(t: Test, server: Dealgate): Promise<void> {
  const program = join(CLIENTS, 's5cmd')
  if (!(await findBuilt(t, 's5cmd (.ci/run)', program))) return
  const cwd = temporaryFolder(t)
  const options = { cwd, env: { ...environment(server), HOME: cwd } }
  const call = async (...args: string[]) =>
    (await run(program, ['--endpoint-url', server.endpoint, ...args], options)).toString('utf8')
  const bucket = 's3://s5cmd-matrix'
  const data = bytes('s5cmd', 300 * KiB)
  await writeFile(join(cwd, 'a+b c'), data)
  await writeFile(join(cwd, 'large'), bytes('large', 12 * MiB))

  await call('mb', bucket)
  await call('cp', 'a+b c', `${bucket}/one/a+b c`)
  await call('cp', '--part-size', '5', 'large', `${bucket}/large`)
  await call('cp', `${bucket}/large`, 'large.down')
  t.equal(await sha256OfFile(join(cwd, 'large.down')), sha256(bytes('large', 12 * MiB)))
  await call('cp', `${bucket}/one/a+b c`, `${bucket}/two/a+b c`)
  await call('cp', `${bucket}/two/a+b c`, 'down')
  t.equal(await sha256OfFile(join(cwd, 'down')), sha256(data), 'it is copied on the server')
  t.match(await call('ls', `${bucket}/*`), /12582912 +large\n.*307200 +one\/a\+b c\n.*307200 +two\/a\+b c\n/s)
  t.match(
    await runFailing(program, ['--endpoint-url', server.endpoint, 'cat', `${bucket}/absent`], options),
    'not found',
  )
  await call('rm', `${bucket}/*`)
  await call('rb', bucket)
}

async function python(
  t: Test,
  server: Dealgate,
  name: string,
  address: string,
  file = `${name}_matrix`,
): Promise<void> {
  const program = join(CLIENTS, 'python3')
  if (!(await findBuilt(t, `${name} (.ci/run)`, program))) return
  const script = resolve('test/clients/further', `${file}.py`)
  const cwd = temporaryFolder(t)
  await run(program, [script, address], { cwd, env: { ...environment(server), HOME: cwd } })
  t.pass(`${file} finds everything as it should be`)
}

async function filesOf(server: Dealgate): Promise<string[]> {
  const { body } = await send(server, { method: 'GET', target: '/restic-matrix?list-type=2' })
  return [...body.toString().matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => `/restic-matrix/${key}`)
}

async function restic(t: Test, server: Dealgate): Promise<void> {
  const program = await findClient(t, 'restic')
  if (!program) return
  const home = temporaryFolder(t)
  const from = join(home, 'from')
  await mkdir(from)
  await writeTree(from, {
    'a/small': bytes('small', 10 * KiB),
    'large ü': bytes('large', 20 * MiB),
    empty: bytes('', 0),
  })
  const repository = {
    RESTIC_REPOSITORY: `s3:${server.endpoint}/restic-matrix/repository`,
    RESTIC_PASSWORD: 'password',
  }
  const options = { cwd: home, env: { ...environment(server), ...repository, HOME: home } }
  const call = (...args: string[]) => run(program, args, options)
  await call('init')
  await call('backup', 'from')
  await writeFile(join(from, 'later'), 'a second snapshot')
  await call('backup', 'from')
  await call('check', '--read-data')
  await call('forget', '--keep-last', '1', '--prune')
  await call('restore', 'latest', '--target', join(home, 'to'))
  t.same(await hashTree(join(home, 'to', 'from')), await hashTree(from))
  const snapshots = (await filesOf(server)).filter((target) => target.includes('/snapshots/'))
  t.equal(snapshots.length, 1, 'the first snapshot is gone')
}

function environment({ accessKey, secretKey, region }: Dealgate): Record<string, string> {
  return {
    ...{ AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey, AWS_REGION: region },
    AWS_EC2_METADATA_DISABLED: 'true',
  }
}
