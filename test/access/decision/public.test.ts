// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this
import t from 'tap'
import { isPublic } from '../../../src/access/policy.js'
import { ARN, allow, bucketPolicy, deny, OWNER, PARTNER } from './ask.js'

const ALL = `${ARN}/*`
const all = (more: object = {}) => allow('s3:PutObject', '*', more)
const when = (operator: string, key: string, value: unknown) => all({ Condition: { [operator]: { [key]: value } } })
const carol = `arn:aws:iam::${PARTNER}:user/carol`

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html, "The meaning of
 * public"
 */
const cases: readonly [string, object, boolean][] = [
  ['everybody', all(), true],
  ['AWS everybody', all({ Principal: { AWS: ['*'] } }), true],
  ['all but one account', { ...all(), Principal: undefined, NotPrincipal: { AWS: OWNER } }, true],
  ['an account', all({ Principal: { AWS: PARTNER } }), false],
  ['an identity', all({ Principal: { AWS: carol } }), false],
  ['nobody', deny('s3:PutObject', ALL), false],
  ['a fixed address', when('IpAddress', 'aws:SourceIp', '203.0.113.0/24'), false],
  ['the broadest fixed blocks', when('IpAddress', 'aws:SourceIp', ['11.0.0.0/8', '2001:db8::/32']), false],
  ['half of the internet', when('IpAddress', 'aws:SourceIp', '0.0.0.0/1'), true],
  ['a broad block among others', when('IpAddress', 'aws:SourceIp', ['203.0.113.0/24', '8.0.0.0/7']), true],
  ['a broad block of IPv6', when('IpAddress', 'aws:SourceIp', '2000::/3'), true],
  ['all but an address', when('NotIpAddress', 'aws:SourceIp', '203.0.113.0/24'), true],
  ['an address, if there is one', when('IpAddressIfExists', 'aws:SourceIp', '203.0.113.0/24'), true],
  ['an address as text', when('StringEquals', 'aws:SourceIp', '203.0.113.7'), true],
  ['a fixed identity', when('ArnEquals', 'aws:PrincipalArn', carol), false],
  ['identities by wildcard', when('ArnLike', 'aws:PrincipalArn', 'arn:aws:iam::*:user/carol'), true],
  ['a fixed account', when('StringEquals', 'aws:PrincipalAccount', PARTNER), false],
  ['a fixed account by StringLike', when('StringLike', 'aws:PrincipalAccount', PARTNER), false],
  ['accounts by wildcard', when('StringLike', 'aws:PrincipalAccount', 'b*'), true],
  ['a literal star', when('StringEquals', 'aws:userid', '*'), false],
  ['the id of unsigned callers', when('StringEquals', 'aws:userid', 'anonymous'), true],
  ['the id of unsigned callers in another case', when('StringEqualsIgnoreCase', 'aws:userid', 'Anonymous'), true],
  ['the id of unsigned callers among others', when('StringLike', 'aws:userid', ['carol', 'anonymous']), true],
  ['a variable', when('StringEquals', 'aws:userid', '${aws:username}'), true],
  ['one of several is open', when('StringLike', 'aws:userid', ['a', '*']), true],
  ['all but an account', when('StringNotEquals', 'aws:PrincipalAccount', PARTNER), true],
  ['for all values', when('ForAllValues:StringEquals', 'aws:PrincipalAccount', PARTNER), true],
  ['a referer, which anyone can send', when('StringEquals', 'aws:Referer', 'https://x.example/'), true],
  ['encrypted connections', when('Bool', 'aws:SecureTransport', 'true'), true],
]
for (const [name, statement, expected] of cases) t.equal(isPublic(bucketPolicy(statement)), expected, name)

t.equal(isPublic(bucketPolicy(all({ Principal: { AWS: PARTNER } }), all())), true, 'one public statement suffices')
t.equal(isPublic(bucketPolicy(all(), deny('s3:*', ALL))), true, 'a Deny does not make it private')
