import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { Between, type Passed } from '../../support/gateway/between.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest, unsignedRequest, type Wanted } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }

/** As WHATWG URLs, and nginx with a path in `proxy_pass`. */
const resolvesDots = (path: string) => {
  const { pathname, search } = new URL(path, 'http://gateway')
  return pathname + search
}
/** As nginx with `merge_slashes`, and Go's ServeMux. */
const joinsSlashes = (path: string) => path.replace(/\/{2,}/g, '/')

type Way = Partial<Pick<Between, 'rewrite' | 'fate' | 'leavesUnread'>>
/** A way that changes the paths of these requests; default all. */
const changing = (change: (path: string) => string, only?: string): Way => ({
  rewrite: ({ method, path }) => (only === undefined || only === method ? change(path) : path),
})
/** The question whether the way changes paths. */
const isProbe = ({ path }: Pick<Passed, 'path'>) => path.includes('x'.repeat(900))

/** A server whose way to its gateway is such a one. */
async function start(t: Test, way: Way) {
  const server = await startInProcess(t, 'full', { identities: [owner] })
  const { url, account } = server.gateway
  const between = Object.assign(await Between.start(t, server.gateway), way)
  await server.restart({ gateway: { url: between.url, account } })
  const ask =
    (endpoint: string) =>
    async (method: string, path: string, more: Partial<Wanted> = {}) => {
      const { status, code, body } = await signedRequest(endpoint, owner, { method, path, ...more })
      return `${status} ${code === '' && method === 'GET' ? body : code}`
    }
  const status = ask(server.endpoint)
  /** Past the way. */
  const direct = async (...args: Parameters<typeof status>) => {
    const beside = await startInProcess(t, 'full', { gateway: { url, account }, identities: [owner] })
    return ask(beside.endpoint)(...args)
  }
  const ready = async () => {
    const { status, body } = await unsignedRequest(server.endpoint, { method: 'GET', path: '/-/ready' })
    return { status, problem: JSON.parse(body).problem as string | undefined }
  }
  const warnings = () => server.lines.filter(({ level, msg }) => level === 40 && /resolves/.test(msg)).length
  const probes = () => between.requests.filter(isProbe).length
  return { server, between, status, direct, ready, warnings, probes }
}

t.test('keys that the way to the gateway would change are refused', async (t) => {
  const ways = { dots: resolvesDots, slashes: joinsSlashes, both: (path: string) => resolvesDots(joinsSlashes(path)) }
  for (const [name, change] of Object.entries(ways)) {
    const { server, status, direct, ready, warnings, probes } = await start(t, changing(change))
    t.equal(await status('PUT', '/box'), '200 ')
    t.equal(await status('PUT', '/box/x', { body: 'old' }), '200 ')
    for (const path of ['/box/p/../x', '/box/./x', '/box/p/..\\x', '/box/..', '/box//x', '/box/p//x']) {
      const refused = (wanted: string, got: string) => t.equal(got, wanted, `${name} ${path}`)
      refused('400 InvalidArgument', await status('PUT', path, { body: 'new' }))
      refused('400 InvalidArgument', await status('GET', path))
      refused('400 ', await status('HEAD', path))
      const onlyIf = { headers: { 'if-match': '*' } }
      refused('400 InvalidArgument', await status('DELETE', path, onlyIf))
      refused('400 InvalidArgument', await status('POST', path, { query: { uploads: '' } }))
      refused('400 InvalidArgument', await status('PUT', path, { headers: { 'x-amz-copy-source': '/box/x' } }))
      const from = { 'x-amz-copy-source': encodeURI(path) }
      refused('400 InvalidArgument', await status('PUT', '/box/copy', { headers: from }))
    }
    const list =
      '<Delete><Object><Key>p/../x</Key></Object><Object><Key>./x</Key><ETag>*</ETag></Object><Object><Key>/x</Key></Object></Delete>'
    const headers = { 'content-md5': createHash('md5').update(list).digest('base64') }
    const all = { method: 'POST', path: '/box', query: { delete: '' }, headers, body: list }
    const stored = async () => {
      const { body } = await signedRequest(server.endpoint, owner, { method: 'GET', path: '/box' })
      return [...body.matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => key)
    }
    for (const path of ['/box/p/../x', '/box//x', '/box/./x']) await direct('PUT', path, { body: 'there before' })
    t.same(await stored(), ['./x', '/x', 'p/../x', 'x'])
    const removed = (await signedRequest(server.endpoint, owner, all)).body
    t.equal(removed.match(/<Deleted>/g)?.length, 2, removed)
    t.match(removed, '<Error><Key>./x</Key><Code>InvalidArgument</Code>')
    t.equal(await status('DELETE', '/box/./x'), '204 ', 'a removal names its key in a body')
    t.same(await stored(), ['x'])
    t.equal(await status('GET', '/box/x'), '200 old', 'the object that they would have reached')
    t.equal(await status('PUT', '/box/p/..x/y./', { body: '' }), '200 ', 'a key without such elements')
    t.match(await ready(), { status: 200, problem: /resolves "\." and "\.\."/ })
    t.equal(warnings(), 1, 'one warning')
    t.equal(probes(), 1, 'one question')
  }
})

t.test('a way that changes uploads alone is found', async (t) => {
  const { status } = await start(t, changing(resolvesDots, 'PUT'))
  t.equal(await status('PUT', '/box'), '200 ')
  t.equal(await status('PUT', '/box/x', { body: 'old' }), '200 ')
  t.equal(await status('PUT', '/box/p/../x', { body: 'new' }), '400 InvalidArgument')
  t.equal(await status('GET', '/box/x'), '200 old')
})

t.test('on a way that changes nothing, the owner uses every key', async (t) => {
  const { server, status, ready, probes } = await start(t, {})
  await server.proxy.ready()
  t.equal(probes(), 2, 'asked once before the first request, for both directions')
  t.equal(await status('PUT', '/box'), '200 ')
  t.equal(await status('PUT', '/box/x', { body: 'old' }), '200 ')
  for (const path of ['/box/p/../x', '/box/./x', '/box//x']) {
    t.equal(await status('PUT', path, { body: path }), '200 ')
    t.equal(await status('GET', path), `200 ${path}`)
    t.equal(await status('DELETE', path), '204 ')
  }
  t.equal(await status('GET', '/box/x'), '200 old')
  t.same(await ready(), { status: 200, problem: undefined })
  t.equal(probes(), 2)
})

t.test('a gateway that is down at the start is asked later', async (t) => {
  const { server, between, status, warnings } = await start(t, { ...changing(resolvesDots), fate: () => 'cut-before' })
  await t.rejects(server.proxy.ready(), { code: 'ServiceUnavailable' })
  t.equal(await status('PUT', '/box/p/../x', { body: 'new' }), '503 ServiceUnavailable')
  t.equal(warnings(), 0)
  between.fate = () => 'pass'
  await until('the gateway is back', async () => (await status('PUT', '/box')) === '200 ')
  t.equal(await status('PUT', '/box/x', { body: 'old' }), '200 ')
  t.equal(await status('PUT', '/box/p/../x', { body: 'new' }), '400 InvalidArgument')
  t.equal(await status('GET', '/box/x'), '200 old')
})

t.test('a start does not wait for a question that is never answered', async (t) => {
  const { server, status, ready } = await start(t, {
    leavesUnread: (request) => request.method === 'PUT' && isProbe(request),
  })
  await server.proxy.ready()
  t.same(await ready(), { status: 200, problem: undefined })
  t.equal(await status('PUT', '/box'), '200 ')
  t.equal(await status('PUT', '/box/x', { body: 'x' }), '200 ')
})
