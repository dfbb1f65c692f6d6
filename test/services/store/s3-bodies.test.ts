import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { silentLog } from '../../../services/log.js'
import { mustBeNew } from '../../../services/store/bodies.js'
import { S3Bodies } from '../../../services/store/s3-bodies.js'
import { type ClaimRecord, S3Claim } from '../../../services/store/s3-claim.js'
import type { S3Client } from '../../../services/store/s3-client.js'
import { BodyMemory } from '../../../services/store/s3-memory.js'
import { until } from '../../support/waiting.js'
import { clientOf, refuse } from './local-store.js'

const MiB = 1024 * 1024

/** A store that keeps what it gets, and answers 404 for all else, unless it is `answered` otherwise. */
function keeper(
  t: Test,
  answered: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<S3Client> {
  const kept = new Map<string, string>()
  return clientOf(t, async (request, response) => {
    if (answered(request, response)) return
    const path = request.url ?? ''
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.method === 'PUT') kept.set(path, body)
    const found = kept.get(path)
    response.writeHead(found === undefined ? 404 : 200, { etag: '"e"' }).end(found)
  })
}

function recordOf(owner: string, hasBodies: boolean): ClaimRecord & { run: string; orphansFrom: number } {
  return {
    owner,
    run: '',
    orphansFrom: 0,
    async read() {
      return { run: this.run, orphansFrom: this.orphansFrom }
    },
    hasBodies: async () => hasBodies,
    async claimed(run, was) {
      if (this.run !== was) return false
      this.run = run
      return true
    },
    async orphansBegin(now) {
      this.orphansFrom = now
    },
  }
}

t.test('who has claimed the folder', async (t) => {
  const client = await keeper(t)
  const claim = (record: ClaimRecord, orphanMs = 3_600_000) =>
    new S3Claim(client, record, { key: 'of/us', orphanMs, checkMs: 0 }, silentLog)
  await t.rejects(claim(recordOf('us', true)).mayRemove(), /elsewhere/, 'no marker, but bodies')
  const us = recordOf('us', false)
  const ours = claim(us)
  t.ok(await ours.mayRemove())
  const earlier = { ...us }
  const again = claim(us)
  t.ok(await again.mayRemove(), 'a restart takes nothing over')
  t.notOk(await ours.mayRemove(), 'but ends the claim of the run before')
  await t.rejects(ours.mayWrite(), /Another data folder uses/)

  const copy = { ...us, owner: 'copy' }
  t.notOk(await claim(copy).mayRemove(), 'a copy waits')
  t.not(copy.orphansFrom, 0)
  t.notOk(await claim(copy).mayRemove(), 'also after a restart')
  t.ok(await claim(copy, 0).mayRemove(), 'until bodies without a row are old')
  await ours.proven()
  t.notOk(await again.mayRemove(), 'and the original removes nothing')
  await t.rejects(again.mayWrite(), /Another data folder uses/)
  t.notOk(await claim(us).mayRemove(), 'also not when it takes the folder back')
  t.notOk(await claim(earlier).mayRemove(), 'nor does the same data folder as it was earlier')
})

t.test('a process that dies while it claims the folder ends the claim of no other', async (t) => {
  const client = await keeper(t)
  const claim = (record: ClaimRecord) =>
    new S3Claim(client, record, { key: 'of/us', orphanMs: 3_600_000, checkMs: 0 }, silentLog)
  const shared = { ...recordOf('us', false), alone: <T>(work: () => Promise<T>) => work() }
  const running = claim(shared)
  await running.mayWrite()
  for (const deadly of [1, 2]) {
    let calls = 0
    const dying: ClaimRecord = {
      ...shared,
      read: () => shared.read(),
      claimed: (run, was) => (++calls === deadly ? Promise.reject(new Error('dead')) : shared.claimed(run, was)),
    }
    await t.rejects(claim(dying).proven(), /dead/)
    t.ok(await running.mayRemove())
  }
  t.ok(await claim(shared).mayRemove(), 'the next one takes nothing over')
  t.ok(await running.mayRemove())
})

t.test('when there is too little room for all, some always get enough', async (t) => {
  const room = new BodyMemory(MiB, 60_000)
  const size = MiB / 4
  let held = 0
  let most = 0
  const upload = async (): Promise<void> => {
    const hold = await room.begin(size)
    for (let bytes = 64 * 1024; bytes <= size; bytes += 64 * 1024) {
      if (!hold.grow(bytes)) await hold.reserve(size)
      held += 64 * 1024
      most = Math.max(most, held)
      await setImmediate()
    }
    held -= size
    hold.end()
  }
  await Promise.all(Array.from({ length: 40 }, upload))
  t.ok(most <= MiB, `${most} bytes at most`)
  const whole = await room.begin(MiB)
  t.ok(whole.grow(MiB / 2), 'all was given back')
  await whole.reserve(MiB)
})

t.test('removals that wait are bounded, and the sweep follows', async (t) => {
  const held: ServerResponse[] = []
  let asked = 0
  let down = true
  let lists = 0
  const client = await keeper(t, ({ method, url = '' }, response) => {
    if (method === 'DELETE') {
      asked++
      if (down) held.push(response)
      else response.writeHead(204).end()
    } else if (url.includes('?')) {
      lists++
      response.end(url.includes('uploads') ? '<ListMultipartUploadsResult/>' : '<ListBucketResult/>')
    } else return false
    return true
  })
  const warnings: string[] = []
  const log = { ...silentLog, warn: (_: object, message: string) => warnings.push(message) }
  const claim = new S3Claim(client, recordOf('us', false), { key: 'of/us', orphanMs: 0, checkMs: 60_000 }, log)
  const bodies = new S3Bodies(client, claim, { folder: 'of/', roomBytes: MiB, maxWaitMs: 1, orphanMs: 0 }, log)
  await bodies.sweep(async (names) => new Set(names))
  t.equal(lists, 2)
  for (let n = 0; n < 10_100; n++) bodies.discard({ name: String(n).padStart(32, '0'), size: 1, mark: 'e 00000000' })
  await until('removals are under way', () => held.length === 8)
  down = false
  for (const response of held) refuse(response, 403, 'AccessDenied')
  await until('a sweep follows', () => lists === 4)
  t.ok(asked <= 10_008, `${asked} removals`)
  t.equal(warnings.length, 1, 'one line for all that fail together')
  await bodies.close()
})

t.test('a body that another process may have removed gets no row', async (t) => {
  const orphanMs = 3_600_000
  for (const size of [3, 20 * MiB]) {
    const client = await keeper(t, ({ method, url = '' }, response) => {
      if (method === 'POST' && url.includes('uploads'))
        response.end('<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>')
      else if (method === 'POST') response.end('<CompleteMultipartUploadResult/>')
      else if (method === 'HEAD') response.writeHead(200, { etag: '"e"', 'content-length': size }).end()
      else return false
      return true
    })
    const write = async (shared: boolean) => {
      const claim = new S3Claim(client, recordOf('us', false), { key: 'of/us', orphanMs, checkMs: 60_000 }, silentLog)
      const options = { folder: 'of/', roomBytes: 100 * MiB, maxWaitMs: 1, orphanMs, shared }
      const bodies = new S3Bodies(client, claim, options, silentLog)
      const body = await bodies.create('1'.padStart(32, '0'), size)
      for (let at = 0; at < size; at += MiB) if (!body.write(Buffer.alloc(Math.min(MiB, size - at)))) await body.ready()
      return body.finish()
    }
    t.equal((await write(false)).until, undefined, 'without others, it may take as long as it likes')
    const before = Date.now()
    const body = await write(true)
    const left = (body.until ?? 0) - before
    t.ok(left > orphanMs / 2 && left < orphanMs, `${size} bytes: ${left} ms`)
    mustBeNew(body)
    t.throws(() => mustBeNew({ ...body, until: Date.now() - 1 }), /stopped for too long/)
  }
})
