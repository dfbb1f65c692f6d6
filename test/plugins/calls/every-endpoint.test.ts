import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import deal from '../../../plugins/deal/index.js'
import pay from '../../../plugins/pay/index.js'
import task from '../../../plugins/task/index.js'
import { routeText } from '../../../src/plugins/table.js'
import { commands } from '../../s3/s3-calls.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

/** Rows that no document of the calls has, each with the reason. Operations that SDKs of S3 have need none. */
const S3_BESIDE_THE_SDK: Readonly<Record<string, string>> = {
  PostObject: 'the form upload of S3, which browsers send',
  SecurityTokenService: 'the calls of STS, which clients make at the endpoint that they use for STS',
  PreflightBucket: 'a preflight of CORS, which browsers send',
  PreflightObject: 'a preflight of CORS, which browsers send',
  ListObjectsOfService: 'ListObjects of the bucket `-`',
  ListObjectsOfServiceRoot: 'ListObjects of the bucket `-`',
  ListObjectsV2OfService: 'ListObjectsV2 of the bucket `-`',
  ListObjectsV2OfServiceRoot: 'ListObjectsV2 of the bucket `-`',
  HeadBucketOfService: 'HeadBucket of the bucket `-`',
  HeadBucketOfServiceRoot: 'HeadBucket of the bucket `-`',
  GetBucketLocationOfService: 'GetBucketLocation of the bucket `-`',
  GetBucketLocationOfServiceRoot: 'GetBucketLocation of the bucket `-`',
  CreateBucketOfService: 'CreateBucket of the bucket `-`',
  CreateBucketOfServiceRoot: 'CreateBucket of the bucket `-`',
  GetMetrics: 'the metrics, in the text formats of Prometheus',
}

/** What the flow answers besides the table, each with the reason why no document has it. */
const BESIDE_THE_TABLE: Readonly<Record<string, string>> = {
  GetSharedObject: 'GetObject by a link that the gateway has signed: the link is the whole request',
  HeadSharedObject: 'HeadObject by a link that the gateway has signed: the link is the whole request',
}

interface Operation {
  readonly http: { readonly method: string; readonly requestUri: string }
}

for (const mode of modes)
  t.test(`${mode}: every endpoint is an operation of S3, or in all three descriptions`, async (t) => {
    const { endpoint, proxy } = await startInProcess(t, mode, { identities: [owner], plugins: [deal({})] })
    // biome-ignore lint/suspicious/noExplicitAny: a document of any shape, and every use compares it
    const read = async (path: string): Promise<any> => {
      const { status, body } = await signedRequest(endpoint, owner, { method: 'GET', path })
      t.equal(status, 200, path)
      return JSON.parse(body)
    }
    const expected = proxy.operations.filter(
      ({ operation: { name } }) => !commands.has(name) && !(name in S3_BESIDE_THE_SDK),
    )
    t.ok(expected.length > 20)
    for (const { plugin, operation } of expected)
      t.ok(operation.call, `${plugin}: ${routeText(operation)} is a declared call`)
    const names = new Set(proxy.operations.map(({ operation: { name } }) => name))
    t.same(
      Object.keys(S3_BESIDE_THE_SDK).filter((name) => !names.has(name)),
      [],
      'each exception is there',
    )

    const wanted = expected.map(({ operation: { on } }) => `${on.method} ${routeOf(on)}`).sort()
    const { Operations } = await read('/-/capabilities')
    t.same(
      Operations.map(({ Method, Route }: Record<string, string>) => `${Method} ${Route}`).sort(),
      wanted,
      'capabilities',
    )
    const { paths } = await read('/-/openapi.json')
    const described = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/#(.+)$/, '?$1=')}`),
    )
    t.same(described.sort(), wanted, 'OpenAPI')
    const { operations } = await read('/-/aws-model.json')
    const modelled = Object.values<Operation>(operations).map(({ http: { method, requestUri } }) => {
      const route = requestUri.replace('{Key+}', '{Key}').replace('?format=json&', '?').replace('?format=json', '')
      return `${method} ${route}`
    })
    t.same(modelled.sort(), wanted, 'AWS model')
    const { Plugins } = await read('/-/plugins/v1')
    const listed = Plugins.flatMap(({ Calls }: { Calls: string[] }) => Calls)
    const { pagination } = await read('/-/aws-paginators.json')
    t.same(
      Object.keys(pagination).sort(),
      Object.keys(operations)
        .filter((name) => name.startsWith('List'))
        .sort(),
      'every list comes in pages',
    )
    t.same(listed.sort(), expected.map(({ operation: { name } }) => name).sort(), 'list of plugins')

    for (const { plugin, operation } of expected) {
      const { method, resource, path = '' } = operation.on
      if (method !== 'GET' || resource !== 'service' || path.includes('{')) continue
      const isPublic = operation.access === 'public'
      const answer = isPublic
        ? await fetch(endpoint + path).then(({ status, headers }) => ({ status, headers: Object.fromEntries(headers) }))
        : await signedRequest(endpoint, owner, { method, path })
      // The providers of a gateway that does not tell them.
      t.ok(answer.status === 200 || (mode === 'legacy' && answer.status === 501), `${path}: ${answer.status}`)
      t.equal(answer.headers['x-dealgate-api-version'], `${plugin}/1`, path)
      const spec = paths[path].get
      t.same(spec.security, isPublic ? [] : undefined, `${path}: who may call it`)
      t.equal(operations[operation.name].authtype, isPublic ? 'none' : undefined, `${path}: who may call it`)
    }
  })

function routeOf({ resource, path = '', query = [] }: { resource: string; path?: string; query?: readonly string[] }) {
  const place = { service: path, bucket: '/{Bucket}', object: '/{Bucket}/{Key}' }[resource]
  return place + (query.length === 0 ? '' : `?${query.map((name) => `${name}=`).join('&')}`)
}

t.test('no operation is kept out of the table', async (t) => {
  const plugins = [deal({}), task({ platformUrl: 'http://127.0.0.1:9' }), pay({})]
  const { proxy } = await startInProcess(t, 'full', { identities: [owner], plugins })
  const inTable = new Set(proxy.operations.map(({ operation: { name } }) => name))
  const declared = ['src', 'plugins'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      // What `plugin new` writes is a plugin of the user's.
      .filter((file) => file.endsWith('.ts') && !file.endsWith('plugin-new.ts'))
      .flatMap((file) => [
        ...readFileSync(join(folder, file), 'utf8').matchAll(
          /\bdefine(?:Operation|Call)(?:<[^>]*>)?\(\{\s*(?:\.\.\.\w+,\s*)*name: '(\w+)'/g,
        ),
      ])
      .map(([, name = '']) => name),
  )
  t.ok(declared.length > 60)
  t.same(declared.filter((name) => !inTable.has(name)).sort(), Object.keys(BESIDE_THE_TABLE).sort())
})

t.test('a document that has a form in JSON alone', async (t) => {
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner] })
  const ask = (path: string, query: Record<string, string>, headers: Record<string, string> = {}) =>
    signedRequest(endpoint, owner, { method: 'GET', path, query, headers })
  for (const path of ['/-/openapi.json', '/-/aws-model.json', '/-/aws-paginators.json']) {
    const browser = await ask(path, {}, { accept: 'text/html,application/xml;q=0.9,*/*;q=0.8' })
    t.match(browser, { status: 200, headers: { 'content-type': 'application/json', etag: /^"/ } }, path)
    JSON.parse(browser.body)
    t.match(await ask(path, { format: 'xml' }), { status: 400, body: /JSON only/ }, path)
    t.match(await ask(path, { plugn: 'deal' }), { status: 400, body: /plugn is not a parameter/ }, path)
    t.equal((await signedRequest(endpoint, owner, { method: 'HEAD', path })).status, 200, `HEAD ${path}`)
  }
})
