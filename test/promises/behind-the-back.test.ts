import t, { type Test } from 'tap'
import { bytes, md5, sha256 } from '../harness/content.js'
import { type Dealgate, type GatewayAddress, modes, startDealgate, startGateway } from '../harness/dealgate.js'
import { send, targetOf } from '../harness/sign.js'

/** DESIGN section 4, promise 5: what changed behind the proxy's back never shows an old ETag, type or metadata. */

const USER_AGENT = 'Mozilla/5.0 (test)'

/** Somebody who uses the gateway without the proxy. */
class Other {
  readonly #gateway: GatewayAddress
  #token = ''

  constructor(gateway: GatewayAddress) {
    this.#gateway = gateway
  }

  async call(method: string, params: object): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#gateway.url}/gateway/webrpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.#headers() },
      body: JSON.stringify({ id: 1, jsonrpc: '2.0', method, params }),
    })
    const { result, error } = (await response.json()) as {
      result?: Record<string, unknown>
      error?: { message: string }
    }
    if (!result) throw new Error(`${method}: ${error?.message}`)
    return result
  }

  async login(): Promise<void> {
    const { accessKey: username, secretKey: password } = this.#gateway
    this.#token = String((await this.call('web.Login', { username, password })).token)
  }

  async put(bucket: string, key: string, body: Buffer, headers: Record<string, string> = {}): Promise<void> {
    const response = await fetch(`${this.#gateway.url}/gateway/upload/${bucket}/${key}`, {
      method: 'PUT',
      headers: { ...this.#headers(), ...headers },
      body,
    })
    if (response.status !== 200) throw new Error(`upload: ${response.status} ${await response.text()}`)
  }

  remove(bucket: string, key: string): Promise<unknown> {
    return this.call('web.RemoveObject', { bucketName: bucket, objects: [key] })
  }

  #headers(): Record<string, string> {
    return { 'user-agent': USER_AGENT, ...(this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }) }
  }
}

for (const mode of modes) {
  t.test(mode, async (t) => {
    const gateway = await startGateway(t, mode)
    const server = await startDealgate(t, { mode, gateway })
    const other = new Other(gateway)
    await other.login()
    t.equal((await send(server, { method: 'PUT', target: '/shared' })).status, 200)
    await t.test('overwritten', (t) => overwritten(t, server, other))
    await t.test('removed and made again', (t) => removed(t, server, other))
    await t.test('put there', (t) => put(t, server, other))
    await t.test('a bucket', (t) => bucket(t, server, other))
  })
}

const old = { 'content-type': 'x/old', 'cache-control': 'max-age=1', 'x-amz-meta-age': 'old' }

async function overwritten(t: Test, server: Dealgate, other: Other): Promise<void> {
  const target = targetOf('shared', 'overwritten')
  // The same size each time: only the bytes differ.
  for (let round = 0; round < 5; round++) {
    const mine = bytes(`mine ${round}`, 1000)
    const put = await send(server, { method: 'PUT', target, body: mine, headers: old })
    t.equal(put.headers.etag, `"${md5(mine)}"`)
    const theirs = bytes(`theirs ${round}`, 1000)
    await other.put('shared', 'overwritten', theirs, { 'content-type': 'x/new' })
    const got = await send(server, { method: 'GET', target })
    t.equal(sha256(got.body), sha256(theirs))
    const head = await send(server, { method: 'HEAD', target })
    const listed = await etagInListing(server, 'overwritten')
    const expected = (etag: string | undefined) => etag === `"${md5(theirs)}"` || /^"[^"]*-[^"]*"$/.test(etag ?? '')
    for (const [what, { headers }] of Object.entries({ GET: got, HEAD: head })) {
      t.ok(expected(headers.etag), `${what} has its own ETag or one that is no MD5: ${headers.etag}`)
      t.equal(headers['content-type'], 'x/new', what)
      t.equal(headers['x-amz-meta-age'], undefined, what)
      t.not(headers['cache-control'], 'max-age=1', what)
    }
    t.equal(got.headers.etag, listed, 'the same ETag in a listing')
    t.equal(head.headers.etag, listed)
    const stale = { 'if-match': `"${md5(mine)}"` }
    t.equal((await send(server, { method: 'GET', target, headers: stale })).status, 412)
    t.equal((await send(server, { method: 'PUT', target, body: mine, headers: stale })).status, 412)
    t.equal((await send(server, { method: 'GET', target, headers: { 'if-none-match': `"${md5(mine)}"` } })).status, 200)
    t.equal((await send(server, { method: 'GET', target, headers: { 'if-match': listed } })).status, 200)
  }
}

async function removed(t: Test, server: Dealgate, other: Other): Promise<void> {
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

async function put(t: Test, server: Dealgate, other: Other): Promise<void> {
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

async function bucket(t: Test, server: Dealgate, other: Other): Promise<void> {
  await other.call('web.MakeBucket', { bucketName: 'theirs' })
  t.equal((await send(server, { method: 'HEAD', target: '/theirs' })).status, 200)
  t.match((await send(server, { method: 'GET', target: '/' })).body.toString(), '<Name>theirs</Name>')
  await other.call('web.DeleteBucket', { bucketName: 'theirs' })
  t.equal((await send(server, { method: 'HEAD', target: '/theirs' })).status, 404)
  t.equal((await send(server, { method: 'PUT', target: '/theirs/x', body: Buffer.from('x') })).code, 'NoSuchBucket')
}

/** '' when the key is not listed. */
async function etagInListing(server: Dealgate, key: string): Promise<string> {
  const listing = await send(server, { method: 'GET', target: `/shared?list-type=2&prefix=${key}` })
  const quoted = /<ETag>(.*?)<\/ETag>/.exec(listing.body.toString())?.[1] ?? ''
  return quoted.replaceAll('&quot;', '"')
}
