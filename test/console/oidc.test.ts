import { createServer, type RequestListener } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { HTTPRequest } from 'puppeteer-core'
import t from 'tap'
import { listen } from '../support/server/listen.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startConsole, Tab } from './browser.js'

const CLIENT = 'console'
const OWNER = { accessKey: 'OWNERKEY', secretKey: 'a-secret-of-the-owner' }
const GROUPS: Readonly<Record<string, readonly string[]>> = { ann: ['staff', 'admins'], bob: ['staff'], eve: [] }

/** The package has no types of its own. */
interface ProviderPackage {
  readonly interactionPolicy: {
    base(): { get(prompt: string): { readonly checks: { remove(check: string): void } } }
  }
  readonly default: new (issuer: string, configuration: object) => { callback(): RequestListener }
}

async function newProvider(issuer: string, page: string, key: JWK): Promise<RequestListener> {
  const { default: Provider, interactionPolicy } = (await import('oidc-provider' as string)) as ProviderPackage
  const claims = (sub: string) => ({ sub, groups: GROUPS[sub] ?? [] })
  const policy = interactionPolicy.base()
  // Once is enough: it would ask again at each sign-in, because the client has no https in this test.
  policy.get('consent').checks.remove('native_client_prompt')
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [
      {
        client_id: CLIENT,
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: [`${page}/`],
      },
    ],
    interactions: { policy },
    scopes: ['openid', 'groups'],
    claims: { openid: ['sub'], groups: ['groups'] },
    conformIdTokenClaims: false,
    // Seconds; without them, the package says that it chooses them.
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    clientBasedCORS: (_: unknown, origin: string) => origin === page,
    findAccount: async (_: unknown, sub: string) => ({ accountId: sub, claims: async () => claims(sub) }),
  })
  return provider.callback()
}

t.test('users of an OpenID Connect issuer sign in', async (t) => {
  let answer: RequestListener = (_, response) => response.writeHead(503).end()
  const server = createServer((request, response) => answer(request, response))
  const issuer = await listen(server, t)
  const scene = await startConsole(t, {
    args: [
      ...['--access-key', OWNER.accessKey, '--secret-key', OWNER.secretKey],
      ...['--oidc-issuer', issuer, '--oidc-client-id', CLIENT, '--oidc-scope', 'openid groups'],
      ...['--oidc-role', 'OWNERKEY:groups=staff', '--oidc-role', 'ADMIN:groups=admins'],
      ...['--oidc-role', 'READER:groups=staff', '--oidc-role', 'GONE:groups=staff'],
    ],
  })
  if (!scene) return
  const { tab, browser, accessible } = scene
  const { console: page, endpoint, region } = scene.server
  const owner = { endpoint, region, ...OWNER }
  const add = async (id: string, may: object) => {
    const headers = { 'content-type': 'application/json' }
    const body = Buffer.from(JSON.stringify(may))
    t.equal((await send(owner, { method: 'POST', target: `/-/keys/v1/${id}`, headers, body })).status, 200)
  }
  await add('ADMIN', { All: true })
  await add('READER', { Rights: [{ Bucket: 'photos', Access: 'read' }] })
  await send(owner, { method: 'PUT', target: '/photos' })

  await t.test('an issuer that is away stops no one with a key pair', async (t) => {
    await tab.sees('cannot be used now', 'A key pair works without it')
    const config = (await (await fetch(`${page}/config.json`)).json()) as { oidc: object }
    t.match(config.oidc, { issuer, clientId: CLIENT, redirectUri: `${page}/`, problem: /status 503/ })
    await tab.signIn({ pair: { id: OWNER.accessKey, secret: OWNER.secretKey } })
    await tab.click('button', 'Sign out')
    tab.complaints.length = 0
  })

  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
  answer = await newProvider(issuer, page, { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'one' })
  await until('the server asks the issuer again', async () => {
    const { oidc } = (await (await fetch(`${page}/config.json`)).json()) as { oidc: { problem?: string } }
    return oidc.problem === undefined
  })

  /** Leaves for the issuer as this user; once a user has agreed, the issuer sends the browser back at once. */
  const leave = async (of: Tab, { user, box }: { user?: string; box?: string } = {}) => {
    await of.page.goto(page)
    if (box) {
      await of.click('summary', 'Options')
      await of.click('checkbox', box)
    }
    await of.click('button', `Sign in with ${new URL(issuer).host}`)
    if (user === undefined) return
    for (const [name, text] of [
      ['login', user],
      ['password', 'any'],
    ] as const) {
      const input = await of.page.waitForSelector(`input[name=${name}]`)
      await input?.type(text)
    }
    await of.page.click('button[type=submit]')
    await of.untilTrue(`document.body.innerText.includes('Authorize')`)
    await of.page.click('button[type=submit]')
  }
  const storage = (of: Tab) => of.page.evaluate('JSON.stringify([{ ...localStorage }, Object.keys(sessionStorage)])')
  const fresh = async () => {
    const other = await Tab.open(t, browser, scene.server)
    return other
  }

  await t.test('one role is taken, and leaves nothing behind', async (t) => {
    const bob = await fresh()
    await accessible('the sign-in with an issuer')
    await leave(bob, { user: 'bob' })
    await bob.sees('Sign out')
    t.equal(new URL(bob.page.url()).search, '', 'the code has left the address')
    t.equal(await storage(bob), '[{},[]]')
    await bob.goTo('#/buckets', 'photos')
    // A narrow window shows it with the list of screens.
    await bob.untilTrue(`document.body.textContent.includes('bob as READER')`)
    await bob.click('button', 'Sign out')
    t.same(bob.complaints, [])
  })

  await t.test('several are chosen from, and Read only narrows the rights', async (t) => {
    const ann = await fresh()
    await leave(ann, { user: 'ann', box: 'Read only' })
    await ann.sees('Role')
    t.notMatch(await ann.text(), /OWNERKEY|GONE/, 'neither the owner nor a key pair that is not there')
    await ann.choose('Role', 'ADMIN')
    await ann.click('button', 'Sign in', 'Sign out', 'Read only')
    await ann.untilTrue(`document.body.textContent.includes('ann as ADMIN')`)
    t.same(ann.complaints, [])
  })

  await t.test('a user without a role reads why', async () => {
    const eve = await fresh()
    await leave(eve, { user: 'eve' })
    await eve.sees('this server gives you no role')
  })

  await t.test('what another has made up is refused', async (t) => {
    const victim = await fresh()
    await leave(victim, { user: 'bob' })
    await victim.sees('Sign out')
    /**
     * Has the issuer send the browser back, and opens what `change` makes of that address in its place.
     * @param kept what the tab has kept of the sign-in, which it gets in place of its own
     */
    const opened = async (change: (url: URL) => void, kept: object = {}) => {
      await victim.page.goto(page)
      let seen: URL | undefined
      const onRequest = async (request: HTTPRequest) => {
        if (!request.isNavigationRequest() || !request.url().startsWith(`${page}/?`)) return request.continue()
        // A page of the same tab and origin, which finds what the tab has kept.
        await request.respond({ contentType: 'text/html', body: 'held' })
        seen = new URL(request.url())
      }
      victim.page.on('request', onRequest)
      await victim.page.setRequestInterception(true)
      await victim.click('button', `Sign in with ${new URL(issuer).host}`)
      const url = await until('the issuer sends the browser back', () => seen)
      await victim.sees('held')
      victim.page.off('request', onRequest)
      await victim.page.setRequestInterception(false)
      const edit = `sessionStorage.setItem('dealgate-oidc', JSON.stringify({ ...JSON.parse(sessionStorage.getItem('dealgate-oidc')), ...${JSON.stringify(kept)} }))`
      await victim.page.evaluate(edit)
      const whole = url.href
      change(url)
      await victim.page.goto(url.href)
      return whole
    }
    const isRefused = async (...texts: readonly string[]) => {
      await victim.sees(...texts)
      t.equal(new URL(victim.page.url()).search, '', 'nothing is left in the address')
      t.equal(await storage(victim), '[{},[]]', 'nothing is left in the tab')
    }
    await opened((url) => url.searchParams.set('state', 'another'))
    await isRefused('belongs to no sign-in of this tab')
    await opened((url) => url.searchParams.delete('state'))
    await isRefused('belongs to no sign-in of this tab')
    await opened((url) => url.searchParams.set('iss', 'https://evil.example'))
    await isRefused('came from another issuer')
    await opened((url) => url.searchParams.delete('iss'))
    await isRefused('came from another issuer')
    await opened(() => {}, { nonce: 'another' })
    await isRefused('was not issued for this sign-in')
    await opened(() => {}, { verifier: 'another-verifier-of-at-least-forty-three-characters' })
    await isRefused('The issuer refuses the sign-in', 'invalid_grant')
    const used = await opened(() => {})
    await victim.sees('Sign out')
    await victim.click('button', 'Sign out')
    await victim.page.goto(used)
    await isRefused('This tab has begun no sign-in')
    await opened((url) => url.searchParams.set('code', new URL(used).searchParams.get('code') ?? ''))
    await isRefused('The issuer refuses the sign-in', 'invalid_grant')
    await opened((url) => {
      url.searchParams.delete('code')
      url.searchParams.set('error', 'access_denied')
      url.searchParams.set('error_description', '<b>You</b> may not \u202e')
    })
    await isRefused('<b>You</b> may not U+202E (access_denied)')
    t.same(victim.complaints, [])
  })

  await t.test('forged tokens', async (t) => {
    const call = async (token: string, more: object = {}) => {
      const parameters = { Action: 'ListWebIdentityRoles', Version: '2011-06-15', WebIdentityToken: token, ...more }
      const answer = await fetch(endpoint, { method: 'POST', body: new URLSearchParams(parameters) })
      return /<Code>(\w+)/.exec(await answer.text())?.[1] ?? answer.status
    }
    const seconds = Math.floor(Date.now() / 1000)
    const sound = { iss: issuer, aud: CLIENT, sub: 'bob', groups: ['staff'], iat: seconds, exp: seconds + 300 }
    const header = { alg: 'RS256', kid: 'one' }
    const sign = (claims: object, key: Parameters<SignJWT['sign']>[0] = privateKey, of = header) =>
      new SignJWT({ ...claims }).setProtectedHeader(of).sign(key)
    t.equal(await call(await sign(sound)), 200)
    const stranger = (await generateKeyPair('RS256')).privateKey
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(publicKey)))
    const none = `${btoa('{"alg":"none"}').replace(/=/g, '')}.${(await sign(sound)).split('.')[1]}.`
    for (const [name, token] of Object.entries({
      'another audience': await sign({ ...sound, aud: 'other' }),
      'another party': await sign({ ...sound, azp: 'other' }),
      'two audiences without a party': await sign({ ...sound, aud: [CLIENT, 'other'] }),
      'no subject': await sign({ ...sound, sub: undefined }),
      'no end': await sign({ ...sound, exp: undefined }),
      'another key': await sign(sound, stranger),
      'a key that the issuer has not': await sign(sound, stranger, { alg: 'RS256', kid: 'two' }),
      'the public key as a secret': await sign(sound, secret, { alg: 'HS256', kid: 'one' }),
      'no signature': none,
    }))
      t.equal(await call(token), 'InvalidIdentityToken', name)
    t.equal(await call(await sign({ ...sound, exp: seconds - 100 })), 'ExpiredTokenException')
    const assume = (role: string) => ({
      ...{ Action: 'AssumeRoleWithWebIdentity', RoleSessionName: 'test' },
      RoleArn: `arn:aws:iam::000000000000:role/${role}`,
    })
    t.equal(await call(await sign(sound), assume('READER')), 200)
    for (const role of ['ADMIN', 'OWNERKEY', 'GONE', 'NOBODY'])
      t.equal(await call(await sign(sound), assume(role)), 'AccessDenied', role)
    const arnOf = async (sub: string) => {
      const WebIdentityToken = await sign({ ...sound, sub })
      const parameters = { ...assume('READER'), Version: '2011-06-15', WebIdentityToken }
      const answer = await fetch(endpoint, { method: 'POST', body: new URLSearchParams(parameters) })
      return /<Arn>([^<]+)/.exec(await answer.text())?.[1] ?? ''
    }
    t.match(await arnOf('ann@example.com'), /\/READER\/ann@example\.com$/)
    const like = ['auth0|ann', 'auth0-ann', `${'n'.repeat(64)}1`, `${'n'.repeat(64)}2`, 'a']
    const names = new Set(await Promise.all(like.map(arnOf)))
    t.equal(names.size, like.length, 'no subject has the name of another')
    for (const name of names) t.match(name, /\/READER\/[\w+=,.@-]{2,64}$/)
    t.equal(await call(await sign({ ...sound, groups: 'staff-of-another' }), assume('READER')), 'AccessDenied')
  })

  await t.test('no request chooses where the issuer sends users', async (t) => {
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' }
    const config = await fetch(`${page}/config.json`, { headers })
    t.match(await config.json(), { oidc: { redirectUri: `${page}/` } })
    const policy = config.headers.get('content-security-policy') ?? ''
    t.match(policy, `connect-src 'self' ${endpoint} ${issuer};`)
  })
  t.same(tab.complaints, [])
})
