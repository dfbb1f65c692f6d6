// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this
import t from 'tap'
import { evaluatePolicy, parsePolicy } from '../../../../src/access/policy.js'
import {
  ARN,
  account,
  allow,
  anonymous,
  arnOf,
  ask,
  BUCKET,
  bucketPolicy,
  deny,
  effectOf,
  OWNER,
  PARTNER,
  STRANGER,
  user,
} from './ask.js'

const ALL = `${ARN}/*`
const root = (id: string) => `arn:aws:iam::${id}:root`

t.test('Principal', async (t) => {
  /** Principal, then as whom it names: everybody, the partner, carol of the partner, a stranger. */
  const cases: readonly [unknown, (string | undefined)[]][] = [
    [{ AWS: '*' }, ['everyone', 'everyone', 'everyone', 'everyone']],
    [{ AWS: PARTNER }, [undefined, 'account', 'account', undefined]],
    [{ AWS: root(PARTNER) }, [undefined, 'account', 'account', undefined]],
    [{ CanonicalUser: PARTNER }, [undefined, 'account', 'account', undefined]],
    [{ AWS: arnOf(PARTNER, 'carol') }, [undefined, undefined, 'identity', undefined]],
    [{ AWS: arnOf(PARTNER, 'Carol') }, [undefined, undefined, undefined, undefined]],
    [{ AWS: [root(OWNER)], CanonicalUser: [STRANGER] }, [undefined, undefined, undefined, 'account']],
  ]
  const principals = [anonymous, account(PARTNER), user(PARTNER, 'carol'), account(STRANGER)]
  for (const [Principal, named] of cases) {
    const policy = bucketPolicy(allow('s3:GetObject', ALL, { Principal }))
    const found = principals.map((one) => evaluatePolicy(policy, ask(one, 's3:GetObject', 'k')).to)
    t.same(found, named, JSON.stringify(Principal))
  }
})

t.test('NotPrincipal', async (t) => {
  const carol = arnOf(PARTNER, 'carol')
  const principals = [anonymous, account(PARTNER), user(PARTNER, 'carol'), user(PARTNER, 'dave'), account(STRANGER)]
  const effects = (Effect: 'Allow' | 'Deny', NotPrincipal: unknown) =>
    principals.map((one) => {
      const statement = { Effect, NotPrincipal, Action: 's3:GetObject', Resource: ALL }
      return effectOf(ask(one, 's3:GetObject', 'k'), statement)
    })
  t.same(effects('Deny', { AWS: root(PARTNER) }), ['deny', 'none', 'deny', 'deny', 'deny'], 'identities need their ARN')
  const exempt = { Effect: 'Deny', NotPrincipal: { AWS: root(PARTNER) }, Action: 's3:GetObject', Resource: ALL }
  const named = { ...user(PARTNER, 'carol'), root: true }
  t.equal(effectOf(ask(named, 's3:GetObject', 'k'), exempt), 'none', 'unless one stands for the account')
  t.same(effects('Deny', { AWS: [carol, root(PARTNER)] }), ['deny', 'none', 'none', 'deny', 'deny'])
  t.same(effects('Allow', { AWS: root(PARTNER) }), ['allow', 'none', 'none', 'none', 'allow'], 'all are left out')
  t.same(effects('Allow', { AWS: carol }), ['allow', 'allow', 'none', 'allow', 'allow'])
  t.same(effects('Allow', '*'), ['none', 'none', 'none', 'none', 'none'])
})

t.test('Action and NotAction', async (t) => {
  const named = (Action: unknown, action: string) => effectOf(ask(anonymous, action, 'k'), allow(Action, ALL))
  t.equal(named('s3:getobject', 's3:GetObject'), 'allow', 'ignores case')
  t.equal(named('s3:Get*', 's3:GetObjectTagging'), 'allow')
  t.equal(named('s3:?etObject', 's3:GetObject'), 'allow')
  t.equal(named('s3:Get*', 's3:PutObject'), 'none')
  t.equal(named(['s3:PutObject', 's3:GetObject'], 's3:GetObject'), 'allow')
  t.equal(named('*', 's3:PutObject'), 'allow')
  t.equal(named('*', 'deal:CreateObjectDeal'), 'none', '* does not include plugins')
  t.equal(named('s3:*', 'deal:CreateObjectDeal'), 'none')
  t.equal(named('deal:*', 'deal:CreateObjectDeal'), 'allow')
  t.equal(named('deal:Create*', 's3:PutObject'), 'none')

  const others = (Effect: string, NotAction: unknown, action: string) =>
    effectOf(ask(anonymous, action, 'k'), { Effect, Principal: '*', NotAction, Resource: ALL })
  t.equal(others('Allow', 's3:PutObject', 's3:GetObject'), 'allow')
  t.equal(others('Allow', 's3:Put*', 's3:PutObject'), 'none')
  t.equal(others('Allow', 's3:Put*', 'deal:CreateObjectDeal'), 'none', 'does not include plugins either')
  t.equal(others('Deny', 's3:Put*', 'deal:CreateObjectDeal'), 'deny', 'a Deny does')
  t.equal(others('Deny', '*', 'deal:CreateObjectDeal'), 'none')
  t.equal(effectOf(ask(anonymous, 'deal:CreateObjectDeal', 'k'), deny('*', ALL)), 'deny', 'as does a Deny of *')
})

t.test('Resource and NotResource', async (t) => {
  const cases: readonly [string, string | undefined, boolean][] = [
    [ALL, 'a/b', true],
    [ALL, '', true],
    [`${ARN}/a`, 'a', true],
    [`${ARN}/a`, 'A', false],
    [`${ARN}/*/c`, 'a/b/c', true],
    [`${ARN}/?.jpg`, '1.jpg', true],
    [`${ARN}/?.jpg`, '😀.jpg', true],
    [`${ARN}/\${*}`, '*', true],
    [`${ARN}/\${?}\${$}`, '?$', true],
    [`${ARN}/home/\${aws:username}/*`, 'home/carol/x', true],
    [`${ARN}/home/\${aws:username}/*`, 'home/dave/x', false],
    [`${ARN}/home/\${aws:userid}/*`, 'home/x/x', false],
    [`${ARN}/home/\${aws:userid, 'guest'}/*`, 'home/guest/x', true],
    [`${ARN}/home/\${aws:useragent}/*`, 'home/anything/x', false],
    [`${ARN}/home/\${aws:useragent}/*`, 'home/*/x', true],
    ['*', 'a', true],
    ['arn:aws:s3:::p*/b', 'a/b', true],
  ]
  const values = { 'aws:username': 'carol', 'aws:useragent': '*' }
  for (const [Resource, key, matches] of cases) {
    const question = ask(anonymous, 's3:GetObject', key, values)
    t.equal(effectOf(question, allow('s3:GetObject', Resource)), matches ? 'allow' : 'none', `${Resource} for ${key}`)
    const others = { Effect: 'Deny', Principal: '*', Action: 's3:GetObject', NotResource: Resource }
    t.equal(effectOf(question, others), matches ? 'none' : 'deny', `not ${Resource} for ${key}`)
  }
  const all = allow('s3:*', [ARN, ALL])
  t.equal(effectOf(ask(anonymous, 's3:ListBucket'), all), 'allow')
  t.equal(effectOf(ask(anonymous, 's3:ListBucket'), allow('s3:*', ALL)), 'none', 'the bucket is not one of its objects')
  const allButUnknown = { ...allow('s3:GetObject', undefined), NotResource: `${ARN}/\${aws:userid}` }
  const effect = effectOf(ask(anonymous, 's3:GetObject', 'k'), allButUnknown)
  t.equal(effect, 'none', 'all but an unknown resource is not allowed')
})

t.test('Version 2008-10-17 has no variables', async (t) => {
  const text = (version?: string) =>
    JSON.stringify({ Version: version, Statement: allow('s3:GetObject', `${ARN}/\${aws:username}`) })
  for (const version of ['2008-10-17', undefined]) {
    const policy = parsePolicy(text(version), { kind: 'bucket', bucket: BUCKET })
    const effect = (key: string) =>
      evaluatePolicy(policy, ask(anonymous, 's3:GetObject', key, { 'aws:username': 'carol' })).effect
    t.equal(effect('carol'), 'none')
    t.equal(effect('${aws:username}'), 'allow')
  }
})

t.test('a pattern of many wildcards takes bounded time', async (t) => {
  const Resource = `${ARN}/${'*a'.repeat(900)}b`
  const question = ask(anonymous, 's3:GetObject', 'a'.repeat(1024))
  const started = process.cpuUsage().user
  t.equal(effectOf(question, allow('s3:GetObject', Resource)), 'none')
  t.ok(process.cpuUsage().user - started < 5_000_000, 'an exponential one would not end')
})
