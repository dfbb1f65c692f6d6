import t from 'tap'
import type { AnyOperation } from '../../src/api/operation.js'
import type { Plugin } from '../../src/api/plugin.js'
import type { Method, Resource } from '../../src/api/request.js'
import { S3Error } from '../../src/common/errors/s3-error.js'
import { Query } from '../../src/common/query.js'
import { createTable } from '../../src/plugins/table.js'
import { s3Plugin } from '../../src/s3/index.js'

const table = createTable([s3Plugin])

/** Without the operations of sub-resources, so that what is not known stays what it is. */
const plain = createTable([
  { ...s3Plugin, operations: s3Plugin.operations.filter(({ on }) => !on.query?.length || on.method === 'POST') },
])

function select(method: Method, resource: Resource, query = '', headers: Record<string, string> = {}, path = '/') {
  return table.select({ method, resource, path, query: new Query(query), headers })
}

/** The name of the operation, or the code of the refusal. */
function outcome(...request: Parameters<typeof select>): string {
  try {
    return select(...request).operation.name
  } catch (error) {
    if (error instanceof S3Error) return error.code
    throw error
  }
}

t.test('selection: the most specific operation wins', async (t) => {
  const cases: [string, ...Parameters<typeof select>][] = [
    ['ListBuckets', 'GET', 'service'],
    ['ListObjects', 'GET', 'bucket', 'prefix=a&delimiter=/&marker=b&max-keys=3&encoding-type=url'],
    ['ListObjectsV2', 'GET', 'bucket', 'list-type=2&continuation-token=x&fetch-owner=true'],
    ['ListObjectVersions', 'GET', 'bucket', 'versions'],
    ['ListMultipartUploads', 'GET', 'bucket', 'uploads='],
    ['GetBucketLocation', 'GET', 'bucket', 'location'],
    ['GetBucketVersioning', 'GET', 'bucket', 'versioning'],
    ['CreateBucket', 'PUT', 'bucket'],
    ['DeleteBucket', 'DELETE', 'bucket'],
    ['HeadBucket', 'HEAD', 'bucket'],
    ['DeleteObjects', 'POST', 'bucket', 'delete'],
    ['PutObject', 'PUT', 'object', 'x-id=PutObject'],
    ['CopyObject', 'PUT', 'object', '', { 'x-amz-copy-source': '/b/k' }],
    ['UploadPart', 'PUT', 'object', 'partNumber=1&uploadId=u'],
    ['UploadPartCopy', 'PUT', 'object', 'partNumber=1&uploadId=u', { 'x-amz-copy-source': '/b/k' }],
    ['CreateMultipartUpload', 'POST', 'object', 'uploads'],
    ['CompleteMultipartUpload', 'POST', 'object', 'uploadId=u'],
    ['AbortMultipartUpload', 'DELETE', 'object', 'uploadId=u'],
    ['ListParts', 'GET', 'object', 'uploadId=u&max-parts=2'],
    ['GetObject', 'GET', 'object', 'partNumber=1&versionId=null&response-content-type=a'],
    ['Live', 'GET', 'service', '', {}, '/-/live'],
  ]
  for (const [name, ...request] of cases)
    t.equal(outcome(...request), name, `${request[0]} ${request[1]} ?${request[2] ?? ''}`)
})

t.test('selection: a query key that no operation names is refused, whatever the method', async (t) => {
  const refused: Parameters<typeof select>[] = [
    ['PUT', 'object', 'retention'],
    ['PUT', 'object', 'renameObject'],
    ['PUT', 'object', 'legal-hold='],
    ['PUT', 'object', 'foo=bar'],
    ['PUT', 'object', 'x-deal='],
    ['DELETE', 'object', 'torrent'],
    ['DELETE', 'bucket', 'website'],
    ['DELETE', 'bucket', 'policy'],
    ['PUT', 'bucket', 'versioning'],
    ['POST', 'bucket', 'surprise'],
    ['GET', 'bucket', 'website'],
    ['GET', 'bucket', 'versions&acl'],
    ['GET', 'object', 'acl=whatever'],
    ['GET', 'object', 'torrent'],
    ['HEAD', 'object', 'unknown'],
  ]
  for (const [method, resource, query] of refused) {
    const head = { method, resource, path: '/', query: new Query(query ?? ''), headers: {} }
    t.throws(() => plain.select(head), { code: 'NotImplemented' }, `${method} ${resource} ?${query}`)
  }
})

t.test('selection: keys that cannot change the meaning are ignored', async (t) => {
  const presigned =
    'X-Amz-Algorithm=a&X-Amz-Credential=c&X-Amz-Date=d&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=s'
  t.equal(outcome('PUT', 'object', presigned), 'PutObject')
  t.equal(outcome('PUT', 'object', presigned.replaceAll('Amz', 'Cloud')), 'PutObject')
  t.equal(outcome('GET', 'object', 'x-id=GetObject&x-my-log=1&cachebuster=7'), 'GetObject')
  t.equal(outcome('DELETE', 'object', 'x-my-log=1'), 'DeleteObject')
})

t.test('selection: no operation at all', async (t) => {
  t.equal(outcome('POST', 'service'), 'MethodNotAllowed')
  t.equal(outcome('DELETE', 'service'), 'MethodNotAllowed')
  t.equal(outcome('OPTIONS', 'service'), 'MethodNotAllowed')
  t.equal(outcome('OPTIONS', 'object', 'uploads'), 'PreflightObject', 'whatever it asks about')
  t.equal(outcome('GET', 'service', '', {}, '/-/nowhere'), 'NoSuchKey', 'as of a bucket')
  t.equal(outcome('HEAD', 'service', '', {}, '/-/nowhere'), 'NoSuchKey')
  t.equal(outcome('PUT', 'service', '', {}, '/-/nowhere'), 'MethodNotAllowed')
})

const row = (name: string, on: AnyOperation['on']): AnyOperation =>
  ({
    name,
    source: 'docs/x.md',
    access: 'signed',
    action: 'none',
    on,
    run: async () => ({ status: 200, headers: {} }),
  }) as AnyOperation
const plugin = (name: string, ...operations: AnyOperation[]): Plugin => ({ name, operations })

t.test('table: what is honoured as x-amz-... alone is refused as x-cloud-..., and not passed over', async (t) => {
  for (const name of [
    'copy-source',
    'copy-source-if-match',
    'copy-source-range',
    'meta-a',
    'metadata-directive',
    'storage-class',
  ])
    t.equal(outcome('PUT', 'object', '', { [`x-cloud-${name}`]: '1' }), 'NotImplemented', name)
  for (const name of ['expected-bucket-owner', 'source-expected-bucket-owner'])
    t.equal(outcome('GET', 'object', '', { [`x-cloud-${name}`]: '1' }), 'NotImplemented', name)
  t.equal(
    outcome('PUT', 'object', '', { 'x-cloud-date': '20130524T000000Z', 'x-cloud-trace-context': '1' }),
    'PutObject',
  )
})

t.test('table: two declarations of one route stop the start and name both owners', async (t) => {
  const a = plugin('first', row('One', { method: 'GET', resource: 'object', query: ['x-a', 'x-b'] }))
  const b = plugin('second', row('Two', { method: 'GET', resource: 'object', query: ['x-b', 'x-a'] }))
  t.throws(() => createTable([a, b]), /"first" \(One\).*"second" \(Two\)/)
  const c = plugin('first', row('One', { method: 'GET', resource: 'service', path: '/-/p/{A}' }))
  const d = plugin('second', row('Two', { method: 'GET', resource: 'service', path: '/-/p/{B}' }))
  t.throws(() => createTable([c, d]), /both answer/)
})

t.test('table: two equally specific operations for one request are refused', async (t) => {
  const both = createTable([
    plugin(
      'p',
      row('One', { method: 'GET', resource: 'object', query: ['a'] }),
      row('Two', { method: 'GET', resource: 'object', query: ['b'] }),
      row('Three', { method: 'GET', resource: 'object', query: ['x-p'] }),
      row('Four', { method: 'GET', resource: 'object', query: ['x-p-more'] }),
    ),
  ])
  const select = (query: string) =>
    both.select({ method: 'GET', resource: 'object', path: '/b/k', query: new Query(query), headers: {} })
  t.throws(() => select('a&b'), { code: 'InvalidArgument' })
  t.throws(() => select('x-p&x-p-more'), { code: 'InvalidRequest' }, 'two of extensions')
  t.throws(() => select('acl&x-p-more'), { code: 'InvalidRequest' }, "one of S3's")
})

t.test('table: named segments of a path', async (t) => {
  const paths = createTable([
    plugin('p', row('Provider', { method: 'GET', resource: 'service', path: '/-/p/v1/providers/{MinerId}' })),
  ])
  const at = (path: string) =>
    paths.select({ method: 'GET', resource: 'service', path, query: new Query(''), headers: {} })
  t.same(at('/-/p/v1/providers/f0%2F1').params, { MinerId: 'f0/1' })
  t.throws(() => at('/-/p/v1/providers'), { code: 'NoSuchKey' })
  t.throws(() => at('/-/p/v1/providers/%ff'), { code: 'InvalidURI' })
})

t.test('every operation has a name of its own and a source', async (t) => {
  const names = table.rows.map(({ operation }) => operation.name)
  t.equal(new Set(names).size, names.length)
  for (const { operation } of table.rows)
    t.match(operation.source, /^(https:\/\/docs\.aws\.amazon\.com\/|docs\/)/, operation.name)
})
