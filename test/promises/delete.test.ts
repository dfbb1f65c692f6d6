import t, { type Test } from 'tap'
import { bytes, contentMd5 } from '../support/content/content.js'
import { allOperations } from '../support/server/all-operations.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'

/** docs/design.md, promise 3; and what an operation does not name is never ignored. */

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

  const deleteObjects = (list: string) => {
    const body = Buffer.from(`<Delete>${list}</Delete>`)
    return send(server, { method: 'POST', target: `/${BUCKET}?delete`, body, headers: contentMd5(body) })
  }
  const named = ['dir/', 'dir', 'none', 'dir/deeper/', 'dir0']
  const answer = await deleteObjects(named.map((key) => `<Object><Key>${key}</Key></Object>`).join(''))
  t.equal(answer.body.toString().match(/<Deleted>/g)?.length, named.length, answer.body.toString())
  keys.splice(keys.indexOf('dir0'), 1)
  await allThere('DeleteObjects')
  t.equal(await status('HEAD', 'dir0'), 404, 'what stands behind a missing key and a folder is deleted as well')
  t.equal((await deleteObjects('<Object><Key></Key></Object>')).code, 'MalformedXML')
  await allThere('an empty key')
  // Nothing is passed over: what stands there twice or by another name may be what the client wanted kept.
  for (const unclear of [
    '<Object><Key>dir</Key><Key>dir/x</Key></Object>',
    '<Object><Key>dir/x</Key><versionId>an-old-one</versionId></Object>',
    '<Object><Key>dir/x</Key></Object><Objects><Key>none</Key></Objects>',
    '<Object><Key>dir/x</Key></Object><Quiet>true</Quiet><Quiet>false</Quiet>',
    '<Object><Key>dir/x</Key><VersionId><Id>an-old-one</Id></VersionId></Object>',
    '<Object><Key>dir/x</Key>but not this</Object>',
    '<Object><Key>dir/x</Key><ETag/></Object>',
    '<Object><Key>dir/x</Key><Size/></Object>',
  ])
    t.equal((await deleteObjects(unclear)).code, 'MalformedXML', unclear)
  await allThere('what is unclear')

  const past = 'Thu, 01 Jan 2015 00:00:00 GMT'
  const unmets = ['<Size>99999</Size>', `<LastModifiedTime>${past}</LastModifiedTime>`, '<ETag>""</ETag>']
  for (const unmet of unmets) {
    const { body } = await deleteObjects(`<Object><Key>dir/x</Key>${unmet}</Object>`)
    t.match(body.toString(), '<Code>PreconditionFailed</Code>', unmet)
    await allThere(unmet)
  }
  const size = 'x-amz-if-match-size'
  const time = 'x-amz-if-match-last-modified-time'
  const conditional = async (key: string, headers: Record<string, string>) => {
    const { status, code } = await send(server, { method: 'DELETE', target: targetOf(BUCKET, key), headers })
    return code ?? status
  }
  t.equal(await conditional('dir/x', { [size]: '99999' }), 'PreconditionFailed')
  t.equal(await conditional('dir/x', { [time]: past }), 'PreconditionFailed')
  t.equal(await conditional('dir/x', { 'if-match': '"other"' }), 'PreconditionFailed')
  for (const [name, value] of [size, time].flatMap((name) => ['', '-1', 'x'].map((value) => [name, value] as const)))
    t.equal(await conditional('dir/x', { [name]: value }), 'InvalidArgument', `${name}: ${value}`)
  await allThere('conditions that do not hold')
  t.equal(await conditional('absent', { [size]: '1', [time]: past }), 204, 'they hold for an absent object')
  t.equal(await conditional('absent', { 'if-match': '*' }), 'NoSuchKey')
  await put('conditional', Buffer.from('12345'))
  const made = await send(server, { method: 'HEAD', target: targetOf(BUCKET, 'conditional') })
  const met = { [size]: '5', [time]: made.headers['last-modified'] ?? '', 'if-match': made.headers.etag ?? '' }
  t.equal(await conditional('conditional', { ...met, [size]: '4' }), 'PreconditionFailed', 'all must hold')
  t.equal(await conditional('conditional', met), 204)
  t.equal(await status('HEAD', 'conditional'), 404)
  await put('dir/', Buffer.of())
  t.equal(await status('HEAD', 'dir/'), 200)
  t.equal(await status('DELETE', 'dir/'), 204)
  t.equal(await status('HEAD', 'dir/'), 404, 'the marker is gone')
  await allThere('the marker was deleted')
  for (const key of keys) t.equal(await status('DELETE', key), 204)
  const left = await send(server, { method: 'GET', target: `/${BUCKET}?list-type=2` })
  t.match(left.body.toString(), '<KeyCount>0</KeyCount>', 'nothing comes back')
}

/** The gateway sees none of these requests: for the second mode, one form of the query stands for all. */
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
        for (const query of server.mode === 'full' ? [name, `${name}=`, `x-id=X&${name}`] : [name]) {
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
  // No document of a retention, and no new content of the object either.
  const retention = await send(server, { method: 'PUT', target: `${target}?retention=`, body: Buffer.from('other') })
  t.equal(retention.status, server.mode === 'full' ? 400 : 501)
  for (const query of ['renameObject=', 'partNumber=1', 'uploadId=x&versioning', 'unknown=value']) {
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
