import t from 'tap'
import { ConfigError, readConfig } from '../../cli/config/config.js'
import { keysOf, parseRole, readIssuer } from '../../cli/oidc/roles.js'

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
