import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { z } from 'zod'
import deal from '../../../plugins/deal/index.js'
import pay from '../../../plugins/pay/index.js'
import { describeForAws } from '../../../plugins/self/aws-model.js'
import task from '../../../plugins/task/index.js'
import { defineCall } from '../../../src/plugins/calls/define-call.js'
import { routeText } from '../../../src/plugins/table.js'
import { examplePlugin } from '../../src/plugins/calls/example-plugin.js'
import { commands } from '../../src/s3/s3-calls.js'
import { lint } from '../../support/content/lint-openapi.js'
import { startInProcess } from '../../support/server/in-process.js'
import { type Mode, modes } from '../../support/server/modes.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
async function start(t: Test, mode: Mode = 'full') {
  const { endpoint } = await startInProcess(t, mode, {
    identities: [owner],
    plugins: [deal({ maxSpendPerDay: 'none', maxTimesAsk: 'none' }), examplePlugin()],
  })
  const send = (method: string, path: string, query: Record<string, string> = {}, body?: string) =>
    signedRequest(endpoint, owner, { method, path, query, ...(body !== undefined && { body }) })
  // biome-ignore lint/suspicious/noExplicitAny: a document of any shape, and every use compares it
  const ask = async (...args: Parameters<typeof send>): Promise<any> => {
    const { status, body } = await send(...args)
    if (status !== 200) throw new Error(`${args.join(' ')}: ${status} ${body}`)
    return JSON.parse(body)
  }
  return { send, ask }
}

t.test('a strict linter finds nothing wrong with the OpenAPI document', async (t) => {
  const { ask } = await start(t)
  const document = await ask('GET', '/-/openapi.json')
  // The rule about servers is for documents that are published: this one names the address it was read from.
  const elsewhere = { ...document, servers: [{ url: 'https://store.test' }] }
  t.match(document.servers, [{ url: /^http:\/\/127\.0\.0\.1:\d+$/ }])
  t.same(await lint(elsewhere), [])
})

/** Rows that no document of the calls has, each with the reason. Operations that SDKs of S3 have need none. */
const S3_BESIDE_THE_SDK: Readonly<Record<string, string>> = {
  PostObject: 'the form upload of S3, which browsers send',
  SecurityTokenService: 'the calls of STS, which clients make at the endpoint that they use for STS',
  PreflightBucket: 'a preflight of CORS, which browsers send',
  PreflightObject: 'a preflight of CORS, which browsers send',
  ...Object.fromEntries(
    ['ListObjects', 'ListObjectsV2', 'HeadBucket', 'GetBucketLocation', 'CreateBucket'].flatMap((name) =>
      ['Service', 'ServiceRoot'].map((place) => [`${name}Of${place}`, `${name} of the bucket \`-\``]),
    ),
  ),
  GetMetrics: 'the metrics, in the text formats of Prometheus',
  GetZip: 'an archive of objects: its answer is no document',
  PostZip: 'an archive of objects: its answer is no document',
}

/** Lists without pages, each with the reason. */
const WITHOUT_PAGES: Readonly<Record<string, string>> = {
  ListRequests: 'what goes on is followed by a cursor, and has no end',
}

/** What the flow answers besides the table, each with the reason why no document has it. */
const BESIDE_THE_TABLE: Readonly<Record<string, string>> = {
  GetSharedObject: 'GetObject by a link that the gateway has signed: the link is the whole request',
  HeadSharedObject: 'HeadObject by a link that the gateway has signed: the link is the whole request',
  ShowConsole: 'the page for browsers, on a port of its own',
  PreflightConsole: 'a preflight of CORS for the page for browsers, on a port of its own',
}

/** What the program keeps that contains the server, and this one has no program. */
const OF_THE_PROGRAM = ['/-/options/v1', '/-/keys/v1', '/-/accounts/v1']

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
    const known = (name: string) => commands.has(name) || name in S3_BESIDE_THE_SDK
    // S3 Control has SDKs of its own, and a `ListJobs` as we have.
    const isControl = ({ path = '' }: { readonly path?: string }) => path.startsWith('/v20180820/')
    const expected = proxy.operations.filter(({ operation: { name, on } }) => !known(name) && !isControl(on))
    t.ok(expected.length > 20)
    for (const { plugin, operation } of expected)
      t.ok(operation.call, `${plugin}: ${routeText(operation)} is a declared call`)
    const names = new Set(proxy.operations.map(({ operation: { name } }) => name))
    for (const name of Object.keys(S3_BESIDE_THE_SDK)) t.ok(names.has(name), `the exception ${name} is there`)

    const wanted = expected.map(({ operation: { on } }) => `${on.method} ${routeOf(on)}`).sort()
    const { Operations } = await read('/-/capabilities')
    const capabilities: string[] = Operations.map(({ Method, Route }: Record<string, string>) => `${Method} ${Route}`)
    t.same(capabilities.sort(), wanted, 'capabilities')
    const { paths } = await read('/-/openapi.json')
    const described = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/#(.+)$/, '?$1=')}`),
    )
    t.same(described.sort(), wanted, 'OpenAPI')
    const { operations, shapes } = await read('/-/aws-model.json')
    const modelled = Object.values<Operation>(operations).map(({ http: { method, requestUri } }) => {
      const route = requestUri.replace('{Key+}', '{Key}').replace('?format=json&', '?').replace('?format=json', '')
      return `${method} ${route}`
    })
    t.same(modelled.sort(), wanted, 'AWS model')
    const { Plugins } = await read('/-/plugins/v1')
    const listed = Plugins.flatMap(({ Calls }: { Calls: string[] }) => Calls)
    const { pagination } = await read('/-/aws-paginators.json')
    const isList = (name: string) => (name.startsWith('List') && !(name in WITHOUT_PAGES)) || name === 'DescribeBuckets'
    const lists = Object.keys(operations).filter(isList)
    t.same(Object.keys(pagination).sort(), lists.sort(), 'every list comes in pages')
    const pages = Object.entries<Record<string, string>>(pagination)
    for (const [name, { input_token, limit_key, output_token, more_results, result_key }] of pages) {
      const { input, output } = operations[name]
      for (const [shape, members] of [
        [input.shape, [input_token, limit_key]],
        [output.shape, [output_token, more_results, result_key]],
      ])
        for (const member of members) t.ok(shapes[shape].members[member], `${name}: ${member}`)
    }
    t.same(listed.sort(), expected.map(({ operation: { name } }) => name).sort(), 'list of plugins')

    for (const { plugin, operation } of expected) {
      const { method, resource, path = '' } = operation.on
      if (method !== 'GET' || resource !== 'service' || path.includes('{')) continue
      const isPublic = operation.access === 'public'
      const answer = isPublic
        ? await fetch(endpoint + path).then(({ status, headers }) => ({ status, headers: Object.fromEntries(headers) }))
        : await signedRequest(endpoint, owner, { method, path })
      // The providers of a gateway that does not tell them.
      const isAbsent = OF_THE_PROGRAM.includes(path) || (mode === 'legacy' && answer.status === 501)
      t.equal(answer.status, isAbsent ? 501 : 200, path)
      t.equal(answer.headers['x-dealgate-api-version'], `${plugin}/1`, path)
      t.same(paths[path].get.security, isPublic ? [] : undefined, `${path}: who may call it`)
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
  const declaration = /\bdefine(?:Operation|Call)(?:<[^>]*>)?\(\{\s*(?:\.\.\.\w+,\s*)*name: '(\w+)'/g
  const declared = ['src', 'plugins', 'cli'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      // What `plugin new` writes is a plugin of the user's.
      .filter((file) => file.endsWith('.ts') && !file.endsWith('plugin-new.ts'))
      .flatMap((file) => [...readFileSync(join(folder, file), 'utf8').matchAll(declaration)])
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
  const model = JSON.parse((await ask('/-/aws-model.json', { plugin: 'jobs' })).body)
  for (const name of Object.keys(model.operations)) t.match(name, /Job/, 'the model of one plugin')
  t.match(await ask('/-/aws-model.json', { plugin: 'absent' }), { status: 400, body: /"ArgumentName":"plugin"/ })
})

const grow = (plugin: string) => ({
  plugin,
  operation: defineCall({
    name: 'Grow',
    source: 'docs/test.md',
    summary: 'Makes it larger.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: `/-/${plugin}/v1/trees` },
    result: z.object({ Name: z.string() }),
    answer: async () => ({ Name: '' }),
  }),
})

t.test('calls of one name in two plugins', async (t) => {
  const { operations } = describeForAws([grow('park'), grow('wood')])
  t.same(Object.keys(operations as object), ['ParkGrow', 'WoodGrow'])
})
