import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import { ConfigError, readConfig } from '../../cli/config/config.js'
import { Issuer } from '../../cli/oidc/issuer.js'
import { keysOf, mayName, parseRole, readIssuer } from '../../cli/oidc/roles.js'
import { listen } from '../support/server/listen.js'

t.test('a role names a key pair, a claim and its value', async (t) => {
  t.same(parseRole('READER:groups=staff'), { key: 'READER', claim: 'groups', value: 'staff' })
  t.same(parseRole('BUILD:sub=repo:a/b:ref=main'), { key: 'BUILD', claim: 'sub', value: 'repo:a/b:ref=main' })
  const claim = 'https://example.com/groups'
  t.same(parseRole(`A:${claim}=b`), { key: 'A', claim, value: 'b' })
  for (const text of [
    '',
    'READER',
    'READER:groups',
    'READER:=staff',
    ':groups=staff',
    'READER:groups=',
    'groups=READER',
  ])
    t.throws(() => parseRole(text), Error, text)
})

t.test('claims give the key pairs of the roles that they hold', async (t) => {
  const roles = ['ADMIN:groups=admins', 'READER:groups=staff', 'READER:sub=bob', 'OK:verified=true', 'N:level=3'].map(
    parseRole,
  )
  t.same(keysOf({ groups: ['staff', 'admins'], sub: 'bob' }, roles), ['ADMIN', 'READER'])
  t.same(keysOf({ groups: 'staff' }, roles), ['READER'])
  t.same(keysOf({ verified: true, level: 3 }, roles), ['OK', 'N'])
  for (const claims of [
    {},
    { groups: 'staff admins' },
    { groups: [['staff']] },
    { groups: { staff: true } },
    { groups: null },
    { Groups: ['staff'] },
    JSON.parse('{"__proto__": {"groups": ["staff"]}}'),
  ])
    t.same(keysOf(claims, roles), [], JSON.stringify(claims))
  t.same(keysOf({}, [parseRole('A:constructor=x'), parseRole('A:toString=x')]), [])
})

t.test('an issuer answers over https, or from this machine', async (t) => {
  for (const url of [
    'https://login.example.com',
    'https://a.example/realms/b/',
    'http://127.0.0.1:8080',
    'http://localhost',
    'http://[::1]:1',
  ])
    t.ok(readIssuer(url), url)
  for (const url of [
    ...['http://login.example.com', 'http://127.0.0.1.example.com', 'http://localhost.example.com', 'ftp://a.example'],
    ...['https://a.example?b', 'https://a.example#b', 'https://user:secret@a.example', 'javascript:alert(1)', 'a'],
  ])
    t.throws(() => readIssuer(url), Error, url)
})

t.test('an issuer elsewhere names no address on this machine', async (t) => {
  const may = (issuer: string, url: string) => mayName(new URL(issuer), new URL(url))
  t.ok(may('https://login.example.com', 'https://keys.example.net/jwks'))
  t.ok(may('http://localhost:8080', 'http://localhost:8080/jwks'))
  t.notOk(may('https://login.example.com', 'http://127.0.0.1:8080/jwks'))
  t.notOk(may('http://localhost:8080', 'http://keys.example.net/jwks'))
})

t.test('keys stay while they are fresh, though the issuer fails when a token names another', async (t) => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), alg: 'ES256', kid: 'one' }
  const asked: string[] = []
  let fails = false
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    if (fails) return response.writeHead(500).end()
    response.setHeader('content-type', 'application/json')
    const metadata = { issuer, jwks_uri: `${issuer}/keys/` }
    response.end(JSON.stringify(url === '/keys/' ? { keys: [jwk] } : metadata))
  })
  const issuer = await listen(server, t)
  const one = new Issuer({ issuer, audiences: ['a'], roles: [], owner: () => 'OWNER', log: { warn: () => {} } })
  const token = (kid: string) =>
    new SignJWT({ iss: issuer, aud: 'a', sub: 'bob' })
      .setProtectedHeader({ alg: 'ES256', kid })
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey)
  const [known, unknown] = [await token('one'), await token('two')]
  t.match(await one.verify(known), { subject: 'bob' })
  t.same(asked, ['/.well-known/openid-configuration', '/keys/'], 'an address may end in a slash')
  t.match(await one.verify(unknown), { kind: 'invalid' })
  t.equal(asked.length, 2, 'it is not asked for each name of a key')
  now += 31_000
  fails = true
  const both = await Promise.all([one.verify(unknown), one.verify(known)])
  t.match(both, [{ kind: 'later' }, { subject: 'bob' }])
  t.match(await one.verify(known), { subject: 'bob' })
  await Promise.all(Array.from({ length: 20 }, () => one.verify(unknown)))
  t.equal(asked.length, 3, 'nor again at once after a failure')
  now += 6000
  fails = false
  t.match(await one.verify(unknown), { kind: 'invalid' })
  t.equal(asked.length, 4)
})

t.test('options that belong together', async (t) => {
  const problems = (flags: Record<string, unknown>): readonly string[] => {
    try {
      readConfig({ env: {}, flags })
    } catch (error) {
      if (error instanceof ConfigError) return error.problems
      throw error
    }
    return []
  }
  const issuer = { oidcIssuer: 'https://login.example.com' }
  const client = { oidcClientId: 'console' }
  t.same(problems({ ...issuer, ...client }), [])
  t.match(problems(issuer), [/--oidc-issuer needs --oidc-client-id, or --oidc-audience/])
  t.same(problems({ ...issuer, oidcAudience: ['ci'], consolePort: 'off' }), [])
  t.match(problems({ ...client, oidcRole: ['A:b=c'] }), [/--oidc-client-id needs/, /--oidc-role needs --oidc-issuer/])
  t.match(problems({ ...issuer, ...client, consolePort: 'off' }), [/--oidc-client-id is for the console/])
  // The issuer sends users back to one address, which no request may choose.
  t.match(problems({ ...issuer, ...client, host: '0.0.0.0' }), [/--oidc-client-id needs --console-url/])
  t.same(problems({ ...issuer, ...client, host: '0.0.0.0', consoleUrl: 'https://console.example.com' }), [])
  t.match(problems({ ...issuer, ...client, oidcScope: 'email' }), [/--oidc-scope must have the word openid/])
  t.match(problems({ oidcIssuer: 'http://login.example.com', ...client }), [/--oidc-issuer/])
})
