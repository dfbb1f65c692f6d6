// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this

import t from 'tap'
import { cannedAcl } from '../../../../src/access/acl.js'
import { isPublic } from '../../../../src/access/policy.js'
import {
  ARN,
  account,
  allow,
  anonymous,
  arnOf,
  ask,
  bucketPolicy,
  deny,
  identityPolicy,
  OWNER,
  outcome,
  PARTNER,
  STRANGER,
  user,
} from './ask.js'

const ALL = `${ARN}/*`
const [owner, partner, stranger] = [account(OWNER), account(PARTNER), account(STRANGER)]
const limited = user(OWNER, 'alice')
const carol = user(PARTNER, 'carol')
const get = (principal: Parameters<typeof ask>[0]) => ask(principal, 's3:GetObject', 'k')
const acl = (name: string, kind: 'bucket' | 'object', of = OWNER) =>
  cannedAcl(name, { owner: of, bucketOwner: OWNER }, kind)
const toPartner = bucketPolicy(allow('s3:GetObject', ALL, { Principal: { AWS: PARTNER } }))
const toAll = bucketPolicy(allow('s3:GetObject', ALL))
const mayGet = identityPolicy(allow('s3:GetObject', ALL))
const ACLS = { ownership: 'ObjectWriter' } as const

t.test('without documents, the bucket belongs to its account', async (t) => {
  t.equal(outcome(get(owner)), 'allow')
  t.equal(outcome(get(limited)), 'allow', 'an identity without policies has the rights of its account')
  t.equal(outcome(ask(owner, 'deal:CreateObjectDeal', 'k')), 'allow')
  for (const one of [anonymous, partner, carol]) t.equal(outcome(get(one)), 'implicit deny')
})

t.test('in the same account, the identity or the bucket policy suffices', async (t) => {
  const byName = bucketPolicy(allow('s3:GetObject', ALL, { Principal: { AWS: arnOf(OWNER, 'alice') } }))
  const byAccount = bucketPolicy(allow('s3:GetObject', ALL, { Principal: { AWS: OWNER } }))
  t.equal(outcome(get(limited), { identityPolicies: [] }), 'implicit deny')
  t.equal(outcome(get(limited), { identityPolicies: [mayGet] }), 'allow')
  t.equal(outcome(get(limited), { identityPolicies: [], policy: byName }), 'allow')
  t.equal(outcome(get(limited), { identityPolicies: [], policy: toAll }), 'allow')
  t.equal(outcome(get(limited), { identityPolicies: [], policy: byAccount }), 'implicit deny', 'an account gives it on')
  t.equal(outcome(ask(limited, 's3:PutObject', 'k'), { identityPolicies: [mayGet] }), 'implicit deny')
})

t.test('across accounts, both sides must allow', async (t) => {
  t.equal(outcome(get(partner), { policy: toPartner }), 'allow')
  t.equal(outcome(get(stranger), { policy: toPartner }), 'implicit deny')
  t.equal(outcome(get(carol), { policy: toPartner }), 'allow', 'an identity without policies')
  t.equal(outcome(get(carol), { policy: toPartner, identityPolicies: [mayGet] }), 'allow')
  t.equal(outcome(get(carol), { policy: toPartner, identityPolicies: [] }), 'implicit deny')
  t.equal(outcome(get(carol), { policy: toAll, identityPolicies: [] }), 'implicit deny', 'even for everybody')
  t.equal(outcome(get(carol), { identityPolicies: [mayGet] }), 'implicit deny')
  t.equal(outcome(get(anonymous), { policy: toAll }), 'allow')
})

t.test('an explicit deny wins, wherever it is', async (t) => {
  const no = deny('s3:GetObject', ALL)
  const changes = { policy: toAll, identityPolicies: [mayGet] }
  t.equal(outcome(get(limited), changes), 'allow')
  t.equal(outcome(get(limited), { ...changes, policy: bucketPolicy(allow('s3:*', ALL), no) }), 'explicit deny')
  t.equal(outcome(get(limited), { ...changes, identityPolicies: [mayGet, identityPolicy(no)] }), 'explicit deny')
  t.equal(outcome(get(limited), { ...changes, sessionPolicies: [identityPolicy(no)] }), 'explicit deny')
  t.equal(outcome(get(owner), { policy: bucketPolicy(no) }), 'explicit deny', 'for the owner too')
  const opened = { ...ACLS, objectAcl: acl('public-read', 'object'), policy: bucketPolicy(no) }
  t.equal(outcome(get(anonymous), opened), 'explicit deny', 'over an ACL')
})

t.test('a session policy limits', async (t) => {
  const other = identityPolicy(allow('s3:PutObject', ALL))
  t.equal(outcome(get(owner), { sessionPolicies: [mayGet] }), 'allow')
  t.equal(outcome(get(owner), { sessionPolicies: [other] }), 'implicit deny')
  t.equal(
    outcome(get(limited), { sessionPolicies: [mayGet], identityPolicies: [] }),
    'implicit deny',
    'and gives nothing',
  )
})

t.test('the account of the owner always reaches its bucket policy', async (t) => {
  const lockedOut = { policy: bucketPolicy(deny('*', [ARN, ALL])) }
  for (const action of ['s3:GetBucketPolicy', 's3:PutBucketPolicy', 's3:DeleteBucketPolicy']) {
    t.equal(outcome(ask(owner, action), lockedOut), 'allow', action)
    t.equal(outcome(ask(limited, action), lockedOut), 'explicit deny', `${action} by an identity`)
    t.equal(outcome(ask(partner, action), lockedOut), 'explicit deny', `${action} by another account`)
  }
  t.equal(outcome(ask(owner, 's3:GetBucketAcl'), lockedOut), 'explicit deny')
  const named = { ...limited, root: true }
  t.equal(outcome(ask(named, 's3:PutBucketPolicy'), lockedOut), 'allow', 'an identity that stands for its account')
})

t.test('ACLs', async (t) => {
  const open = { ...ACLS, bucketAcl: acl('public-read', 'bucket'), objectAcl: acl('public-read', 'object') }
  t.equal(outcome(get(anonymous), open), 'allow')
  t.equal(outcome(ask(anonymous, 's3:ListBucket'), open), 'allow')
  t.equal(outcome(get(anonymous), { ...open, objectAcl: acl('private', 'object') }), 'implicit deny', 'has its own')
  t.equal(outcome(get(anonymous), { ...open, objectAcl: undefined }), 'implicit deny', 'a missing one gives nothing')
  t.equal(outcome(get(anonymous), { ...open, ownership: 'BucketOwnerEnforced' }), 'implicit deny')
  t.equal(outcome(get(partner), { ...open, block: { ignorePublicAcls: true } }), 'implicit deny')
  t.equal(outcome(get(carol), { ...open, identityPolicies: [] }), 'implicit deny', 'other accounts need both sides')
  t.equal(outcome(get(limited), { ...open, identityPolicies: [] }), 'allow', 'as everybody')
})

t.test('an object of another account', async (t) => {
  const theirs = { ...ACLS, objectAcl: acl('private', 'object', PARTNER) }
  t.equal(outcome(get(partner), theirs), 'allow', 'its owner reads it')
  t.equal(outcome(ask(partner, 's3:PutObjectAcl', 'k'), theirs), 'allow')
  t.equal(outcome(get(carol), { ...theirs, identityPolicies: [] }), 'implicit deny')
  t.equal(outcome(ask(partner, 's3:DeleteObject', 'k'), theirs), 'implicit deny', 'deleting needs WRITE on the bucket')
  t.equal(outcome(ask(partner, 'deal:CreateObjectDeal', 'k'), theirs), 'implicit deny', 'plugins serve the owner only')
  t.equal(outcome(get(owner), theirs), 'implicit deny', 'the owner of the bucket does not read it')
  t.equal(outcome(ask(owner, 's3:DeleteObject', 'k'), theirs), 'allow', 'but deletes it')
  t.equal(outcome(get(anonymous), { ...theirs, policy: toAll }), 'implicit deny', 'nor gives it to others')
  t.equal(outcome(get(partner), { ...theirs, policy: bucketPolicy(deny('s3:*', ALL)) }), 'explicit deny')
  const given = { ...theirs, objectAcl: acl('bucket-owner-full-control', 'object', PARTNER) }
  t.equal(outcome(get(owner), given), 'allow')
  t.equal(outcome(get(owner), { ...theirs, ownership: 'BucketOwnerEnforced' }), 'allow')
  t.equal(outcome(get(partner), { ...theirs, ownership: 'BucketOwnerEnforced' }), 'implicit deny')
})

t.test('RestrictPublicBuckets leaves the account of the owner', async (t) => {
  const restricted = { policy: toAll, block: { restrictPublicBuckets: true } }
  for (const one of [anonymous, partner, carol]) t.equal(outcome(get(one), restricted), 'implicit deny')
  t.equal(outcome(get(owner), restricted), 'allow')
  const both = bucketPolicy(allow('s3:GetObject', ALL), allow('s3:GetObject', ALL, { Principal: { AWS: PARTNER } }))
  t.equal(outcome(get(partner), { ...restricted, policy: both }), 'implicit deny', 'named accounts included')
  t.equal(outcome(get(partner), { ...restricted, policy: toPartner }), 'allow', 'unless the policy is not public')
})

const all = (more: object = {}) => allow('s3:PutObject', '*', more)
const when = (operator: string, key: string, value: unknown) => all({ Condition: { [operator]: { [key]: value } } })
const carolArn = `arn:aws:iam::${PARTNER}:user/carol`

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html, "The meaning of
 * public"
 */
const cases: readonly [string, object, boolean][] = [
  ['everybody', all(), true],
  ['all but one account', { ...all(), Principal: undefined, NotPrincipal: { AWS: OWNER } }, true],
  ['an account', all({ Principal: { AWS: PARTNER } }), false],
  ['nobody', deny('s3:PutObject', ALL), false],
  ['a fixed address', when('IpAddress', 'aws:SourceIp', '203.0.113.0/24'), false],
  ['half of the internet', when('IpAddress', 'aws:SourceIp', '0.0.0.0/1'), true],
  ['a broad block among others', when('IpAddress', 'aws:SourceIp', ['203.0.113.0/24', '8.0.0.0/7']), true],
  ['all but an address', when('NotIpAddress', 'aws:SourceIp', '203.0.113.0/24'), true],
  ['an address, if there is one', when('IpAddressIfExists', 'aws:SourceIp', '203.0.113.0/24'), true],
  ['an address as text', when('StringEquals', 'aws:SourceIp', '203.0.113.7'), true],
  ['a fixed identity', when('ArnEquals', 'aws:PrincipalArn', carolArn), false],
  ['identities by wildcard', when('ArnLike', 'aws:PrincipalArn', 'arn:aws:iam::*:user/carol'), true],
  ['a fixed account', when('StringEquals', 'aws:PrincipalAccount', PARTNER), false],
  ['accounts by wildcard', when('StringLike', 'aws:PrincipalAccount', 'b*'), true],
  ['a literal star', when('StringEquals', 'aws:userid', '*'), false],
  ['the id of unsigned callers', when('StringEquals', 'aws:userid', 'anonymous'), true],
  ['the id of unsigned callers among others', when('StringLike', 'aws:userid', ['carol', 'anonymous']), true],
  ['a variable', when('StringEquals', 'aws:userid', '${aws:username}'), true],
  ['all but an account', when('StringNotEquals', 'aws:PrincipalAccount', PARTNER), true],
  ['for all values', when('ForAllValues:StringEquals', 'aws:PrincipalAccount', PARTNER), true],
  ['a referer, which anyone can send', when('StringEquals', 'aws:Referer', 'https://x.example/'), true],
]
for (const [name, statement, expected] of cases) t.equal(isPublic(bucketPolicy(statement)), expected, name)

t.equal(isPublic(bucketPolicy(all({ Principal: { AWS: PARTNER } }), all())), true, 'one public statement suffices')
t.equal(isPublic(bucketPolicy(all(), deny('s3:*', ALL))), true, 'a Deny does not make it private')
