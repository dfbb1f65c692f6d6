import t from 'tap'
import type { OwnRequest } from '../../../src/api/child-request.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import type { BatchOperation, FilterSource } from '../../../src/s3/batch/order.js'
import type { BatchRun, Chunk } from '../../../src/s3/batch/records.js'
import { taskKind } from '../../../src/s3/batch/task-kinds.js'
import { workChunk } from '../../../src/s3/batch/work.js'

const BEGUN = Date.parse('2030-01-01T00:00:10.500Z')

/** Works on one row of a bucket whose object is of the given time, and tells the requests. */
async function work(
  operation: BatchOperation,
  modified: string | undefined,
  answer: (request: OwnRequest, times: number) => void,
  begun?: number,
) {
  let chunk: Chunk = { epoch: 1, rows: [['things', 'a']], ...(begun !== undefined && { begun }) }
  const run = {
    ...{ id: 'j', epoch: 1, chunk: async () => chunk },
    put: async (_: number, put: Omit<Chunk, 'epoch'>) => {
      chunk = { ...put, epoch: 1 }
    },
  }
  const asked: OwnRequest[] = []
  await workChunk(
    {
      // The only members that the work on a chunk has use for.
      run: run as unknown as BatchRun,
      kind: taskKind({ operation }),
      signal: new AbortController().signal,
      check: async () => {},
      now: () => BEGUN,
      show: () => {},
      ask: async (request) => {
        asked.push(request)
        answer(request, asked.filter(({ method }) => method === request.method).length)
        if (request.method !== 'HEAD') return { status: 204, headers: {} }
        if (modified === undefined) throw new S3Error('NoSuchKey')
        return { status: 200, headers: { etag: '"e"', 'last-modified': modified } }
      },
    },
    0,
  )
  return { requests: asked.map(({ method }) => method), headers: asked.at(-1)?.headers, result: chunk.results?.[0] }
}

const inDoubt = ({ method }: OwnRequest, times: number) => {
  if (method !== 'HEAD' && times === 1) throw new S3Error('ServiceUnavailable')
}

t.test('a task that was done, though the answer was lost, is not done again', async (t) => {
  t.match(await work({ name: 'Delete' }, undefined, inDoubt), { requests: ['DELETE', 'HEAD'], result: { ok: true } })
  const copy = { name: 'Copy', targetBucket: 'others', targetPrefix: '', headers: {} } as const
  const copied = await work(copy, 'Tue, 01 Jan 2030 00:00:11 GMT', inDoubt)
  t.match(copied, { requests: ['PUT', 'HEAD', 'HEAD'], result: { ok: true } })
})

t.test('what a client has put since the first attempt to delete stays', async (t) => {
  const at = (second: number) => new Date(Date.parse('2030-01-01') + second * 1000).toUTCString()
  const resumed = (modified: string) => work({ name: 'Delete' }, modified, () => {}, BEGUN)
  t.match(await resumed(at(11)), { requests: ['HEAD'], result: { ok: true, message: /put since/ } })
  t.match(await resumed(at(10)), { requests: ['HEAD'], result: { ok: false, code: 'OperationAborted' } })
  const old = await resumed(at(9))
  t.match(old, { requests: ['HEAD', 'DELETE'], headers: { 'if-match': '"e"' }, result: { ok: true } })
})

t.test('a version that has become current since the listing of noncurrent ones stays', async (t) => {
  const filter = { versions: 'Noncurrent' } as FilterSource
  const { run } = taskKind({ operation: { name: 'Delete' }, filter })
  const removed: (string | undefined)[] = []
  const task = (versionId: string) =>
    run(
      { row: ['things', 'a b', versionId], token: 't' },
      async ({ method, query }) => {
        if (method === 'DELETE') removed.push(query?.versionId)
        const body = `<ListVersionsResult><Version><Key>a+b</Key><VersionId>v1</VersionId><IsLatest>true</IsLatest>
          </Version></ListVersionsResult>`
        return { status: 200, headers: {}, body }
      },
      new AbortController().signal,
    )
  await t.rejects(task('v1'), { code: 'PreconditionFailed' })
  await t.resolves(task('v0'))
  t.same(removed, ['v0'])
})
