import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { GetObjectCommand, type S3 } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t from 'tap'
import { openAccountRegistry } from '../../../../services/gateway/accounts/account-registry.js'
import { legacy } from '../../../../services/gateway/legacy/quirks.js'
import type { Identity } from '../../../../src/api/identity.js'
import { AcceptedTokens } from '../../../../src/s3/sts/accepted-tokens.js'
import { run } from '../../../support/programs/run.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { stopMonotonicClock } from '../../../support/waiting.js'
import { assumeParameters, type Credentials, ROLE, startSts } from './sts-scene.js'

/** The code of the error of a request that must fail. */
async function codeOf(request: Promise<unknown>): Promise<string> {
  return request.then(
    () => 'none',
    (error) => error.name,
  )
}

const list = (s3: S3) => s3.listBuckets({})

t.test('a token of the platform becomes temporary credentials of its account', async (t) => {
  const scene = await startSts(t)
  const token = await scene.newUser('one@example.com')
  const before = Date.now()
  const answer = await scene.sts(assumeParameters(token, { DurationSeconds: '900' }))
  t.equal(answer.status, 200, answer.text)
  t.match(answer.text, 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"')
  t.match(answer.member('AccessKeyId'), /^DGS[A-Z2-7]{17}$/)
  t.match(answer.member('Arn'), /^arn:aws:sts::[0-9a-f]{64}:assumed-role\/platform-user\/tester$/)
  t.match(answer.member('SubjectFromWebIdentityToken'), /./)
  const left = Date.parse(answer.member('Expiration')) - before
  t.ok(left > 880_000 && left < 1_020_000, `${left} ms are left`)

  const mine = scene.s3(await scene.assume(token))
  await mine.createBucket({ Bucket: 'theirs' })
  await mine.putObject({ Bucket: 'theirs', Key: 'a', Body: 'text' })
  const owner = scene.s3({ accessKeyId: 'test-key', secretAccessKey: 'test-secret' })
  t.same((await list(owner)).Buckets, [], 'the server’s own account does not have the bucket')
  const own = scene.s3(await scene.assume(await scene.owner()))
  t.same((await list(own)).Owner, (await list(owner)).Owner, 'the first user has the account of the server')

  await scene.restart()
  const { Body } = await mine.getObject({ Bucket: 'theirs', Key: 'a' })
  t.equal(await Body?.transformToString(), 'text', 'sessions survive a restart')
  t.notMatch(JSON.stringify(scene.lines), token, 'the log has no token')
})

t.test('what is no request for credentials', async (t) => {
  const scene = await startSts(t)
  const token = await scene.newUser('two@example.com')
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const unsigned = `${part({ alg: 'none' })}.${part({ sub: '1' })}.x`
  const foreign = `${part({ alg: 'HS256' })}.${part({ sub: '1', exp: 4_000_000_000 })}.c2lnbmF0dXJl`
  const expired = `${part({ alg: 'HS256' })}.${part({ sub: '1', exp: 1 })}.c2lnbmF0dXJl`
  const cases: readonly [string, Record<string, string>][] = [
    ['ValidationError', { RoleArn: 'x' }],
    ['ValidationError', { RoleArn: 'arn:aws:s3:::a-bucket-and-no-role' }],
    ['ValidationError', { RoleSessionName: 'a b' }],
    ['ValidationError', { DurationSeconds: '899' }],
    ['ValidationError', { DurationSeconds: '43201' }],
    ['ValidationError', { DurationSeconds: '1e3' }],
    ['ValidationError', { 'PolicyArns.member.1.arn': 'arn:aws:iam::aws:policy/x' }],
    ['ValidationError', { Policy: 'x'.repeat(2049) }],
    ['ValidationError', { WebIdentityToken: 'x'.repeat(20_001) }],
    ['MalformedPolicyDocument', { Policy: '{' }],
    ['MalformedPolicyDocument', { Policy: '{"Statement":[{"Effect":"Perhaps"}]}' }],
    // JSON.parse takes the last one of two members with the same name, which allows more.
    [
      'MalformedPolicyDocument',
      { Policy: '{"Statement":[{"Effect":"Allow","Action":"s3:GetObject","Action":"s3:*","Resource":"*"}]}' },
    ],
    ['InvalidIdentityToken', { WebIdentityToken: 'no token' }],
    ['InvalidIdentityToken', { WebIdentityToken: unsigned }],
    ['InvalidIdentityToken', { WebIdentityToken: foreign }],
    ['ExpiredTokenException', { WebIdentityToken: expired }],
    ['InvalidAction', { Version: '2010-05-08' }],
  ]
  for (const [code, more] of cases) {
    const answer = await scene.sts(assumeParameters(token, more))
    t.equal(answer.code, code, JSON.stringify(more).slice(0, 80))
    t.ok(answer.status >= 400 && answer.status < 500)
    t.match(answer.text, '<Type>Sender</Type>')
    t.notMatch(answer.text, token)
  }
  t.equal((await scene.sts({ Action: 'GetCallerIdentity', Version: '2011-06-15' })).code, 'MissingAuthenticationToken')
  t.equal((await scene.sts({ Action: 'GetSessionToken', Version: '2011-06-15' })).code, 'MissingAuthenticationToken')
  t.equal((await scene.sts({ Action: 'GetFederationToken', Version: '2011-06-15' })).code, 'InvalidAction')
  t.equal((await scene.sts({ Version: '2011-06-15' })).code, 'MissingAction')
  const other = await fetch(scene.endpoint, { method: 'POST', body: 'text', headers: { 'content-type': 'text/plain' } })
  t.equal(other.status, 405)
  t.match(await other.text(), '<Code>MethodNotAllowed</Code>')
  const twice = new URLSearchParams(assumeParameters(token))
  twice.append('RoleArn', ROLE)
  t.match(await (await fetch(scene.endpoint, { method: 'POST', body: twice })).text(), '<Code>ValidationError</Code>')
})

t.test('the session token counts', async (t) => {
  const scene = await startSts(t)
  const token = await scene.newUser('three@example.com')
  const keys = await scene.assume(token, { DurationSeconds: '900' })
  const { accessKeyId, secretAccessKey } = keys
  const other = await scene.assume(token)
  t.equal(await codeOf(list(scene.s3({ accessKeyId, secretAccessKey }))), 'InvalidToken', 'without it')
  t.equal(await codeOf(list(scene.s3({ ...keys, sessionToken: other.sessionToken }))), 'InvalidToken', 'of another')
  t.equal(await codeOf(list(scene.s3({ ...keys, sessionToken: 'x' }))), 'InvalidToken')
  t.equal(await codeOf(list(scene.s3({ ...keys, secretAccessKey: 'wrong' }))), 'SignatureDoesNotMatch')
  const permanent = { accessKeyId: 'test-key', secretAccessKey: 'test-secret', sessionToken: keys.sessionToken }
  t.equal(await codeOf(list(scene.s3(permanent))), 'InvalidToken', 'with a permanent key pair')

  const s3 = scene.s3(keys)
  await s3.createBucket({ Bucket: 'presigned' })
  await s3.putObject({ Bucket: 'presigned', Key: 'a', Body: 'text' })
  const url = await getSignedUrl(s3, new GetObjectCommand({ Bucket: 'presigned', Key: 'a' }), { expiresIn: 7200 })
  t.match(url, 'X-Amz-Security-Token=')
  t.equal(await (await fetch(url)).text(), 'text', 'a presigned URL has it in its query')
  const without = new URL(url)
  without.searchParams.delete('X-Amz-Security-Token')
  t.match(await (await fetch(without)).text(), '<Code>InvalidToken</Code>')
  const form = await createPresignedPost(s3, { Bucket: 'presigned', Key: 'b' })
  const fields = (omit = '') => {
    const data = new FormData()
    for (const [name, value] of Object.entries(form.fields)) if (name !== omit) data.append(name, value)
    data.append('file', new Blob(['of a form']))
    return data
  }
  t.equal((await fetch(form.url, { method: 'POST', body: fields() })).status, 204, 'a form has it as a field')
  t.equal((await fetch(form.url, { method: 'POST', body: fields('X-Amz-Security-Token') })).status, 400)

  scene.advance(901_000)
  t.equal(await codeOf(list(s3)), 'ExpiredToken')
  t.match(await (await fetch(url)).text(), '<Code>ExpiredToken</Code>', 'also of a URL that is valid for longer')
})

t.test('a session policy narrows what the account may do', async (t) => {
  const scene = await startSts(t)
  const token = await scene.newUser('four@example.com')
  const all = scene.s3(await scene.assume(token))
  await all.createBucket({ Bucket: 'narrow' })
  await all.putObject({ Bucket: 'narrow', Key: 'public/a', Body: 'text' })
  await all.putObject({ Bucket: 'narrow', Key: 'private/a', Body: 'text' })
  const Policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::narrow/public/*' }],
  })
  const narrow = scene.s3(await scene.assume(token, { Policy }))
  const get = (Key: string) => narrow.getObject({ Bucket: 'narrow', Key })
  t.equal(await (await get('public/a')).Body?.transformToString(), 'text')
  t.equal(await codeOf(get('private/a')), 'AccessDenied')
  t.equal(await codeOf(narrow.putObject({ Bucket: 'narrow', Key: 'public/b', Body: 'x' })), 'AccessDenied')
  t.equal(await codeOf(list(narrow)), 'AccessDenied')
  t.equal(await codeOf(narrow.createBucket({ Bucket: 'another' })), 'AccessDenied')
  const more = await scene.sts(assumeParameters(token, { Policy }))
  t.ok(Number(more.member('PackedPolicySize')) > 0)

  const ofOwner = scene.s3(await scene.assume(await scene.owner(), { Policy }))
  t.equal(await codeOf(list(ofOwner)), 'AccessDenied', 'also for the account of the server')
})

for (const [mode, quirks] of Object.entries({ full: [], legacy }))
  t.test(`share links of a session: ${mode}`, async (t) => {
    const scene = await startSts(t, {}, quirks)
    const token = await scene.newUser('share@example.com')
    const all = await scene.assume(token, { DurationSeconds: '900' })
    await scene.s3(all).createBucket({ Bucket: 'links' })
    await scene.s3(all).putObject({ Bucket: 'links', Key: 'a', Body: 'text' })
    const share = async (by: Credentials, query = '') => {
      const url = `${scene.endpoint}/links/a?${query}x-share=`
      const user = `${by.accessKeyId}:${by.secretAccessKey}`
      const signing = ['--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', user]
      const sent = ['-H', `x-amz-security-token: ${by.sessionToken}`, '-H', 'accept: application/json']
      return (await run('curl', ['-s', '-X', 'POST', ...signing, ...sent, url])).toString('utf8')
    }
    const tooLong = await share(all, 'expiry=604800&')
    t.match(tooLong, /InvalidArgument/)
    t.ok(Number(/at most (\d+) seconds/.exec(tooLong)?.[1]) <= 900, tooLong)
    const byDefault: { Expiry: number } = JSON.parse(await share(all))
    t.ok(byDefault.Expiry > 0 && byDefault.Expiry <= 900, `the default is shortened to ${byDefault.Expiry}`)
    const { Url }: { Url: string } = JSON.parse(await share(all, 'expiry=60&'))
    t.equal(await (await fetch(Url)).text(), 'text')

    const Allow = { Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::links/*' }
    const later = { DateLessThan: { 'aws:CurrentTime': new Date(Date.now() + 600_000).toISOString() } }
    const Deny = { ...Allow, Effect: 'Deny', Condition: { IpAddress: { 'aws:SourceIp': '192.0.2.0/24' } } }
    const limitedTo = (...Statement: object[]) =>
      scene.assume(token, { Policy: JSON.stringify({ Version: '2012-10-17', Statement }) })
    for (const statements of [[{ ...Allow, Condition: later }], [Allow, Deny]]) {
      const limited = await limitedTo(...statements)
      const read = await scene.s3(limited).getObject({ Bucket: 'links', Key: 'a' })
      t.equal(await read.Body?.transformToString(), 'text', 'the session may read it now')
      t.match(await share(limited, 'expiry=60&'), /AccessDenied.*conditions/s)
    }
    t.match(await share(await limitedTo(Allow, { ...Allow, Condition: later }), 'expiry=60&'), /"Url"/)
  })

t.test('a session dies with the keys of its account', async (t) => {
  const scene = await startSts(t)
  const token = await scene.newUser('five@example.com')
  const s3 = scene.s3(await scene.assume(token))
  const { now } = performance
  t.teardown(() => (performance.now = now))
  await list(s3)
  const registry = await openAccountRegistry(join(scene.folder, 'services'))
  t.teardown(() => registry.close())
  const account = (await registry.all()).find(({ name }) => name === 'five@example.com')
  await registry.rotate(account?.accessKey ?? '')
  // As 46 seconds later.
  performance.now = () => now.call(performance) + 46_000
  t.equal(await codeOf(list(s3)), 'InvalidToken')
  await list(scene.s3(await scene.assume(token)))
})

t.test('a key pair becomes temporary credentials with its rights', async (t) => {
  const owner = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
  const reader: Identity = {
    ...{ accessKeyId: 'reader-key', secretAccessKey: 'reader-secret' },
    rights: [{ bucket: 'of-pairs', prefix: 'open/', access: 'read' }],
  }
  const pairs = new Map<string, Identity>([owner, reader].map((pair) => [pair.accessKeyId, pair]))
  const scene = await startSts(t, { identities: (id) => pairs.get(id) })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const ask = async (keys: typeof owner & { sessionToken?: string }, more: Record<string, string> = {}) => {
    const body = new URLSearchParams({ Action: 'GetSessionToken', Version: '2011-06-15', ...more }).toString()
    return signedRequest(scene.endpoint, keys, { method: 'POST', path: '/', headers, body })
  }
  const sessionOf = async (keys: typeof owner, more: Record<string, string> = {}) => {
    const { status, body } = await ask(keys, more)
    t.equal(status, 200, body)
    const member = (name: string) => new RegExp(`<${name}>([^<]+)<`).exec(body)?.[1] ?? ''
    const [accessKeyId, secretAccessKey] = [member('AccessKeyId'), member('SecretAccessKey')]
    return { accessKeyId, secretAccessKey, sessionToken: member('SessionToken'), end: Date.parse(member('Expiration')) }
  }
  const mine = await sessionOf(owner)
  const left = mine.end - Date.now()
  t.ok(left > 43_000_000 && left < 43_300_000, `${left} ms are left`)
  const all = scene.s3(mine)
  await all.createBucket({ Bucket: 'of-pairs' })
  for (const Key of ['open/a', 'closed/a']) await all.putObject({ Bucket: 'of-pairs', Key, Body: 'text' })
  const get = (s3: S3, Key: string) => codeOf(s3.getObject({ Bucket: 'of-pairs', Key }))

  const limited = scene.s3(await sessionOf(reader))
  t.equal(await get(limited, 'open/a'), 'none')
  t.equal(await get(limited, 'closed/a'), 'AccessDenied')
  const readOnly = { Statement: [{ Effect: 'Allow', Action: ['s3:Get*', 's3:List*'], Resource: '*' }] }
  const Policy = JSON.stringify({ Version: '2012-10-17', ...readOnly })
  const narrow = scene.s3(await sessionOf(owner, { Policy, DurationSeconds: '900' }))
  t.equal(await get(narrow, 'closed/a'), 'none')
  t.equal(await codeOf(narrow.putObject({ Bucket: 'of-pairs', Key: 'a', Body: 'x' })), 'AccessDenied')
  t.equal(await get(scene.s3(await sessionOf(reader, { Policy })), 'closed/a'), 'AccessDenied', 'a policy adds nothing')

  t.match(await ask(mine), { status: 403, code: 'AccessDenied' }, 'a session makes no session')
  t.match(await ask({ ...owner, secretAccessKey: 'wrong' }), { code: 'SignatureDoesNotMatch' })
  for (const DurationSeconds of ['899', '129601'])
    t.match(await ask(owner, { DurationSeconds }), { code: 'ValidationError' })
  t.match(await ask(owner, { SerialNumber: '1' }), { code: 'ValidationError' })
  t.match(await ask(owner, { Policy: '{' }), { code: 'MalformedPolicyDocument' })
  const uncovered = { method: 'POST', path: '/', headers: { ...headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }
  const body = 'Action=GetSessionToken&Version=2011-06-15'
  t.match(await signedRequest(scene.endpoint, owner, { ...uncovered, body }), { status: 403, code: 'AccessDenied' })

  pairs.set(reader.accessKeyId, { ...reader, rights: [{ bucket: 'of-pairs', prefix: 'closed/', access: 'read' }] })
  t.equal(await get(limited, 'open/a'), 'AccessDenied', 'the rights are those of now')
  t.equal(await get(limited, 'closed/a'), 'none')
  pairs.set(reader.accessKeyId, { ...reader, secretAccessKey: 'another-secret' })
  t.equal(await get(limited, 'open/a'), 'InvalidToken', 'another secret ends the session')
  pairs.delete(owner.accessKeyId)
  t.equal(await get(all, 'open/a'), 'InvalidToken', 'so does the removal of the key pair')
})

t.test('many requests for credentials', async (t) => {
  stopMonotonicClock(t)
  const scene = await startSts(t)
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const bad = (n: number) => `${part({ alg: 'HS256' })}.${part({ sub: String(n) })}.c2lnbmF0dXJl`
  const codes = new Set<string | undefined>()
  for (let n = 0; n < 200 && !codes.has('Throttling'); n++) codes.add((await scene.sts(assumeParameters(bad(n)))).code)
  t.same([...codes], ['InvalidIdentityToken', 'Throttling'])
})

const ACCOUNT = { accessKey: 'of-the-user', secretKey: 'secret-key' }

t.test('how long an answer about a token counts', async (t) => {
  let now = 0
  let answer: () => Promise<typeof ACCOUNT | undefined> = async () => ACCOUNT
  let asked = 0
  const tokens = new AcceptedTokens({
    ask: () => {
      asked++
      return answer()
    },
    clock: () => now,
  })
  const look = () => tokens.accountOf('token')
  t.same(await Promise.all([look(), look()]), [ACCOUNT, ACCOUNT])
  t.equal(asked, 1, 'one question for all')
  now = 24_000
  await look()
  t.equal(asked, 1)
  now = 26_000
  answer = async () => undefined
  t.same(await look(), ACCOUNT, 'an older answer still counts while it is renewed')
  t.equal(asked, 2)
  await turn()
  t.equal(await look(), undefined, 'then the new one')
  now = 80_000
  answer = async () => ({ ...ACCOUNT, secretKey: 'another-key' })
  t.match(await look(), { secretKey: 'another-key' }, 'an old answer does not count')

  now = 110_000
  answer = async () => {
    throw new Error('no answer')
  }
  t.match(await look(), { secretKey: 'another-key' }, 'a gateway that is away for a moment changes nothing')
  await turn()
  now = 126_000
  await t.rejects(look(), /no answer/, 'but a session does not outlive it')
  answer = async () => ACCOUNT
  t.same(await look(), ACCOUNT)
  t.same(await tokens.accountOf('another'), ACCOUNT)
})
