// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this
import t from 'tap'
import { ARN, allow, anonymous, ask, deny, effectOf, type Values } from './ask.js'

const YES = true
const NO = false
const carol = 'arn:aws:iam::1:user/carol'

/** Operator, key, values of the policy, values of the request, whether the condition holds in an Allow. */
const cases: readonly [string, string, unknown, string | readonly string[] | undefined, boolean][] = [
  ['StringEquals', 'aws:Referer', 'a', 'a', YES],
  ['StringEquals', 'aws:Referer', 'a', 'A', NO],
  ['StringEquals', 'aws:Referer', 'a*', 'ab', NO],
  ['StringEquals', 'aws:Referer', 'a', undefined, NO],
  ['StringNotEquals', 'aws:Referer', ['a', 'b'], 'b', NO],
  ['StringNotEquals', 'aws:Referer', 'a', undefined, YES],
  ['StringEqualsIgnoreCase', 'aws:Referer', 'aB', 'Ab', YES],
  ['StringLike', 'aws:Referer', 'http://x.example/*', 'http://x.example/a/b', YES],
  ['StringLike', 'aws:Referer', '?', 'ab', NO],
  ['StringLike', 'aws:Referer', '?', '😀', YES],
  ['StringLike', 'aws:Referer', '*a*b*', 'xxaxxbxx', YES],
  ['StringLike', 'aws:Referer', '${*}', 'x', NO],
  ['StringLike', 'aws:Referer', '${*}${?}${$}', '*?$', YES],
  ['StringNotLike', 'aws:Referer', 'a*', 'ab', NO],
  ['StringEquals', 'AWS:REFERER', 'a', 'a', YES],
  ['StringEquals', 's3:ExistingObjectTag/Class', 'x', 'x', YES],
  ['StringEquals', 'S3:existingOBJECTtag/CLASS', 'x', 'x', YES],
  // Of tags whose keys differ in case alone.
  ['StringEquals', 's3:ExistingObjectTag/Class', 'x', ['x', 'y'], NO],
  ['StringEquals', 's3:ExistingObjectTag/Class', ['x', 'y'], ['x', 'y'], YES],
  ['StringNotEquals', 's3:ExistingObjectTag/Class', 'x', ['x', 'y'], NO],
  ['StringNotEquals', 's3:RequestObjectTag/Class', 'z', ['x', 'y'], YES],
  ['StringLikeIfExists', 's3:RequestObjectTag/Class', 'x*', ['x', 'y'], NO],
  ['StringEquals', 'aws:Referer', '${s3:ExistingObjectTag/Class}', ['x', 'y'], NO],
  ['StringEquals', 'aws:Referer', '${aws:username}', 'carol', YES],
  ['StringLike', 'aws:Referer', '${aws:username}/*', 'carol/x', YES],
  ['StringEquals', 'aws:Referer', "${aws:userid, 'none'}", 'none', YES],
  ['StringEquals', 'aws:Referer', '${aws:userid}', '', NO],
  ['StringNotEquals', 'aws:Referer', '${aws:userid}', 'x', NO],
  ['NumericEquals', 'aws:EpochTime', '10', '10.0', YES],
  ['NumericEquals', 'aws:EpochTime', '10', 'ten', NO],
  ['NumericNotEquals', 'aws:EpochTime', '10', '11', YES],
  ['NumericNotEquals', 'aws:EpochTime', '10', 'ten', NO],
  ['NumericLessThan', 'aws:EpochTime', '10', '9', YES],
  ['NumericLessThan', 'aws:EpochTime', '10', '10', NO],
  ['NumericLessThanEquals', 'aws:EpochTime', '10', '10', YES],
  ['NumericGreaterThan', 'aws:EpochTime', 9.5, '10', YES],
  ['NumericGreaterThanEquals', 'aws:EpochTime', '10', '9', NO],
  ['DateEquals', 'aws:CurrentTime', '2026-01-01T02:00:00+02:00', '2026-01-01T00:00:00Z', YES],
  ['DateNotEquals', 'aws:CurrentTime', '2026', '2026-01-01T00:00:00Z', NO],
  ['DateLessThan', 'aws:CurrentTime', '2026-01-02', '2026-01-01T23:59:59.999Z', YES],
  ['DateLessThan', 'aws:CurrentTime', '2026-01-02', '2026-01-02T00:00:00Z', NO],
  ['DateLessThanEquals', 'aws:CurrentTime', '2026-01', '2026-01-01T00:00:00.001Z', NO],
  ['DateGreaterThan', 'aws:CurrentTime', '1767225600', '2026-01-01T00:00:01Z', YES],
  ['DateGreaterThanEquals', 'aws:EpochTime', '2026-01-01T00:00Z', '1767225600', YES],
  ['Bool', 'aws:SecureTransport', 'true', 'true', YES],
  ['Bool', 'aws:SecureTransport', 'false', undefined, NO],
  ['BinaryEquals', 'aws:Referer', 'AAEC', 'AAED', NO],
  ['IpAddress', 'aws:SourceIp', '203.0.113.0/24', '203.0.113.77', YES],
  ['IpAddress', 'aws:SourceIp', '203.0.113.0/24', '203.0.114.1', NO],
  ['IpAddress', 'aws:SourceIp', '203.0.113.0/24', '::ffff:203.0.113.9', YES],
  ['IpAddress', 'aws:SourceIp', '::ffff:203.0.113.0/120', '203.0.113.9', YES],
  ['IpAddress', 'aws:SourceIp', '2001:DB8:1234:5678::/64', '2001:db8:1234:5678::1', YES],
  ['IpAddress', 'aws:SourceIp', '::/0', '203.0.113.9', NO],
  ['IpAddress', 'aws:SourceIp', '::/0', 'fe80::1%eth0', YES],
  ['IpAddress', 'aws:SourceIp', '0.0.0.0/0', 'none', NO],
  ['NotIpAddress', 'aws:SourceIp', '203.0.113.0/24', '203.0.113.7', NO],
  ['NotIpAddress', 'aws:SourceIp', ['10.0.0.0/8', '203.0.113.0/24'], '8.8.8.8', YES],
  ['NotIpAddress', 'aws:SourceIp', '10.0.0.0/8', undefined, YES],
  ['ArnEquals', 'aws:PrincipalArn', 'arn:aws:iam::*:user/carol', carol, YES],
  ['ArnLike', 'aws:PrincipalArn', 'arn:*::1:user/carol:x', `${carol}:x`, NO],
  ['ArnLike', 'aws:PrincipalArn', 'arn:aws:iam::1:user/${aws:username}', carol, YES],
  ['ArnNotEquals', 'aws:PrincipalArn', 'arn:aws:iam::2:user/*', carol, YES],
  ['ArnNotLike', 'aws:PrincipalArn', 'arn:aws:iam::1:user/*', carol, NO],
  ['ArnNotLike', 'aws:PrincipalArn', 'arn:aws:iam::1:user/*', 'carol', NO],
  ['Null', 'aws:Referer', 'true', undefined, YES],
  ['Null', 'aws:Referer', 'true', '', NO],
  ['Null', 'aws:Referer', 'false', undefined, NO],
  ['StringLikeIfExists', 'aws:Referer', 'a*', undefined, YES],
  ['StringLikeIfExists', 'aws:Referer', 'a*', 'b', NO],
  ['StringNotEqualsIfExists', 'aws:Referer', 'a', undefined, YES],
  ['ForAllValues:StringEquals', 's3:RequestObjectTagKeys', ['a', 'b'], ['a', 'b', 'a'], YES],
  ['ForAllValues:StringEquals', 's3:RequestObjectTagKeys', ['a', 'b'], ['a', 'c'], NO],
  ['ForAllValues:StringEquals', 's3:RequestObjectTagKeys', 'a', undefined, YES],
  ['ForAllValues:StringEquals', 's3:RequestObjectTagKeys', 'a', [''], YES],
  ['ForAnyValue:StringEquals', 's3:RequestObjectTagKeys', ['a', 'b'], ['c', 'b'], YES],
  ['ForAnyValue:StringEquals', 's3:RequestObjectTagKeys', ['a', 'b'], ['c', 'd'], NO],
  ['ForAnyValue:StringEquals', 's3:RequestObjectTagKeys', 'a', undefined, NO],
  ['ForAllValues:StringNotLike', 's3:RequestObjectTagKeys', 'a*', ['b', 'ab'], NO],
  ['ForAnyValue:StringNotLike', 's3:RequestObjectTagKeys', 'a*', ['ab', 'c'], YES],
  ['ForAnyValue:StringNotLike', 's3:RequestObjectTagKeys', 'a*', undefined, NO],
  ['ForAnyValue:StringEqualsIfExists', 's3:RequestObjectTagKeys', 'a', undefined, YES],
]

for (const [operator, key, wanted, given, holds] of cases) {
  const values: Values = { 'aws:username': 'carol', ...(given !== undefined && { [key]: given }) }
  const statement = allow('s3:GetObject', `${ARN}/*`, { Condition: { [operator]: { [key]: wanted } } })
  const name = `${operator} ${key} ${JSON.stringify(wanted)} for ${JSON.stringify(given)}`
  t.equal(effectOf(ask(anonymous, 's3:GetObject', 'k', values), statement), holds ? 'allow' : 'none', name)
}

t.test('what cannot be told does not open a Deny', async (t) => {
  const denied = (Condition: object, values: Values) =>
    effectOf(ask(anonymous, 's3:GetObject', 'k', values), deny('s3:GetObject', `${ARN}/*`, { Condition }))
  const unknown = { StringNotEquals: { 'aws:Referer': '${aws:userid}' } }
  t.equal(denied(unknown, { 'aws:referer': 'x' }), 'deny', 'a variable without a value')
  t.equal(denied({ NumericNotEquals: { 'aws:EpochTime': '1' } }, { 'aws:epochtime': 'x' }), 'deny', 'another type')
})

t.test('one of two tags whose keys differ in case alone is enough for a Deny', async (t) => {
  const denied = (Condition: object, values: readonly string[]) => {
    const question = ask(anonymous, 's3:GetObject', 'k', { 's3:ExistingObjectTag/class': values })
    return effectOf(question, deny('s3:GetObject', `${ARN}/*`, { Condition }))
  }
  for (const [operator, values, effect] of [
    ['StringEquals', ['open', 'secret'], 'deny'],
    ['StringEquals', ['open', 'other'], 'none'],
    ['StringNotEquals', ['open', 'secret'], 'deny'],
    ['StringNotEquals', ['secret', 'secret'], 'none'],
  ] as const)
    t.equal(denied({ [operator]: { 's3:ExistingObjectTag/Class': 'secret' } }, values), effect, `${operator} ${values}`)
})

t.test('all operators and keys of a statement must hold', async (t) => {
  const strings = { 'aws:Referer': 'a', 'aws:UserAgent': 'b' }
  const Condition = { StringEquals: strings, Bool: { 'aws:SecureTransport': 'true' } }
  const statement = allow('s3:GetObject', `${ARN}/*`, { Condition })
  const all = { ...strings, 'aws:SecureTransport': 'true' }
  const effect = (values: Values) => effectOf(ask(anonymous, 's3:GetObject', 'k', values), statement)
  t.equal(effect(all), 'allow')
  for (const key of Object.keys(all)) t.equal(effect({ ...all, [key]: 'c' }), 'none', key)
})

t.test('a value is read once, and only if a statement asks for it', async (t) => {
  const asked: string[] = []
  const conditions = { get: (key: string) => void asked.push(key) }
  const question = { ...ask(anonymous, 's3:GetObject', 'k'), conditions }
  const Condition = { StringEquals: { 'aws:Referer': 'a' } }
  effectOf(question, allow('s3:GetObject', `${ARN}/*`, { Condition }), allow('s3:*', `${ARN}/*`, { Condition }))
  t.same(asked, ['aws:referer'])
  effectOf(question, allow('s3:PutObject', `${ARN}/*`, { Condition: { StringEquals: { 'aws:UserAgent': 'a' } } }))
  t.same(asked, ['aws:referer'])
})
