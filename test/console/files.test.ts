import { readdirSync, readFileSync } from 'node:fs'
import { type RequestOptions, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { runCli, startCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { type Answer, answerTo, send } from '../support/sign/send.js'

/** What a browser loads until the first screen is there, each file compressed, bytes. */
const FIRST_BYTES = 60 * 1024

const DEFAULT_PORT = 9001

const files = readdirSync('console', { recursive: true, encoding: 'utf8' }).filter((file) =>
  /\.(js|css|html|svg)$/.test(file),
)

/** Each as the server sends it. */
function bytesOf(names: Iterable<string>): number {
  return [...names].reduce((sum, name) => sum + gzipSync(readFileSync(join('console', name))).length, 0)
}

/** The module and all that it imports. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found
  found.add(name)
  const text = readFileSync(join('console', name), 'utf8')
  for (const [, path = ''] of text.matchAll(/^(?:import|export) (?:[^'"]* from )?['"](\.[^'"]+)['"]/gm))
    withImports(posix.join(posix.dirname(name), path), found)
  return found
}

interface Screen {
  readonly path: string
  readonly file: string
  readonly view: string
}

t.test('the first screen needs little, and every screen is there', async (t) => {
  const { screens } = (await import(pathToFileURL('console/screens.js').href)) as { screens: readonly Screen[] }
  const start = withImports('main.js')
  const first = new Set([...start, ...withImports(`screens/${screens[0]?.file}.js`)])
  for (const name of ['vendor/vendor.js', 'lib/api.js', 'screens/buckets.js']) t.ok(first.has(name), name)
  const styles = files.filter((file) => file.endsWith('.css'))
  const page = readFileSync('console/index.html', 'utf8')
  for (const file of styles) t.ok(page.includes(`href="${file}"`), `${file} is in use`)
  const size = bytesOf(['index.html', 'icon.svg', ...styles, ...first])
  t.ok(size <= FIRST_BYTES, `${size} bytes until the first screen, in ${first.size} modules`)
  for (const { path, file, view } of screens) {
    t.match(readFileSync(`console/screens/${file}.js`, 'utf8'), new RegExp(`^export function ${view}\\(`, 'm'), path)
    t.notOk(start.has(`screens/${file}.js`), `${file} is loaded when its address is opened`)
  }
})

t.test('served', async (t) => {
  const server = await startDealgate(t, { args: ['--console-port', '0'] })
  await t.test('files', (t) => served(t, server))
  await t.test('CORS', (t) => cors(t, server))
  await t.test('the way to it', (t) => way(t, server))
  await t.test('a port that is in use', (t) => taken(t, server))
})

t.test('workers, and a console behind a reverse proxy', async (t) => {
  const url = 'https://console.example.com'
  const server = await startDealgate(t, { args: ['--workers', '2', '--console-port', '0', '--console-url', url] })
  t.equal(server.console, url)
  const from = (origin: string) =>
    fetch(server.endpoint, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT' } })
  t.equal((await from(url)).headers.get('access-control-allow-origin'), url)
  t.equal((await from('https://other.example.com')).headers.get('access-control-allow-origin'), null)
  const visit = await fetch(server.endpoint, { headers: { accept: 'text/html' }, redirect: 'manual' })
  t.equal(visit.headers.get('location'), `${url}/`)
})

/** Only the port that nobody has asked for may be missing. */
async function taken(t: Test, server: Dealgate): Promise<void> {
  const args = ['serve', '--port', '0', '--gateway-port', '0', '--data', t.testdir({})]
  const occupant = createServer()
  // Another program may have it, which is as good.
  await new Promise<void>((done) => occupant.once('error', () => done()).listen(DEFAULT_PORT, '127.0.0.1', done))
  t.teardown(() => occupant.close())
  const given = Number(new URL(server.console).port)
  const { code, stderr } = await runCli([...args, '--console-port', String(given)])
  t.equal(code, 1)
  t.match(
    stderr,
    `127.0.0.1:${given} (--console-port) is in use by another process. Choose another port with --console-port`,
  )
  const byVariable = await runCli(args, { DEALGATE_CONSOLE_PORT: String(DEFAULT_PORT) })
  t.match(byVariable, { code: 1, stderr: /--console-port/ })
  const started = await startCli<{ console?: string }>(t, args, { DEALGATE_CONSOLE_PORT: '' })
  t.equal(started.line.console, undefined)
  t.match(started.log, 'so that there is no console')
}

async function served(t: Test, server: Dealgate): Promise<void> {
  const page = await fetch(server.console)
  t.equal(page.status, 200)
  t.match(Object.fromEntries(page.headers), {
    'content-type': 'text/html; charset=utf-8',
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-cache',
  })
  const policy = page.headers.get('content-security-policy') ?? ''
  for (const part of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ${server.endpoint}`,
    "frame-ancestors 'none'",
    "form-action 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ])
    t.ok(policy.split('; ').includes(part), part)
  t.notMatch(policy, /unsafe|\*/)
  for (const file of files) {
    const answer = await fetch(`${server.console}/${file}`)
    t.equal(answer.status, 200, file)
    t.equal(answer.headers.get('content-security-policy'), policy)
    const etag = answer.headers.get('etag') ?? ''
    const again = await fetch(`${server.console}/${file}`, { headers: { 'if-none-match': etag } })
    t.equal(again.status, 304)
    t.equal(answer.headers.get('content-encoding'), 'gzip', 'as browsers ask for it')
    const plain = await fetch(`${server.console}/${file}`, { headers: { 'accept-encoding': 'identity' } })
    t.same([plain.headers.get('content-encoding'), await plain.text()], [null, await answer.text()])
  }
  const config = (await (await fetch(`${server.console}/config.json`)).json()) as Record<string, unknown>
  t.match(config, { endpoint: null, scheme: 'http:', port: new URL(server.endpoint).port, region: 'us-east-1' })
  t.same(Object.keys(config).sort(), ['endpoint', 'oidc', 'port', 'region', 'scheme', 'version'], 'no secret')
  t.equal(config.oidc, null)
  for (const path of [
    '/../package.json',
    '/%2e%2e/package.json',
    '/README.md',
    '/lib',
    '/.hidden.js',
    '/lib//api.js',
    '/lib/..%2fmain.js',
  ])
    t.equal((await asIs(server.console, { path })).status, 404, path)
  t.equal((await fetch(server.console, { method: 'POST' })).status, 405)
  const { hostname, port } = new URL(server.console)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write('GET /main.js HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2000))
  await new Promise((done) => socket.resume().once('close', done))
  t.ok(socket.bytesRead < 100_000, 'a client that does not wait for its answer is cut off')
}

async function cors(t: Test, server: Dealgate): Promise<void> {
  const asking = {
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'authorization,x-amz-date',
  }
  const preflight = (path: string, origin: string) =>
    fetch(`${server.endpoint}${path}`, { method: 'OPTIONS', headers: { origin, ...asking } })
  await send(server, { method: 'PUT', target: '/photos' })
  for (const path of ['/', '/photos/a', '/-/jobs/v1', '/absent/a?uploads=']) {
    const allowed = await preflight(path, server.console)
    t.equal(allowed.status, 204, path)
    t.match(Object.fromEntries(allowed.headers), {
      'access-control-allow-origin': server.console,
      'access-control-allow-methods': 'GET, HEAD, PUT, POST, DELETE',
      'access-control-allow-headers': 'authorization, *',
      vary: 'Origin',
    })
    t.notOk(allowed.headers.has('access-control-allow-credentials'))
    for (const other of ['https://attacker.example', server.endpoint, 'null']) {
      const refused = await preflight(path, other)
      t.ok(refused.status >= 400 && !refused.headers.has('access-control-allow-origin'), `${path} from ${other}`)
    }
  }
  const get = (target: string, origin: string) => send(server, { method: 'GET', target, headers: { origin } })
  const exposed = { 'access-control-allow-origin': server.console, 'access-control-expose-headers': '*' }
  for (const target of ['/photos', '/photos/absent', '/photos/%ff', '/photos?unknown']) {
    const { headers } = await get(target, server.console)
    t.match(headers, exposed, `the console reads the answer of ${target}`)
    t.notOk('access-control-allow-credentials' in headers)
  }
  t.notOk('access-control-allow-origin' in (await get('/photos', 'https://attacker.example')).headers)
}

async function way(t: Test, server: Dealgate): Promise<void> {
  const html = { accept: 'text/html,application/xhtml+xml' }
  const visit = (headers: Record<string, string>, path = '/') =>
    fetch(`${server.endpoint}${path}`, { headers, redirect: 'manual' })
  const sent = await visit(html)
  t.equal(sent.status, 302)
  t.equal(sent.headers.get('location'), `${server.console}/`)
  const forwarded = await visit({ ...html, 'x-forwarded-host': 'attacker.example' })
  t.equal(forwarded.headers.get('location'), `${server.console}/`)
  const other = await asIs(server.endpoint, { headers: { host: 'attacker.example:80', accept: 'text/html' } })
  t.match(other, { status: 200, headers: { location: undefined } })
  t.match(other.body.toString(), `at port ${new URL(server.console).port} of this host`)
  for (const [headers, path] of [
    [{}, '/'],
    [{ accept: '*/*' }, '/'],
    [html, '/?list-type=2'],
    [html, '/photos'],
  ] as const)
    t.equal((await visit(headers, path)).headers.get('location'), null, 'no other request is')
  t.equal((await send(server, { method: 'GET', target: '/', headers: html })).status, 200)
  const none = await startDealgate(t)
  t.equal(none.console, '')
  t.equal((await fetch(none.endpoint, { headers: html, redirect: 'manual' })).status, 403)
}

/** The answer to a request whose path and headers are as they are, which `fetch` would change. */
function asIs(url: string, options: RequestOptions): Promise<Answer> {
  const asked = request(url, options)
  asked.end()
  return answerTo(asked)
}
