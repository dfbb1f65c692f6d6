import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isDiskFull } from '../../common/disk-reserve.js'
import { systemError, systemFailure } from '../../common/errors/system-errors.js'
import { makeFoldersSoon } from '../../common/files/private-file.js'
import { toS3Error } from '../../src/http/error-reply.js'
import { toPluginError } from '../../src/plugins/deadlines.js'
import { recordsFailed, stagingFailed } from '../../src/state/errors.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import type { Failing } from '../support/server/failing-files.js'
import { type Answer, send } from '../support/sign/send.js'

/** A failure of the operating system is the same error of S3 wherever a file is used, and passes with its cause. */

const expected = {
  ENOSPC: { status: 503, code: 'ServiceUnavailable', message: /no (space|room) left/ },
  EDQUOT: { status: 503, code: 'ServiceUnavailable', message: /no (space|room) left/ },
  EMFILE: { status: 503, code: 'SlowDown', message: /too many files and connections open/ },
  ENFILE: { status: 503, code: 'SlowDown', message: /too many files and connections open/ },
  EROFS: { status: 503, code: 'ServiceUnavailable', message: /read-only/ },
  EIO: { status: 500, code: 'InternalError', message: /disk/ },
} as const

const CODES = Object.keys(expected) as (keyof typeof expected)[]

t.test('the table', async (t) => {
  for (const code of CODES) {
    const error = Object.assign(new Error(`${code}: /secret/path`), { code })
    const { message: text, ...wanted } = expected[code]
    const causes = [error, new Error('wrapped', { cause: error })]
    const ofPlugin = (thrown: unknown) => toPluginError(thrown, 'keys', 'AddKey')
    const ways = [systemError, toS3Error, recordsFailed, stagingFailed, ofPlugin]
    for (const made of causes.flatMap((cause) => ways.map((way) => way(cause)))) {
      t.match(made, { ...wanted, message: text })
      t.notMatch(made?.message, /secret/, 'a path is for the log alone')
    }
  }
  for (const [errcode, name] of [
    [13, 'ENOSPC'],
    [4874, 'ENOSPC'],
    [10, 'EIO'],
    [266, 'EIO'],
    [8, 'EROFS'],
    [14, 'EMFILE'],
    [3082, 'ENOMEM'],
  ] as const) {
    const error = Object.assign(new Error('SQLite'), { code: 'ERR_SQLITE_ERROR', errcode })
    t.equal(systemFailure(error)?.name, name, `SQLite's ${errcode}`)
    t.equal(isDiskFull(error), name === 'ENOSPC')
  }
  for (const other of [new Error('x'), Object.assign(new Error('x'), { code: 'ENOENT' }), 'ENOSPC', undefined])
    t.equal(systemError(other), undefined)
  t.match(toS3Error(new Error('x')), { code: 'InternalError', status: 500 })
})

t.test('folders that several make at a time', async (t) => {
  const folder = temporaryFolder(t)
  const paths = ['', 'c', 'c/d', 'e', 'e/f/g'].map((name) => join(folder, 'a/b', name))
  for (let round = 0; round < 20; round++)
    await Promise.all([...paths, ...paths].map((path) => makeFoldersSoon(path.replace('/a/', `/a${round}/`))))
  writeFileSync(join(folder, 'file'), '')
  await t.rejects(makeFoldersSoon(join(folder, 'file')), { code: 'EEXIST' })
  await t.rejects(makeFoldersSoon(join(folder, 'file', 'below')), { code: 'ENOTDIR' })
})

const LARGE = bytes('large', 300_000)

interface Place {
  readonly calls: readonly string[]
  readonly path: string
  /** Default: all. */
  readonly codes?: readonly (keyof typeof expected)[]
  readonly ask: (server: Dealgate) => Promise<Answer>
}

const put = (key: string) => (server: Dealgate) =>
  send(server, { method: 'PUT', target: `/bucket/${key}`, body: LARGE })

/** A body has one of 256 folders, at random. A folder that stands already is used as it is. */
async function putIntoNewFolder(server: Dealgate): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await put('folder')(server)
    if (answer.status !== 200 || attempt === 10) return answer
  }
}

const get = (server: Dealgate) => send(server, { method: 'GET', target: '/bucket/kept' })

/** Each access of a file by a request: the part of the server, the call and the path. */
function placesOf(uploadId: string): Record<string, Place> {
  const part = { method: 'PUT', target: `/bucket/parts?partNumber=1&uploadId=${uploadId}`, body: LARGE }
  return {
    'body: its folder': { calls: ['mkdir'], path: '/objects/[0-9a-f]{2}$', ask: putIntoNewFolder },
    'body: its file': { calls: ['open'], path: '/objects/[0-9a-f]{2}/', ask: put('file') },
    'body: its bytes': { calls: ['write'], path: '/objects/[0-9a-f]{2}/', ask: put('bytes') },
    'body: made durable': { calls: ['sync'], path: '/objects/[0-9a-f]{2}/', ask: put('durable') },
    'body: opened': { calls: ['open'], path: '/objects/[0-9a-f]{2}/', ask: get },
    'upload: its folder': {
      calls: ['mkdir'],
      path: '/staging/',
      ask: (server) => send(server, { method: 'POST', target: '/bucket/new?uploads=' }),
    },
    'part: its file': { calls: ['open'], path: '/staging/.+/', ask: (server) => send(server, part) },
    'part: its bytes': { calls: ['write'], path: '/staging/.+/', ask: (server) => send(server, part) },
    'part: made durable': { calls: ['sync'], path: '/staging/.+/', ask: (server) => send(server, part) },
  }
}

async function fails(t: Test, server: Dealgate, place: Place, inject: (failing?: Failing) => void): Promise<void> {
  const { calls, path } = place
  for (const code of place.codes ?? CODES) {
    inject({ code, calls, path })
    const answer = await place.ask(server)
    inject()
    t.match(answer, expected[code], `${code}: ${answer.status} ${answer.code} ${answer.message}`)
  }
}

t.test('every access of a file by a request', { timeout: 600_000 }, async (t) => {
  const control = join(temporaryFolder(t), 'failing.json')
  const inject = (failing?: Failing) => writeFileSync(control, failing === undefined ? '' : JSON.stringify(failing))
  inject()
  const preload = import.meta.resolve('../support/server/failing-files.js')
  const env = { NODE_OPTIONS: `--import ${preload}`, FAILING_FILES: control }
  const server = await startDealgate(t, { env })
  t.equal((await send(server, { method: 'PUT', target: '/bucket' })).status, 200)
  t.equal((await put('kept')(server)).status, 200)
  const begun = await send(server, { method: 'POST', target: '/bucket/parts?uploads=' })
  const uploadId = /<UploadId>(.*?)</.exec(String(begun.body))?.[1] ?? ''
  for (const [name, place] of Object.entries(placesOf(uploadId)))
    await t.test(name, (t) => fails(t, server, place, inject))
  const part = { method: 'PUT', target: `/bucket/parts?partNumber=1&uploadId=${uploadId}`, body: LARGE }
  const etag = String((await send(server, part)).headers.etag)
  const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`
  const complete = () =>
    send(server, { method: 'POST', target: `/bucket/parts?uploadId=${uploadId}`, body: Buffer.from(list) })
  await t.test('part: opened for the object', (t) =>
    fails(t, server, { calls: ['open'], path: '/staging/.+/', ask: complete }, inject),
  )
  t.equal((await complete()).status, 200, 'the upload is what it was')
  for (const key of ['kept', 'parts'])
    t.same((await send(server, { method: 'GET', target: `/bucket/${key}` })).body, LARGE, 'nothing was lost')
  t.equal((await put('file')(server)).status, 200)
  t.match(server.log, /the process has all the files open that it may/, 'the log has a word for the operator')
})
