import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs, { copyFileSync, mkdirSync, promises, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { type FromServer, unpacked } from '../../../common/port-messages.js'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import { indexSchema } from '../../../services/gateway/index-schema.js'
import { type OpenedReads, openReads } from '../../../services/gateway/reads.js'
import { silentLog } from '../../../services/log.js'
import { openSqlite } from '../../../services/store/sqlite.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { isInstalled, missing } from '../../support/programs/run.js'
import { onPostgres } from '../engine.js'
import { inProcess } from './child.js'
import type { Client } from './client.js'

// The gateway runs in another process, and this one reads its folder.

const skip = onPostgres && 'reads beside the gateway need SQLite'
const BUCKET = 'bucket'

interface Read {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** False where the answer was cut short. */
  readonly complete: boolean
}

/** Asks as the client of the gateway does, and grants what it wants at once. */
async function ask(reads: OpenedReads, method: string, path: string, token: string, body?: object): Promise<Read> {
  const bytes = body && Buffer.from(JSON.stringify(body))
  if (!reads.takes(method, path, bytes)) throw new Error(`It does not take ${method} ${path}.`)
  const headers = { authorization: `Bearer ${token}`, ...(bytes && { 'content-type': 'application/json' }) }
  return new Promise((resolve) => {
    let head: Omit<Read, 'body' | 'complete'> | undefined
    const parts: Buffer[] = []
    const end = (complete: boolean) =>
      resolve({ ...(head ?? { status: 0, headers: {} }), body: Buffer.concat(parts), complete })
    const take = ([, what, list, whole]: FromServer) => {
      if (typeof what === 'number') {
        const pairs = (list as readonly (string | number)[]).map(String)
        const named = pairs.flatMap((name, n) => (n % 2 === 0 ? [[name.toLowerCase(), pairs[n + 1] ?? '']] : []))
        head = { status: what, headers: Object.fromEntries(named) }
        if (whole === undefined) return
        parts.push(unpacked(whole))
        end(true)
      } else if (typeof what === 'boolean') end(what)
      else if (what !== null) {
        parts.push(Buffer.from(what))
        running.granted(what.length)
      }
    }
    const running = reads.begin(bytes ? [1, method, path, headers, bytes] : [1, method, path, headers], take)
  })
}

const get = (reads: OpenedReads, client: Client, key: string, method = 'GET') =>
  ask(reads, method, `/gateway/download/${BUCKET}/${key}`, client.token ?? '')

const call = async (reads: OpenedReads, client: Client, method: string, params: object) => {
  const { body } = await ask(reads, 'POST', '/gateway/webrpc', client.token ?? '', {
    ...{ jsonrpc: '2.0', id: 1 },
    ...{ method: `web.${method}`, params: { bucketName: BUCKET, prefix: '', delimiter: '', maxKeys: 10, ...params } },
  })
  return JSON.parse(body.toString()).result
}

async function scene(t: Test) {
  const data = temporaryFolder(t)
  const { child, client } = await inProcess(t, data)
  await client.call('MakeBucket', { bucketName: BUCKET })
  const reads = openReads(data, { log: silentLog })
  t.teardown(() => reads.close())
  return { data, child, client, reads, index: join(data, 'gateway', 'index.db') }
}

t.test('what another process has acknowledged is read at once', { skip }, async (t) => {
  const { client, reads } = await scene(t)
  for (let n = 0; n < 60; n++) {
    const body = randomBytes(n % 3 === 0 ? 100_000 : 100)
    await client.put(BUCKET, 'key', body)
    t.same((await get(reads, client, 'key')).body, body)
    t.match((await get(reads, client, 'key', 'HEAD')).headers, { 'content-length': String(body.length) })
    t.match((await call(reads, client, 'ListObjects', {})).objects, [{ name: 'key', size: body.length }])
    await client.call('RemoveObject', { bucketName: BUCKET, objects: ['key'] })
    t.equal((await get(reads, client, 'key')).status, 404)
    t.same((await call(reads, client, 'ListObjects', {})).objects, [])
  }
  await client.call('SetBucketVersioning', { bucketName: BUCKET, status: 'Enabled' })
  t.match(await call(reads, client, 'BucketVersioning', {}), { status: 'Enabled' }, 'rows of buckets are not stale')
  for (const body of ['one', 'two']) await client.put(BUCKET, 'key', Buffer.from(body))
  t.match((await call(reads, client, 'ListObjectVersions', { keyMarker: '' })).versions, [{ size: 3 }, { size: 3 }])
})

t.test('keys that have changed are refused at once, and what is no read is not taken', { skip }, async (t) => {
  const { data, client, reads } = await scene(t)
  await client.put(BUCKET, 'key', Buffer.from('body'))
  t.equal((await get(reads, client, 'key')).status, 200)
  const registry = await openAccountRegistry(data)
  t.teardown(() => registry.close())
  const [account] = await registry.all()
  await registry.rotate(account?.accessKey ?? '')
  t.equal((await get(reads, client, 'key')).status, 401)
  const rpc = (method: string) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} }))
  for (const [method, path, body] of [
    ['PUT', '/gateway/upload/bucket/key', undefined],
    ['GET', '/gateway/retrieve/bucket/key', undefined],
    ['GET', '/bucket/key', undefined],
    ['POST', '/gateway/deal/bucket/key', undefined],
    ['POST', '/gateway/webrpc', rpc('web.RemoveObject')],
    ['POST', '/gateway/webrpc', rpc('web.Login')],
    ['POST', '/gateway/webrpc', Buffer.from('{')],
    ['POST', '/gateway/webrpc', Buffer.concat([rpc('web.ListBuckets'), Buffer.alloc(20_000, ' ')])],
  ] as const)
    t.notOk(reads.takes(method, path, body), `${method} ${path} ${body?.toString('latin1', 0, 80)}`)
  t.ok(reads.takes('POST', '/gateway/webrpc', rpc('web.ListBuckets')))
})

t.test('a body that is replaced between its row and its file is looked up again', { skip }, async (t) => {
  const { data, client, reads } = await scene(t)
  const files = () => readdirSync(join(data, 'gateway', 'objects'), { recursive: true, encoding: 'utf8' })
  const [first, second] = [randomBytes(100_000), randomBytes(100_000)]
  await client.put(BUCKET, 'key', first)
  const { open } = promises
  let replaced = 0
  promises.open = async (path, ...rest) => {
    if (String(path).includes('objects') && replaced++ === 0) {
      await client.put(BUCKET, 'key', second)
      const name = String(path).slice(-32)
      while (files().some((file) => file.endsWith(name))) await new Promise((resolve) => setImmediate(resolve))
    }
    return open.call(promises, path, ...rest)
  }
  syncBuiltinESMExports()
  t.teardown(() => {
    promises.open = open
    syncBuiltinESMExports()
  })
  const { status, body } = await get(reads, client, 'key')
  t.equal(status, 200)
  t.ok(body.equals(second))
  t.equal(replaced, 2, 'the file of the first row was gone')
})

t.test('a body that has changed is not sent, and is counted', { skip }, async (t) => {
  const { data, client, reads } = await scene(t)
  await client.put(BUCKET, 'key', randomBytes(1_000_000))
  const objects = join(data, 'gateway', 'objects')
  const [file = ''] = readdirSync(objects, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('/'))
  const bytes = readFileSync(join(objects, file))
  const damage = (at: number) => {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
    writeFileSync(join(objects, file), changed)
  }
  damage(10)
  t.match(await get(reads, client, 'key'), { status: 500, headers: { 'x-cloud-error-code': 'BodyChanged' } })
  damage(900_000)
  const cut = await get(reads, client, 'key')
  t.match(cut, { status: 200, complete: false })
  t.ok(cut.body.length < bytes.length && bytes.subarray(0, cut.body.length).equals(cut.body), 'only what was stored')
  const damaged = (await reads.metrics()).find(({ name }) => name === 'dealgate_damaged_bodies_total')
  t.match(damaged?.values, [
    { labels: { damage: 'changed' }, value: 2 },
    { labels: { damage: 'lost' }, value: 0 },
  ])
})

t.test('a body that the index has lost is counted as lost', { skip }, async (t) => {
  const { client, reads, index } = await scene(t)
  await client.put(BUCKET, 'key', randomBytes(100))
  const db = new DatabaseSync(index)
  db.exec('DELETE FROM bodies')
  db.close()
  t.match(await get(reads, client, 'key'), { status: 500, headers: { 'x-cloud-error-code': 'BodyLost' } })
  const damaged = (await reads.metrics()).find(({ name }) => name === 'dealgate_damaged_bodies_total')
  t.match(damaged?.values, [
    { labels: { damage: 'changed' }, value: 0 },
    { labels: { damage: 'lost' }, value: 1 },
  ])
})

t.test('a listing of versions with many common prefixes lets others have their turns', { skip }, async (t) => {
  const { client, reads } = await scene(t)
  const folders = Array.from({ length: 200 }, (_, n) => `folder ${n}`)
  for (const folder of folders) await client.put(BUCKET, `${folder}/key`, randomBytes(10))
  const turnsOf = async (delimiter: string): Promise<number> => {
    let underway = true
    let turns = 0
    const turn = () => {
      if (!underway) return
      turns++
      setImmediate(turn)
    }
    setImmediate(turn)
    const { versions } = await call(reads, client, 'ListObjectVersions', { delimiter, keyMarker: '', maxKeys: 1000 })
    underway = false
    t.equal(versions.length, folders.length)
    return turns
  }
  await turnsOf('')
  const [inOneStatement, grouped] = [await turnsOf(''), await turnsOf('/')]
  t.ok(grouped >= inOneStatement + 8, `${grouped} turns, and ${inOneStatement} where one statement has all`)
})

t.test('a read holds nothing that a checkpoint would wait for', { skip }, async (t) => {
  const { client, reads, index } = await scene(t)
  for (let n = 0; n < 20; n++) await client.put(BUCKET, `key ${n}`, randomBytes(n === 0 ? 1_000_000 : 1000))
  const underway: Promise<Read>[] = [get(reads, client, 'key%200')]
  for (let n = 0; n < 20; n++) {
    underway.push(get(reads, client, `key%20${n}`))
    await call(reads, client, 'ListObjects', { maxKeys: 5 })
  }
  const db = new DatabaseSync(index)
  try {
    t.match(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get(), { busy: 0 })
  } finally {
    db.close()
  }
  t.equal(statSync(`${index}-wal`).size, 0)
  t.ok((await Promise.all(underway)).every(({ complete }) => complete))
})

const untraced = skip || (!isInstalled('strace') && missing('strace is not installed'))

t.test('what the disk has not confirmed is not visible', { skip: untraced }, async (t) => {
  const { child, client, reads, index } = await scene(t)
  await client.put(BUCKET, 'key', Buffer.from('kept'))
  const failing = ['-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:error=EIO', '-P', `${index}-wal`]
  const strace = spawn('strace', ['-f', '-p', String(child.pid), ...failing], { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => strace.kill())
  let told = ''
  strace.stderr.on('data', (chunk) => {
    told += chunk
  })
  while (!/attached/.test(told)) {
    if (strace.exitCode !== null) {
      t.comment(missing(`strace may not look: ${told}`))
      return
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { status } = await client.put(BUCKET, 'key', Buffer.from('lost'))
  t.ok(status >= 500, `${status}`)
  t.match(told, /f(data)?sync.*EIO.*INJECTED/, 'the commit got as far as its sync')
  t.equal((await get(reads, client, 'key')).body.toString(), 'kept')
  strace.kill('SIGINT')
  await once(strace, 'exit')
  t.equal((await client.put(BUCKET, 'key', Buffer.from('next'))).status, 200)
  t.equal((await get(reads, client, 'key')).body.toString(), 'next')
})

t.test('a start syncs the log that a kill has left before anything reads it', { skip }, async (t) => {
  const { child, client, data } = await scene(t)
  await client.put(BUCKET, 'key', Buffer.from('body'))
  child.kill('SIGKILL')
  await once(child, 'exit')
  const left = join(temporaryFolder(t), 'left')
  mkdirSync(left)
  for (const name of ['index.db', 'index.db-wal']) copyFileSync(join(data, 'gateway', name), join(left, name))
  const { ino } = statSync(join(left, 'index.db-wal'))
  const { fsyncSync } = fs
  let synced = 0
  fs.fsyncSync = (fd) => {
    if (fs.fstatSync(fd).ino === ino) synced++
    fsyncSync(fd)
  }
  syncBuiltinESMExports()
  t.teardown(() => {
    fs.fsyncSync = fsyncSync
    syncBuiltinESMExports()
  })
  const db = openSqlite(join(left, 'index.db'), indexSchema)
  t.equal(synced, 1)
  t.ok(await db.read.buckets.find(BUCKET))
  await db.close()
})
