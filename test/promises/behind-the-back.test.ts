import t, { type Test } from 'tap'
import { bytes, md5, sha256 } from '../support/content/content.js'
import { startGateway } from '../support/gateway/embedded.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { type Mode, modes } from '../support/server/modes.js'
import { send, targetOf } from '../support/sign/send.js'

/** docs/design.md, promise 5: what changed behind the proxy's back never shows an old ETag, type or metadata. */

for (const mode of modes) {
  t.test(mode, async (t) => {
    const gateway = await startGateway(t, mode)
    const server = await startDealgate(t, { mode, gateway })
    const other = new GatewayUser(gateway)
    await other.login()
    t.equal((await send(server, { method: 'PUT', target: '/shared' })).status, 200)
    await t.test('overwritten', (t) => overwritten(t, server, other))
    await t.test('removed and made again', (t) => removed(t, server, other))
    await t.test('put there', (t) => put(t, server, other))
    await t.test('a bucket', (t) => bucket(t, server, other))
    await t.test('a bucket that is made again', (t) => remade(t, server, other, mode))
    await t.test('an upload to a bucket that is deleted', (t) => deletedUnderUpload(t, server, other, mode))
  })
}

const old = { 'content-type': 'x/old', 'cache-control': 'max-age=1', 'x-amz-meta-age': 'old' }

async function overwritten(t: Test, server: Dealgate, other: GatewayUser): Promise<void> {
  const target = targetOf('shared', 'overwritten')
  const mine = bytes('mine', 1000)
  const put = await send(server, { method: 'PUT', target, body: mine, headers: old })
  t.equal(put.headers.etag, `"${md5(mine)}"`)
  // The same size: only the bytes differ.
  const theirs = bytes('theirs', 1000)
  await other.put('shared', 'overwritten', theirs, { 'content-type': 'x/new' })
  const got = await send(server, { method: 'GET', target })
  t.equal(sha256(got.body), sha256(theirs))
  const head = await send(server, { method: 'HEAD', target })
  const listed = await etagInListing(server, 'overwritten')
  for (const [what, { headers }] of Object.entries({ GET: got, HEAD: head })) {
    const { etag = '' } = headers
    t.ok(etag === `"${md5(theirs)}"` || /^"[^"]*-[^"]*"$/.test(etag), `${what}: ${etag} is its own or no MD5`)
    t.equal(etag, listed, 'the same ETag in a listing')
    t.equal(headers['content-type'], 'x/new', what)
    t.equal(headers['x-amz-meta-age'], undefined, what)
    t.not(headers['cache-control'], 'max-age=1', what)
  }
  const stale = { 'if-match': `"${md5(mine)}"` }
  t.equal((await send(server, { method: 'GET', target, headers: stale })).status, 412)
  t.equal((await send(server, { method: 'PUT', target, body: mine, headers: stale })).status, 412)
  t.equal((await send(server, { method: 'GET', target, headers: { 'if-match': listed } })).status, 200)
}

async function removed(t: Test, server: Dealgate, other: GatewayUser): Promise<void> {
  const target = targetOf('shared', 'removed')
  const body = bytes('removed', 500)
  await send(server, { method: 'PUT', target, body, headers: old })
  await other.remove('shared', 'removed')
  t.equal((await send(server, { method: 'HEAD', target })).status, 404)
  t.equal((await send(server, { method: 'PUT', target, body, headers: { 'if-match': `"${md5(body)}"` } })).status, 404)
  t.equal(await etagInListing(server, 'removed'), '')
  await other.put('shared', 'removed', body, { 'content-type': 'x/new' })
  const { headers } = await send(server, { method: 'HEAD', target })
  t.equal(headers['content-type'], 'x/new', 'the same bytes once more, with other metadata')
  t.equal(headers['x-amz-meta-age'], undefined)
  t.equal((await send(server, { method: 'PUT', target, body, headers: { 'if-none-match': '*' } })).status, 412)
}

async function put(t: Test, server: Dealgate, other: GatewayUser): Promise<void> {
  const target = targetOf('shared', 'folder/theirs')
  const body = bytes('theirs', 70_000)
  await other.put('shared', 'folder/theirs', body, { 'content-type': 'x/theirs', 'x-cloud-meta-color': 'red' })
  const got = await send(server, { method: 'GET', target })
  t.equal(sha256(got.body), sha256(body))
  t.match(got.headers, { 'content-type': 'x/theirs', 'x-amz-meta-color': 'red' })
  t.same((await send(server, { method: 'GET', target, headers: { range: 'bytes=5-9' } })).body, body.subarray(5, 10))
  const copy = { 'x-amz-copy-source': '/shared/folder/theirs' }
  t.equal((await send(server, { method: 'PUT', target: targetOf('shared', 'copy'), headers: copy })).status, 200)
  const copied = await send(server, { method: 'GET', target: targetOf('shared', 'copy') })
  t.equal(copied.headers.etag, `"${md5(body)}"`, 'a copy has its MD5')
  t.match(copied.headers, { 'content-type': 'x/theirs', 'x-amz-meta-color': 'red' })
}

async function bucket(t: Test, server: Dealgate, other: GatewayUser): Promise<void> {
  await other.call('web.MakeBucket', { bucketName: 'theirs' })
  t.equal((await send(server, { method: 'HEAD', target: '/theirs' })).status, 200)
  t.match((await send(server, { method: 'GET', target: '/' })).body.toString(), '<Name>theirs</Name>')
  await other.call('web.DeleteBucket', { bucketName: 'theirs' })
  t.equal((await send(server, { method: 'HEAD', target: '/theirs' })).status, 404)
  t.equal((await send(server, { method: 'PUT', target: '/theirs/x', body: Buffer.from('x') })).code, 'NoSuchBucket')
}

const CORS =
  '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>'
const TAGS = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'

/** A gateway whose dates move cannot tell a bucket from one that was made again. */
async function remade(t: Test, server: Dealgate, other: GatewayUser, mode: Mode): Promise<void> {
  await other.call('web.MakeBucket', { bucketName: 'again' })
  const settings = Object.entries({ cors: CORS, tagging: TAGS })
  for (const [name, body] of settings) {
    const put = await send(server, { method: 'PUT', target: `/again?${name}`, body: Buffer.from(body) })
    t.ok(put.status < 300, `${name}: ${put.status} ${put.body}`)
  }
  const shown = async (): Promise<string[]> => {
    const found: string[] = []
    for (const [name] of settings)
      if ((await send(server, { method: 'GET', target: `/again?${name}` })).status === 200) found.push(name)
    return found
  }
  await other.put('again', 'theirs', bytes('theirs', 10))
  t.equal((await shown()).length, 2)
  await other.remake('again')
  const rest = mode === 'full' ? [] : settings.map(([name]) => name)
  t.same(await shown(), rest)
  await send(server, { method: 'PUT', target: '/again?tagging', body: Buffer.from(TAGS) })
  t.same(await shown(), mode === 'full' ? ['tagging'] : rest)
  await other.call('web.DeleteBucket', { bucketName: 'again' })
  t.equal((await send(server, { method: 'PUT', target: '/again' })).status, 200)
  t.same(await shown(), [], 'one that is made here begins with nothing')
}

async function begun(server: Dealgate): Promise<string> {
  const answer = await send(server, { method: 'POST', target: '/uploads/k?uploads' })
  const id = /<UploadId>(.*)<\/UploadId>/.exec(answer.body.toString())?.[1] ?? ''
  const part = await send(server, { method: 'PUT', target: `/uploads/k?partNumber=1&uploadId=${id}`, body: CONTENT })
  if (part.status !== 200) throw new Error(`UploadPart: ${part.status}`)
  return id
}

const CONTENT = Buffer.from('of the old bucket')

async function deletedUnderUpload(t: Test, server: Dealgate, other: GatewayUser, mode: Mode): Promise<void> {
  const etag = md5(CONTENT)
  const part = `<Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part>`
  const body = Buffer.from(`<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`)
  const complete = (id: string) => send(server, { method: 'POST', target: `/uploads/k?uploadId=${id}`, body })
  const uploads = async () =>
    (await send(server, { method: 'GET', target: '/uploads?uploads' })).body.toString().split('<Upload>').length - 1
  const make = async () => t.equal((await send(server, { method: 'PUT', target: '/uploads' })).status, 200)

  await make()
  const one = await begun(server)
  t.equal((await send(server, { method: 'DELETE', target: '/uploads' })).status, 204, 'as S3 allows it')
  await make()
  t.equal(await uploads(), 0)
  t.equal((await complete(one)).code, 'NoSuchUpload', 'deleted here')

  const two = await begun(server)
  await other.call('web.DeleteBucket', { bucketName: 'uploads' })
  await make()
  t.equal(await uploads(), 0)
  t.equal((await complete(two)).code, 'NoSuchUpload', 'deleted there and made here')

  const three = await begun(server)
  await other.remake('uploads')
  if (mode === 'full') {
    t.equal(await uploads(), 0)
    t.equal((await complete(three)).code, 'NoSuchUpload', 'made again there')
    t.equal((await send(server, { method: 'HEAD', target: '/uploads/k' })).status, 404)
  }
  const four = await begun(server)
  t.equal((await complete(four)).status, 200, 'and one of the new bucket is completed')
}

/** '' when the key is not listed. */
async function etagInListing(server: Dealgate, key: string): Promise<string> {
  const listing = await send(server, { method: 'GET', target: `/shared?list-type=2&prefix=${key}` })
  const quoted = /<ETag>(.*?)<\/ETag>/.exec(listing.body.toString())?.[1] ?? ''
  return quoted.replaceAll('&quot;', '"')
}
