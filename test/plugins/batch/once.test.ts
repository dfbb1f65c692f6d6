import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { BatchOperation } from '../../../plugins/batch/order.js'
import type { BatchRun, Chunk } from '../../../plugins/batch/records.js'
import { taskKind } from '../../../plugins/batch/task-kinds.js'
import { workChunk } from '../../../plugins/batch/work.js'
import type { OwnRequest } from '../../../src/api/child-request.js'
import { batch, done, endpointOf, reaches } from '../../support/plugins/batch-scene.js'
import { startInProcess } from '../../support/server/in-process.js'

const copy = { name: 'Copy', targetBucket: 'others', targetPrefix: '', headers: {} } as const

const BEGUN = Date.parse('2030-01-01T00:00:10.500Z')

interface Before {
  /** When the server died that worked on the row. */
  readonly begun?: number
  /** The job is paused before its task. */
  readonly paused?: boolean
}

/**
 * Works on one row of a bucket whose object is of the given time, until it has a result, and tells the requests.
 * @param answer throws what a request is answered with
 */
async function work(
  operation: BatchOperation,
  modified: string | undefined,
  answer: (request: OwnRequest, times: number) => void,
  { begun, paused }: Before = {},
) {
  let chunk: Chunk = { epoch: 1, rows: [['things', 'a']], ...(begun !== undefined && { begun }) }
  const run = {
    ...{ id: 'j', epoch: 1, chunk: async () => chunk },
    put: async (_: number, put: Omit<Chunk, 'epoch'>) => {
      chunk = { ...put, epoch: 1 }
    },
  }
  const asked: OwnRequest[] = []
  let [checks, result] = [0, undefined as Awaited<ReturnType<typeof workChunk>> | undefined]
  const once = () =>
    workChunk(
      {
        // The only members that the work on a chunk has use for.
        run: run as unknown as BatchRun,
        kind: taskKind({ operation }),
        signal: new AbortController().signal,
        enter: async () => () => {},
        check: async () => {
          if (paused && checks++ === 0) throw new Error('Paused')
        },
        look: async () => {},
        now: () => BEGUN,
        show: () => {},
        send: async (request) => {
          asked.push(request)
          answer(request, asked.filter(({ method }) => method === request.method).length)
          if (request.method !== 'HEAD') return { status: 204, headers: {} }
          if (modified === undefined) throw new S3Error('NoSuchKey')
          return { status: 200, headers: { etag: '"e"', 'last-modified': modified } }
        },
      },
      0,
    )
  if (paused) await once().catch(() => {})
  while (typeof result !== 'object') result = await once()
  const writes = asked.flatMap(({ method, own }) => (method === 'PUT' ? [own?.writeId] : []))
  return {
    requests: asked.map(({ method }) => method),
    writes,
    headers: asked.at(-1)?.headers,
    result: chunk.results?.[0],
  }
}

const inDoubt = ({ method }: OwnRequest, times: number) => {
  if (method !== 'HEAD' && times === 1) throw new S3Error('ServiceUnavailable')
}

t.test('a task that was done, though the answer was lost, is not done again', async (t) => {
  t.match(await work({ name: 'Delete' }, undefined, inDoubt), { requests: ['DELETE', 'HEAD'], result: { ok: true } })
  const copied = await work(copy, 'Tue, 01 Jan 2030 00:00:11 GMT', inDoubt)
  t.match(copied, { requests: ['PUT', 'HEAD', 'PUT'], headers: { 'if-none-match': '*' }, result: { ok: true } })
  t.equal(new Set(copied.writes).size, 1, 'the gateway knows the write that it has')
  const itself = await work({ ...copy, targetBucket: 'things' }, undefined, inDoubt)
  t.match(itself, { requests: ['PUT', 'PUT'], headers: { 'if-none-match': undefined } })
})

t.test('a task that was never tried is done as it would have been at first, whatever has come before', async (t) => {
  const young = 'Tue, 01 Jan 2030 00:00:11 GMT'
  const isFirst = { requests: ['DELETE'], result: { ok: true, message: undefined } }
  t.match(await work({ name: 'Delete' }, young, () => {}, { paused: true }), isFirst)
  const afterDeath = await work({ name: 'Delete' }, young, () => {}, { paused: true, begun: BEGUN })
  t.match(afterDeath, { requests: ['HEAD'], result: { message: /put since/ } }, 'but the server had died before')
  const refused = await work(copy, young, (_, times) => {
    if (times === 1) throw new S3Error('SpendCapReached')
  })
  t.match(refused, { requests: ['PUT', 'PUT'], headers: { 'if-none-match': undefined }, result: { ok: true } })
})

t.test('a task whose key pair may not read what it writes is repeated, or says why it is not', async (t) => {
  const hidden = (request: OwnRequest, times: number) => {
    if (request.method === 'HEAD') throw new S3Error('AccessDenied')
    inDoubt(request, times)
  }
  const copied = await work(copy, undefined, hidden)
  t.match(copied, { requests: ['PUT', 'HEAD', 'PUT'], headers: { 'if-none-match': '*' }, result: { ok: true } })
  const deleted = await work({ name: 'Delete' }, undefined, hidden)
  t.match(deleted, { requests: ['DELETE', 'HEAD'], result: { code: 'AccessDenied', message: /may have deleted/ } })
})

t.test('what a client has put since the first attempt to delete stays', async (t) => {
  const at = (second: number) => new Date(Date.parse('2030-01-01') + second * 1000).toUTCString()
  const resumed = (modified: string) => work({ name: 'Delete' }, modified, () => {}, { begun: BEGUN })
  t.match(await resumed(at(11)), { requests: ['HEAD'], result: { ok: true, message: /put since/ } })
  t.match(await resumed(at(10)), { requests: ['HEAD'], result: { ok: false, code: 'OperationAborted' } })
  const old = await resumed(at(9))
  t.match(old, { requests: ['HEAD', 'DELETE'], headers: { 'if-match': '"e"' }, result: { ok: true } })
})

t.test('the target of a copy that a client has put since the first attempt stays, and the task fails', async (t) => {
  const modified = (second: number) => new Date(Date.parse('2030-01-01') + second * 1000).toUTCString()
  const refused = await work(
    copy,
    modified(11),
    ({ method }) => {
      if (method === 'PUT') throw new S3Error('PreconditionFailed')
    },
    { begun: BEGUN },
  )
  t.match(refused, { requests: ['HEAD', 'PUT'], result: { ok: false, code: 'OperationAborted' } })
  t.match(await work(copy, modified(1), () => {}, { begun: BEGUN }), {
    headers: { 'if-match': '"e"' },
    result: { ok: true },
  })
})

t.test('tags that a client changes meanwhile are not lost', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3 } = server
  const Bucket = 'things'
  await s3.createBucket({ Bucket })
  await s3.putObject({ Bucket, Key: 'a', Body: 'x', Tagging: 'a=1' })
  const manifest = await s3.putObject({ Bucket, Key: 'm', Body: 'things,a\n'.repeat(100) })
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket, Key: 'm', ETag: manifest.ETag }
  // Eight tasks of a job change the tags of the one object at the same time, and so do both jobs.
  const orders = ['b', 'c'].map((Key) => ({ Operation: 'Tag', Tag: { Tags: [{ Key, Value: '1' }] }, Manifest }))
  await Promise.all(orders.map((order) => done(endpointOf(server), order)))
  const { TagSet = [] } = await s3.getObjectTagging({ Bucket, Key: 'a' })
  t.same(TagSet.map(({ Key }) => Key).sort(), ['a', 'b', 'c'])
})

t.test('what has become another one since the listing stays', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3 } = server
  const Bucket = 'things'
  await s3.createBucket({ Bucket })
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  for (const Body of ['1', '2']) await s3.putObject({ Bucket, Key: 'a', Body })
  await s3.putObject({ Bucket, Key: 'b', Body: '1' })
  const old = { Operation: 'Delete', ConfirmationRequired: true, Filter: { Bucket, Versions: 'Noncurrent' } }
  const CreatedBefore = new Date().toISOString()
  const aged = { ...old, Filter: { Bucket, Prefixes: ['b'], CreatedBefore } }
  const at = endpointOf(server)
  await sleep(1000)
  const jobs = [await done(at, old, ['Suspended']), await done(at, aged, ['Suspended'])]
  const { Versions = [] } = await s3.listObjectVersions({ Bucket, Prefix: 'a' })
  await s3.deleteObject({ Bucket, Key: 'a', VersionId: Versions[0]?.VersionId })
  await s3.putObject({ Bucket, Key: 'b', Body: '2' })
  for (const { JobId } of jobs) {
    await batch(at, 'POST', `/${JobId}/run`)
    t.match(await reaches(at, JobId), { TotalNumberOfTasks: 1, Failures: [{ ErrorCode: 'PreconditionFailed' }] })
  }
  t.equal((await s3.getObject({ Bucket, Key: 'a' })).VersionId, Versions[1]?.VersionId)
  t.equal(await (await s3.getObject({ Bucket, Key: 'b' })).Body?.transformToString(), '2')
})
