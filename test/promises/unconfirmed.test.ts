import t from 'tap'
import { bytes, md5 } from '../support/content/content.js'
import { Between, type Fate, type Passed } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'

/** What a server between says in the gateway's place takes nothing away of what the gateway has stored. */

const BUCKET = 'unconfirmed'
const PAGE: Fate = { status: 200, type: 'text/html', body: '<!doctype html><title>Login</title>' }
const isDownload = ({ path }: Passed) => path.includes(`/download/${BUCKET}/`)
const isListing = ({ body }: Passed) => body.includes('web.ListObjects')

t.test('legacy: a page in the place of downloads or listings after an upload', async (t) => {
  const between = await Between.start(t, await startGateway(t, 'legacy'))
  const server = await startDealgate(t, { mode: 'legacy', gateway: between })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const headers = { 'cache-control': 'max-age=5', 'content-type': 'x/y', 'x-amz-meta-a': 'b', 'x-amz-tagging': 'c=d' }
  const uploads = Object.entries({ downloads: isDownload, listings: isListing }).map(([what, lies]) => {
    const body = bytes(what, 100)
    return { what, lies, body, target: targetOf(BUCKET, what), etag: `"${md5(body)}"` }
  })
  for (const { what, lies, body, target, etag } of uploads) {
    between.fate = (request) => (lies(request) ? PAGE : 'pass')
    const put = await send(server, { method: 'PUT', target, body, headers })
    t.equal(put.status, 200, `${what}: the gateway has it`)
    t.equal(put.headers.etag, etag)
  }

  // Also when the server does not live to see it.
  await server.kill9()
  between.fate = () => 'pass'
  await server.start()
  const listed = (await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2` })).body.toString()
  for (const { what, body, target, etag } of uploads) {
    const found = { etag, 'content-type': 'x/y', 'cache-control': 'max-age=5', 'x-amz-meta-a': 'b' }
    t.match(listed, md5(body), `${what}: a listing shows its ETag`)
    t.match((await send(server, { method: 'HEAD', target })).headers, found)
    t.match((await send(server, { method: 'GET', target: `${target}?tagging` })).body.toString(), '<Key>c</Key>')
    t.match((await send(server, { method: 'GET', target })).headers, found)
    t.equal((await send(server, { method: 'PUT', target, body, headers: { 'if-match': etag } })).status, 200)
  }
})
