import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { bytes, md5 } from '../support/content/content.js'
import { Between, type Fate, type Passed } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { startDealgate } from '../support/server/dealgate.js'
import { type Mode, modes } from '../support/server/modes.js'
import { send, targetOf } from '../support/sign/send.js'

/** What a server between says in the gateway's place takes nothing away of what the gateway has stored. */

const BUCKET = 'unconfirmed'
const PAGE: Fate = { status: 200, type: 'text/html', body: '<!doctype html><title>Login</title>' }
const PATIENCE_MS = 60_000

async function scene(t: Test, mode: Mode) {
  const between = await Between.start(t, await startGateway(t, mode))
  const server = await startDealgate(t, { mode, gateway: between })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  return { between, server }
}

const isDownload = ({ path }: Passed) => path.includes(`/download/${BUCKET}/`)
const isListing = ({ body }: Passed) => body.includes('web.ListObjects')

for (const [what, lies] of [
  ['downloads', isDownload],
  ['listings', isListing],
] as const) {
  t.test(`legacy: a page in the place of ${what} after an upload`, async (t) => {
    const { between, server } = await scene(t, 'legacy')
    const body = bytes(what, 100)
    const headers = {
      'cache-control': 'max-age=5',
      'content-type': 'x/y',
      'x-amz-meta-a': 'b',
      'x-amz-tagging': 'c=d',
    }
    const target = targetOf(BUCKET, 'k')
    between.fate = (request) => (lies(request) ? PAGE : 'pass')
    const put = await send(server, { method: 'PUT', target, body, headers })
    t.equal(put.status, 200, 'the gateway has it')
    t.equal(put.headers.etag, `"${md5(body)}"`)

    // Also when the server does not live to see it.
    await server.kill9()
    between.fate = () => 'pass'
    await server.start()
    const found = { etag: `"${md5(body)}"`, 'content-type': 'x/y', 'cache-control': 'max-age=5', 'x-amz-meta-a': 'b' }
    const listed = await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2` })
    t.match(listed.body.toString(), md5(body), 'a listing shows its ETag')
    t.match((await send(server, { method: 'HEAD', target })).headers, found)
    t.match((await send(server, { method: 'GET', target: `${target}?tagging` })).body.toString(), '<Key>c</Key>')
    t.match((await send(server, { method: 'GET', target })).headers, found)
    t.equal((await send(server, { method: 'PUT', target, body, headers: { 'if-match': found.etag } })).status, 200)
  })
}

for (const mode of modes) {
  t.test(`${mode}: an answer to Complete that got lost`, async (t) => {
    const { between, server } = await scene(t, mode)
    const target = targetOf(BUCKET, 'parts')
    const created = await send(server, {
      method: 'POST',
      target: `${target}?uploads`,
      headers: { 'x-amz-meta-a': 'b' },
    })
    const id = /<UploadId>([^<]+)</.exec(created.body.toString())?.[1]
    const body = bytes('part', 50)
    const part = await send(server, { method: 'PUT', target: `${target}?partNumber=1&uploadId=${id}`, body })
    const complete = async () => {
      const answer = await send(server, {
        method: 'POST',
        target: `${target}?uploadId=${id}`,
        headers: { 'if-none-match': '*' },
        body: Buffer.from(
          `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`,
        ),
      })
      return answer.body.includes('<Error>') ? (answer.code ?? answer.body.toString()) : answer.status
    }
    const isUpload = ({ path, method }: Passed) => method === 'PUT' && path.endsWith('/parts')
    let lost = 0
    between.fate = (request) => {
      if (!isUpload(request)) return 'pass'
      lost++
      return 'cut-after'
    }
    t.equal(await complete(), 'ServiceUnavailable')
    // An upload with a fence over a connection that was used before is sent once more.
    t.ok(lost === 1 || (mode === 'full' && lost === 2), `${lost} answers were lost`)
    between.fate = () => 'pass'
    let again = await complete()
    for (
      const end = Date.now() + PATIENCE_MS;
      /ServiceUnavailable|SlowDown/.test(String(again)) && Date.now() < end;
    ) {
      await sleep(100)
      again = await complete()
    }
    t.equal(again, 200, 'it knows its own object')
    const got = await send(server, { method: 'GET', target })
    t.same(got.body, body)
    t.match(got.headers, { etag: /-1"$/, 'x-amz-meta-a': 'b' })
    t.equal(await complete(), 200)
    const other = { method: 'PUT', target, body, headers: { 'if-none-match': '*' } }
    t.equal((await send(server, other)).code, 'PreconditionFailed')
  })
}
