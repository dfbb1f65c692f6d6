import t, { type Test } from 'tap'
import { bytes } from '../harness/content.js'
import { type Dealgate, inEachMode } from '../harness/dealgate.js'
import { send, targetOf } from '../harness/sign.js'
import { allOperations } from '../support/all-operations.js'

/** DESIGN section 4, promise 3, and section 3: what an operation does not name is never ignored. */

const BUCKET = 'deleting'

/** Sub-resources of S3, those of today and those to come. */
const SUBRESOURCES = [
  ...['abac', 'accelerate', 'acl', 'analytics', 'attributes', 'cors', 'encryption', 'intelligent-tiering', 'inventory'],
  ...['legal-hold', 'lifecycle', 'location', 'logging', 'metadataTable', 'metrics', 'notification', 'object-lock'],
  ...['ownershipControls', 'policy', 'policyStatus', 'publicAccessBlock', 'renameObject', 'replication'],
  ...['requestPayment', 'restore', 'retention', 'select', 'session', 'tagging', 'torrent', 'versioning', 'versions'],
  ...['website', 'something-new'],
]

inEachMode(t, async (t, server) => {
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  await t.test('one key and nothing else', (t) => oneKey(t, server))
  await t.test('sub-resources', (t) => subresources(t, server))
})

async function oneKey(t: Test, server: Dealgate): Promise<void> {
  const put = async (key: string, body = Buffer.from(key)) =>
    t.equal((await send(server, { method: 'PUT', target: targetOf(BUCKET, key), body })).status, 200)
  const status = async (method: string, key: string) =>
    (await send(server, { method, target: targetOf(BUCKET, key) })).status
  const keys = ['dir/x', 'dir/deeper/y', 'dir-not', 'dir0']
  for (const key of keys) await put(key)
  const allThere = async (after: string) => {
    for (const key of keys) t.equal(await status('HEAD', key), 200, `${key} is there after ${after}`)
  }
  t.equal(await status('DELETE', 'dir/'), 204)
  await allThere('DELETE dir/')
  t.equal(await status('DELETE', 'dir'), 204)
  t.equal(await status('DELETE', 'dir/deeper/'), 204)
  t.equal(await status('DELETE', 'di'), 204)
  await allThere('other deletes')
  t.equal((await send(server, { method: 'DELETE', target: `/${BUCKET}/` })).code, 'BucketNotEmpty')
  await allThere('DELETE bucket/')

  const named = ['dir/', 'dir', 'none', 'dir/deeper/', 'dir0']
  const body = Buffer.from(`<Delete>${named.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`)
  const answer = await send(server, { method: 'POST', target: `/${BUCKET}?delete`, body })
  t.equal(answer.body.toString().match(/<Deleted>/g)?.length, named.length, answer.body.toString())
  keys.splice(keys.indexOf('dir0'), 1)
  await allThere('DeleteObjects')
  t.equal(await status('HEAD', 'dir0'), 404, 'what stands behind a missing key and a folder is deleted as well')
  const empty = Buffer.from('<Delete><Object><Key></Key></Object></Delete>')
  t.equal((await send(server, { method: 'POST', target: `/${BUCKET}?delete`, body: empty })).code, 'MalformedXML')
  await allThere('an empty key')
  // Nothing is passed over: what stands there twice or by another name may be what the client wanted kept.
  for (const unclear of [
    '<Object><Key>dir</Key><Key>dir/x</Key></Object>',
    '<Object><Key>dir/x</Key><versionId>an-old-one</versionId></Object>',
    '<Object><Key>dir/x</Key><VersionId>null</VersionId><VersionId>an-old-one</VersionId></Object>',
    '<Object><Key>dir/x</Key></Object><Objects><Key>none</Key></Objects>',
    '<Object><Key>dir/x</Key></Object><Quiet>true</Quiet><Quiet>false</Quiet>',
    '<Object><Key>dir/x</Key><VersionId><Id>an-old-one</Id></VersionId></Object>',
    '<Object><Key>dir/x</Key><ETag><Value>other</Value></ETag></Object>',
    '<Object><Key>dir/x</Key>but not this</Object>',
    '<Object><Key>dir/x</Key><ETag></ETag></Object>',
    '<Object><Key>dir/x</Key><ETag/></Object>',
    '<Object><Key>dir/x</Key><ETag> </ETag></Object>',
  ]) {
    const body = Buffer.from(`<Delete>${unclear}</Delete>`)
    t.equal((await send(server, { method: 'POST', target: `/${BUCKET}?delete`, body })).code, 'MalformedXML', unclear)
    await allThere(unclear)
  }

  for (const unkept of ['<Size/>', '<LastModifiedTime></LastModifiedTime>']) {
    const body = Buffer.from(`<Delete><Object><Key>dir/x</Key>${unkept}</Object></Delete>`)
    t.equal((await send(server, { method: 'POST', target: `/${BUCKET}?delete`, body })).code, 'NotImplemented', unkept)
    await allThere(unkept)
  }
  for (const etag of ['""', '"', 'W/', '&quot;&quot;']) {
    const body = Buffer.from(`<Delete><Object><Key>dir/x</Key><ETag>${etag}</ETag></Object></Delete>`)
    const answer = await send(server, { method: 'POST', target: `/${BUCKET}?delete`, body })
    t.match(answer.body.toString(), '<Code>PreconditionFailed</Code>', etag)
    await allThere(etag)
  }

  await put('dir/', Buffer.of())
  t.equal(await status('HEAD', 'dir/'), 200)
  t.equal(await status('DELETE', 'dir/'), 204)
  t.equal(await status('HEAD', 'dir/'), 404, 'the marker is gone')
  await allThere('the marker was deleted')
  for (const key of keys) t.equal(await status('DELETE', key), 204)
  const left = await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2` })
  t.match(left.body.toString(), '<KeyCount>0</KeyCount>', 'nothing comes back')
}

async function subresources(t: Test, server: Dealgate): Promise<void> {
  const body = bytes('kept', 1000)
  const target = targetOf(BUCKET, 'kept')
  const { headers } = await send(server, { method: 'PUT', target, body })
  for (const name of SUBRESOURCES) {
    for (const method of ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']) {
      for (const [resource, at] of [
        ['bucket', `/${BUCKET}`],
        ['object', target],
      ] as const) {
        if (isServed(method, resource, name)) continue
        for (const query of [name, `${name}=`, `x-id=X&${name}`]) {
          const answer = await send(server, { method, target: `${at}?${query}` })
          t.equal(answer.status, 501, `${method} ${resource}?${query}`)
        }
      }
    }
  }
  const kept = await send(server, { method: 'GET', target })
  t.same(kept.body, body)
  t.equal(kept.headers.etag, headers.etag)
  t.equal(kept.headers['last-modified'], (await send(server, { method: 'HEAD', target })).headers['last-modified'])
  for (const query of ['retention=', 'partNumber=1', 'uploadId=x&versioning', 'unknown=value']) {
    t.equal(
      (await send(server, { method: 'PUT', target: `${target}?${query}`, body: Buffer.from('other') })).status,
      501,
      query,
    )
    t.equal((await send(server, { method: 'DELETE', target: `/${BUCKET}?${query}` })).status, 501, query)
  }
  t.same((await send(server, { method: 'GET', target })).body, body)
}

function isServed(method: string, resource: string, name: string): boolean {
  return allOperations.some(
    ({ on }) =>
      on.method === method && on.resource === resource && on.query?.some((query) => query.split('=')[0] === name),
  )
}
