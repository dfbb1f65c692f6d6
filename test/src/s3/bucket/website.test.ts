import { get, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { serve } from '../../../../cli/process/listen.js'
import { contentMd5 } from '../../../support/content/content.js'
import { startWorld } from '../../access/authorizer/world.js'

const configuration = (content: string) => `<WebsiteConfiguration>${content}</WebsiteConfiguration>`
const INDEX = '<IndexDocument><Suffix>index.html</Suffix></IndexDocument>'
const ERROR = '<ErrorDocument><Key>error.html</Key></ErrorDocument>'
const rules = (...list: [condition: string, redirect: string][]) =>
  `<RoutingRules>${list
    .map(([condition, redirect]) => {
      const when = condition === '' ? '' : `<Condition>${condition}</Condition>`
      return `<RoutingRule>${when}<Redirect>${redirect}</Redirect></RoutingRule>`
    })
    .join('')}</RoutingRules>`

interface Visited {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** The bucket `site` of the owner as a website, whose objects everybody may read. */
async function startSite(t: Test, { listable = false } = {}) {
  const world = await startWorld(t, undefined, { websiteDomains: ['web.test'] })
  const { as, status, server } = world
  const handler = (...given: Parameters<typeof server.proxy.websites>) => server.proxy.websites(...given)
  const site = await serve({ handler, host: '127.0.0.1', port: 0 })
  t.teardown(() => site.close(0))
  await as.owner({ method: 'PUT', path: '/site' })
  const allow = (Action: string, Resource: string) => ({ Effect: 'Allow', Principal: '*', Action, Resource })
  const policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      allow('s3:GetObject', 'arn:aws:s3:::site/*'),
      { ...allow('s3:GetObject', 'arn:aws:s3:::site/secret*'), Effect: 'Deny' },
      ...(listable ? [allow('s3:ListBucket', 'arn:aws:s3:::site')] : []),
    ],
  })
  const set = (query: string, body: string) =>
    status('owner', 'PUT', '/site', { query: { [query]: '' }, body, headers: contentMd5(body) })
  t.equal(await set('policy', policy), '204 ')
  const put = (key: string, body: string, headers = {}) =>
    as.owner({ method: 'PUT', path: `/site/${key}`, body, headers: { 'content-type': 'text/html', ...headers } })
  const visit = (path: string, { method = 'GET', headers = {}, host = 'site.web.test' } = {}): Promise<Visited> =>
    new Promise((resolve, reject) => {
      const request = get(
        { port: site.port, host: '127.0.0.1', path, method, headers: { host, ...headers } },
        (answer) => {
          const { statusCode: status = 0, headers } = answer
          text(answer).then((body) => resolve({ status, headers, body }), reject)
        },
      )
      request.on('error', reject)
    })
  return { ...world, set, put, visit }
}

t.test('index, error document, and who may what', async (t) => {
  const { set, put, visit } = await startSite(t, { listable: true })
  t.match(await visit('/'), { status: 404, body: /Code: NoSuchWebsiteConfiguration/ })
  t.equal(await set('website', configuration(INDEX + ERROR)), '200 ')
  for (const [key, body] of Object.entries({
    'index.html': '<script>1</script>',
    'docs/index.html': 'docs',
    'docs/page é.html': 'a page',
    'secret.html': 'secret',
  }))
    await put(key, body)
  const home = await visit('/')
  t.match(home, { status: 200, body: '<script>1</script>', headers: { 'content-type': 'text/html' } })
  t.notOk('content-security-policy' in home.headers, 'scripts run')
  t.match(await visit('/docs/'), { status: 200, body: 'docs' })
  t.match(await visit('/docs/page%20%C3%A9.html?x=1'), { status: 200, body: 'a page' })
  t.match(await visit('/docs'), { status: 302, headers: { location: '/docs/' } })
  t.match(await visit('/index.html', { headers: { range: 'bytes=1-6' } }), { status: 206, body: 'script' })
  t.match(await visit('/', { headers: { 'if-none-match': String(home.headers.etag) } }), { status: 304 })
  t.match(await visit('/', { method: 'HEAD' }), { status: 200, body: '', headers: { 'content-length': '18' } })
  const absent = await visit('/absent')
  t.match(absent, { status: 404, body: /<h1>404 NoSuchKey<\/h1>[\s\S]*<li>Key: absent<\/li>/ })
  t.match(absent.headers['content-type'], /^text\/html/)
  t.match(await visit('/<b>'), { body: /Key: &lt;b&gt;/ })
  t.match(await visit('/secret.html'), { status: 403, body: /Code: AccessDenied/ })
  t.match(await visit('/', { method: 'POST' }), {
    ...{ status: 405, body: /Code: MethodNotAllowed/ },
    headers: { allow: 'GET, HEAD, OPTIONS', 'x-amz-error-code': 'MethodNotAllowed' },
  })
  t.match(await visit('/%ff'), { status: 400, body: /Code: InvalidURI/ })
  t.match(await visit('/', { host: 'other.web.test' }), { status: 404, body: /NoSuchWebsiteConfiguration/ })
  t.match(await visit('/', { host: 'site' }), { status: 200 }, 'a bucket that is named as the host')
  await put('error.html', 'our own page')
  t.match(await visit('/absent', { headers: { range: 'bytes=0-0' } }), { status: 404, body: 'our own page' })
  t.match(await visit('/secret.html'), { status: 403, body: 'our own page' })
  // A HEAD has nothing else that states the error.
  for (const [method, path, key] of [
    ['GET', '/absent', 'absent'],
    ['HEAD', '/absent', 'absent'],
    ['HEAD', '/%C3%A9%E8%AA%9E%0A', '\u00c3\u00a9\u00e8\u00aa\u009e'],
  ] as const)
    t.match(await visit(path, { method }), {
      status: 404,
      headers: {
        'x-amz-error-code': 'NoSuchKey',
        'x-amz-error-message': 'The specified key does not exist.',
        'x-amz-error-detail-key': key,
      },
    })
  t.equal(await set('website', configuration(INDEX)), '200 ')
})

t.test('who may not list learns nothing', async (t) => {
  const { set, visit, status } = await startSite(t)
  t.equal(await set('website', configuration(INDEX)), '200 ')
  t.match(await visit('/absent'), { status: 403, body: /Code: AccessDenied/ })
  t.equal(await status('anonymous', 'GET', '/site/absent'), '403 AccessDenied', 'as at the S3 endpoint')
})

t.test('pages of other origins', async (t) => {
  const { set, put, visit } = await startSite(t, { listable: true })
  const cors = `<CORSConfiguration><CORSRule><AllowedOrigin>http://app.test</AllowedOrigin>
    <AllowedMethod>GET</AllowedMethod><AllowedHeader>x-*</AllowedHeader></CORSRule></CORSConfiguration>`
  t.equal(await set('cors', cors), '200 ')
  const asked = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-mine' }
  const preflight = (origin: string, headers = {}) =>
    visit('/a', { method: 'OPTIONS', headers: { origin, ...asked, ...headers } })
  t.match(await preflight('http://app.test'), { status: 404, body: /NoSuchWebsiteConfiguration/ })
  t.equal(await set('website', configuration(INDEX)), '200 ')
  await put('a', 'a page')
  t.match(await preflight('http://app.test'), {
    ...{ status: 200, body: '' },
    headers: { 'access-control-allow-origin': 'http://app.test', 'access-control-allow-headers': 'x-mine' },
  })
  const refused = { status: 403, headers: { 'x-amz-error-code': 'AccessForbidden' } }
  t.match(await preflight('http://other.test'), refused)
  t.match(await preflight('http://app.test', { 'access-control-request-method': 'PUT' }), refused)
  t.match(await visit('/a', { method: 'OPTIONS' }), { status: 400, body: /Origin request header needed/ })
  const answer = await visit('/a', { headers: { origin: 'http://app.test' } })
  t.match(answer, { status: 200, headers: { 'access-control-allow-origin': 'http://app.test' } })
})

t.test('redirects', async (t) => {
  const { set, put, visit, as } = await startSite(t, { listable: true })
  await put('old.html', 'x', { 'x-amz-website-redirect-location': '/new.html' })
  t.equal((await as.owner({ method: 'GET', path: '/site/old.html' })).status, 200, 'the S3 endpoint does not redirect')
  const list = rules(
    ['<KeyPrefixEquals>docs/</KeyPrefixEquals>', '<ReplaceKeyPrefixWith>pages/</ReplaceKeyPrefixWith>'],
    [
      '<KeyPrefixEquals>a b/</KeyPrefixEquals><HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>',
      '<HostName>other.test:81</HostName><Protocol>https</Protocol><HttpRedirectCode>307</HttpRedirectCode>',
    ],
    ['<HttpErrorCodeReturnedEquals>403</HttpErrorCodeReturnedEquals>', '<ReplaceKeyWith>login</ReplaceKeyWith>'],
  )
  t.equal(await set('website', configuration(INDEX + list)), '200 ')
  const moved = async (path: string) => {
    const { status, headers } = await visit(path)
    return [status, headers.location]
  }
  t.same(await moved('/old.html'), [301, '/new.html'])
  t.same(await moved('/docs/x'), [301, 'http://site.web.test/pages/x'])
  t.same(await moved('/a%20b/x'), [307, 'https://other.test:81/a%20b/x'])
  t.same(await moved('/secret'), [301, 'http://site.web.test/login'])
  t.same(await moved('/c/x'), [404, undefined])
  const all = '<RedirectAllRequestsTo><HostName>www.test</HostName></RedirectAllRequestsTo>'
  t.equal(await set('website', configuration(all)), '200 ')
  t.same(await moved('/any?thing=1'), [301, 'http://www.test/any?thing=1'])
  const shown = await as.owner({ method: 'GET', path: '/site', query: { website: '' } })
  t.match(shown.body, all)
  t.equal((await as.owner({ method: 'DELETE', path: '/site', query: { website: '' } })).status, 204)
  t.same(await moved('/any'), [404, undefined])
})

t.test('what cannot be', async (t) => {
  const { set, server } = await startSite(t)
  const redirect = (content: string, condition = '') => INDEX + rules([condition, content])
  const status = (code: string) => `<HttpErrorCodeReturnedEquals>${code}</HttpErrorCodeReturnedEquals>`
  for (const [content, answer] of [
    ['', '400 InvalidArgument'],
    ['<IndexDocument><Suffix>a/b</Suffix></IndexDocument>', '400 InvalidArgument'],
    ['<IndexDocument><Suffix></Suffix></IndexDocument>', '400 InvalidArgument'],
    [`${INDEX}<ErrorDocument><Key></Key></ErrorDocument>`, '400 InvalidArgument'],
    [`${INDEX}<RedirectAllRequestsTo><HostName>a</HostName></RedirectAllRequestsTo>`, '400 MalformedXML'],
    ['<RedirectAllRequestsTo><HostName>a b</HostName></RedirectAllRequestsTo>', '400 InvalidArgument'],
    [
      '<RedirectAllRequestsTo><HostName>a</HostName><Protocol>ftp</Protocol></RedirectAllRequestsTo>',
      '400 InvalidRequest',
    ],
    [redirect(''), '400 MalformedXML'],
    [redirect('<HttpRedirectCode>200</HttpRedirectCode>'), '400 InvalidRequest'],
    [
      redirect('<ReplaceKeyWith>a</ReplaceKeyWith><ReplaceKeyPrefixWith>b</ReplaceKeyPrefixWith>'),
      '400 InvalidRequest',
    ],
    [redirect('<ReplaceKeyWith>a</ReplaceKeyWith>', status('200')), '400 InvalidRequest'],
    [
      INDEX + rules(...Array.from({ length: 51 }, (): [string, string] => ['', '<ReplaceKeyWith>a</ReplaceKeyWith>'])),
      '400 InvalidRequest',
    ],
  ] as const)
    t.equal(await set('website', configuration(content)), answer, content)
  await server.restart({ websiteDomains: undefined })
  t.equal(await set('website', configuration(INDEX)), '501 NotImplemented', 'without a port for them')
})
