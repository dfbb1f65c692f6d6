import type { Test } from 'tap'
import { bytes, md5, sha256 } from '../../support/content/content.js'
import type { Dealgate } from '../../support/server/dealgate.js'
import { send, targetOf } from '../../support/sign/send.js'
import { ask, keysOf } from './operations.js'
import type { RealGateway } from './real-gateway.js'

const OLD = { 'content-type': 'x/old', 'cache-control': 'max-age=1', 'x-amz-meta-age': 'old', 'x-amz-tagging': 'a=b' }

/** Objects that are changed on the gateway's own S3 port: no ETag, type, metadata or tag of another body is shown. */
export async function behindTheBack(t: Test, server: Dealgate, { s3 }: RealGateway): Promise<void> {
  const bucket = 'shared'
  await ask(server, 'PUT', bucket)
  const theirs = async (method: string, key: string, body?: Buffer, headers: Record<string, string> = {}) => {
    const answer = await send(s3, { method, target: targetOf(bucket, key), headers, ...(body && { body }) })
    t.ok(answer.status < 300, `${method} on the gateway's own port: ${answer.status} ${answer.body}`)
  }

  for (let round = 0; round < 3; round++) {
    // The same size each time: only the bytes differ.
    const [mine, other] = [bytes(`mine ${round}`, 1000), bytes(`theirs ${round}`, 1000)]
    await ask(server, 'PUT', bucket, 'k', { body: mine, headers: OLD })
    await theirs('PUT', 'k', other, { 'content-type': 'x/new' })
    const got = await ask(server, 'GET', bucket, 'k')
    t.equal(sha256(got.body), sha256(other))
    const head = await ask(server, 'HEAD', bucket, 'k')
    for (const { headers } of [got, head]) {
      t.match(headers, { 'content-type': 'x/new', etag: /^"[^"]*-[^"]*"$/ })
      t.equal(headers['x-amz-meta-age'] ?? headers['x-amz-tagging-count'], undefined)
      t.not(headers['cache-control'], OLD['cache-control'])
    }
    t.equal(got.headers.etag, head.headers.etag)
    const stale = { body: mine, headers: { 'if-match': `"${md5(mine)}"` } }
    t.equal((await ask(server, 'PUT', bucket, 'k', stale)).code, 'PreconditionFailed')
  }

  await theirs('DELETE', 'k')
  t.equal((await ask(server, 'HEAD', bucket, 'k')).status, 404)
  t.same(await keysOf(server, bucket), [])
  const body = bytes('made there', 200_000)
  await theirs('PUT', 'made/there', body, { 'content-type': 'x/there', 'x-amz-meta-color': 'red' })
  const made = await ask(server, 'GET', bucket, 'made/there')
  t.equal(sha256(made.body), sha256(body))
  t.match(made.headers, { 'content-type': 'x/there', 'x-amz-meta-color': 'red' })
  t.same((await ask(server, 'GET', bucket, 'made/there', { headers: { range: 'bytes=-7' } })).body, body.subarray(-7))
  const from = { headers: { 'x-amz-copy-source': `/${bucket}/made/there` } }
  await ask(server, 'PUT', bucket, 'copy', from)
  t.equal((await ask(server, 'HEAD', bucket, 'copy')).headers.etag, `"${md5(body)}"`, 'a copy has its MD5')
  t.equal(sha256((await send(s3, { method: 'GET', target: targetOf(bucket, 'copy') })).body), sha256(body))
  for (const key of ['made/there', 'copy']) await ask(server, 'DELETE', bucket, key)
  t.equal(
    (await send(s3, { method: 'GET', target: `/${bucket}?list-type=2` })).body.toString().split('<Key>').length,
    1,
  )
  t.equal((await ask(server, 'DELETE', bucket)).status, 204)
}
