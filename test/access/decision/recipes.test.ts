// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this
import t from 'tap'
import { isPublic } from '../../../src/access/policy.js'
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
  type Values,
} from './ask.js'

/**
 * The examples of https://docs.aws.amazon.com/AmazonS3/latest/userguide/example-bucket-policies.html,
 * example-bucket-policies-condition-keys.html and example-policies-s3.html, with the names of this bucket.
 */
const ALL = `${ARN}/*`
const [owner, partner, stranger] = [account(OWNER), account(PARTNER), account(STRANGER)]
type Who = Parameters<typeof ask>[0]

t.test('public read', (t) => {
  const policy = bucketPolicy(allow(['s3:GetObject'], [ALL]))
  t.equal(outcome(ask(anonymous, 's3:GetObject', 'a/b'), { policy }), 'allow')
  for (const action of ['s3:PutObject', 's3:DeleteObject', 's3:GetObjectAcl'])
    t.equal(outcome(ask(anonymous, action, 'a/b'), { policy }), 'implicit deny', action)
  t.equal(outcome(ask(anonymous, 's3:ListBucket'), { policy }), 'implicit deny')
  t.equal(isPublic(policy), true)
  t.end()
})

t.test('uploads of another account only with full control for the owner', (t) => {
  const Principal = { AWS: `arn:aws:iam::${PARTNER}:root` }
  const Condition = { StringEquals: { 's3:x-amz-acl': ['bucket-owner-full-control'] } }
  const policy = bucketPolicy(allow(['s3:PutObject', 's3:PutObjectAcl'], ALL, { Principal, Condition }))
  const put = (who: Who, acl?: string) =>
    outcome(ask(who, 's3:PutObject', 'k', acl === undefined ? {} : { 's3:x-amz-acl': acl }), { policy })
  t.equal(put(partner, 'bucket-owner-full-control'), 'allow')
  t.equal(put(partner, 'private'), 'implicit deny')
  t.equal(put(partner), 'implicit deny')
  t.equal(put(stranger, 'bucket-owner-full-control'), 'implicit deny')
  t.equal(isPublic(policy), false)
  t.end()
})

t.test('access from some addresses only', (t) => {
  const Condition = { NotIpAddress: { 'aws:SourceIp': ['192.0.2.0/24', '2001:DB8:1234:5678::/64'] } }
  const policy = bucketPolicy(deny('s3:*', [ARN, ALL], { Condition }))
  const from = (address?: string) =>
    outcome(ask(owner, 's3:GetObject', 'k', address === undefined ? {} : { 'aws:SourceIp': address }), { policy })
  t.equal(from('192.0.2.44'), 'allow')
  t.equal(from('2001:db8:1234:5678:1::'), 'allow')
  t.equal(from('203.0.113.1'), 'explicit deny')
  t.equal(from(), 'explicit deny', 'an unknown address is another one')
  t.end()
})

t.test('encrypted connections only', (t) => {
  const Condition = { Bool: { 'aws:SecureTransport': 'false' } }
  const policy = bucketPolicy(allow('s3:GetObject', ALL), deny('s3:*', [ARN, ALL], { Condition }))
  const over = (secure: string) =>
    outcome(ask(anonymous, 's3:GetObject', 'k', { 'aws:SecureTransport': secure }), { policy })
  t.equal(over('true'), 'allow')
  t.equal(over('false'), 'explicit deny')
  t.end()
})

t.test('pictures for the own site', (t) => {
  const Condition = { StringLike: { 'aws:Referer': ['http://www.example.com/*', 'http://example.com/*'] } }
  const policy = bucketPolicy(allow(['s3:GetObject', 's3:GetObjectVersion'], ALL, { Condition }))
  const by = (values: Values) => outcome(ask(anonymous, 's3:GetObject', 'cat.jpg', values), { policy })
  t.equal(by({ 'aws:Referer': 'http://example.com/page' }), 'allow')
  t.equal(by({ 'aws:Referer': 'http://example.com.evil.example/' }), 'implicit deny')
  t.equal(by({}), 'implicit deny')
  t.end()
})

t.test('a home folder for each user', (t) => {
  const identityPolicies = [
    identityPolicy(
      allow(['s3:ListAllMyBuckets', 's3:GetBucketLocation'], 'arn:aws:s3:::*'),
      allow('s3:ListBucket', ARN, {
        Condition: { StringLike: { 's3:prefix': ['', 'home/', 'home/${aws:username}/'] } },
      }),
      allow('s3:*', [`${ARN}/home/\${aws:username}`, `${ARN}/home/\${aws:username}/*`]),
    ),
  ]
  const may = (action: string, key: string | undefined, values: Values = {}) =>
    outcome(ask(user(OWNER, 'alice'), action, key, { 'aws:username': 'alice', ...values }), { identityPolicies })
  t.equal(may('s3:ListBucket', undefined, { 's3:prefix': 'home/alice/' }), 'allow')
  t.equal(may('s3:ListBucket', undefined, { 's3:prefix': '' }), 'allow')
  t.equal(may('s3:ListBucket', undefined, { 's3:prefix': 'home/bob/' }), 'implicit deny')
  t.equal(may('s3:ListBucket', undefined), 'implicit deny')
  t.equal(may('s3:PutObject', 'home/alice/a/b'), 'allow')
  t.equal(may('s3:PutObject', 'home/alice2/a'), 'implicit deny')
  t.equal(may('s3:GetBucketLocation', undefined), 'allow')
  t.equal(may('deal:CreateObjectDeal', 'home/alice/a'), 'implicit deny')
  t.end()
})

t.test('objects with a tag', (t) => {
  const Principal = { AWS: arnOf(PARTNER, 'carol') }
  const Condition = { StringEquals: { 's3:ExistingObjectTag/environment': 'production' } }
  const policy = bucketPolicy(allow(['s3:GetObject', 's3:GetObjectVersion'], ALL, { Principal, Condition }))
  const tagged = (values: Values) => outcome(ask(user(PARTNER, 'carol'), 's3:GetObject', 'k', values), { policy })
  t.equal(tagged({ 's3:ExistingObjectTag/environment': 'production' }), 'allow')
  t.equal(tagged({ 's3:ExistingObjectTag/environment': 'test' }), 'implicit deny')
  t.equal(tagged({}), 'implicit deny')
  t.end()
})

t.test('tags of an upload from a list', (t) => {
  const Condition = { 'ForAllValues:StringLike': { 's3:RequestObjectTagKeys': ['Owner', 'CreationDate'] } }
  const policy = bucketPolicy(allow('s3:PutObjectTagging', ALL, { Principal: { AWS: PARTNER }, Condition }))
  const tags = (...keys: string[]) =>
    outcome(ask(partner, 's3:PutObjectTagging', 'k', { 's3:RequestObjectTagKeys': keys }), { policy })
  t.equal(tags('Owner'), 'allow')
  t.equal(tags('Owner', 'CreationDate'), 'allow')
  t.equal(tags('Owner', 'Other'), 'implicit deny')
  t.end()
})

t.test('lists of one folder, of at most ten keys', (t) => {
  const Principal = { AWS: PARTNER }
  const policy = bucketPolicy(
    allow('s3:ListBucket', ARN, {
      Principal,
      Condition: { StringEquals: { 's3:prefix': 'projects', 's3:delimiter': '/' } },
    }),
    deny('s3:ListBucket', ARN, { Principal, Condition: { NumericGreaterThan: { 's3:max-keys': '10' } } }),
  )
  const lists = (values: Values) => outcome(ask(partner, 's3:ListBucket', undefined, values), { policy })
  t.equal(lists({ 's3:prefix': 'projects', 's3:delimiter': '/', 's3:max-keys': '10' }), 'allow')
  t.equal(lists({ 's3:prefix': 'projects', 's3:delimiter': '/', 's3:max-keys': '11' }), 'explicit deny')
  t.equal(lists({ 's3:prefix': 'other', 's3:delimiter': '/' }), 'implicit deny')
  t.equal(lists({ 's3:prefix': 'projects' }), 'implicit deny')
  t.end()
})

t.test('copies from one folder only', (t) => {
  const Principal = { AWS: PARTNER }
  const policy = bucketPolicy(
    allow('s3:PutObject', ALL, { Principal }),
    deny('s3:PutObject', ALL, { Principal, Condition: { Null: { 's3:x-amz-copy-source': 'true' } } }),
    deny('s3:PutObject', ALL, {
      Principal,
      Condition: { StringNotLike: { 's3:x-amz-copy-source': 'photos/public/*' } },
    }),
  )
  const copies = (values: Values) => outcome(ask(partner, 's3:PutObject', 'k', values), { policy })
  t.equal(copies({ 's3:x-amz-copy-source': 'photos/public/cat.jpg' }), 'allow')
  t.equal(copies({ 's3:x-amz-copy-source': 'photos/private/cat.jpg' }), 'explicit deny')
  t.equal(copies({}), 'explicit deny')
  t.end()
})

t.test('a drop box: anyone may put, and the owner alone reads', (t) => {
  const policy = bucketPolicy(allow('s3:PutObject', `${ARN}/inbox/*`))
  t.equal(outcome(ask(anonymous, 's3:PutObject', 'inbox/letter'), { policy }), 'allow')
  t.equal(outcome(ask(anonymous, 's3:GetObject', 'inbox/letter'), { policy }), 'implicit deny')
  t.equal(outcome(ask(anonymous, 's3:PutObject', 'outbox/letter'), { policy }), 'implicit deny')
  t.equal(outcome(ask(owner, 's3:GetObject', 'inbox/letter'), { policy }), 'allow')
  t.end()
})

t.test('requests signed by version 4 in headers', (t) => {
  const policy = bucketPolicy(
    deny('s3:*', ALL, { Condition: { StringNotEquals: { 's3:signatureversion': 'AWS4-HMAC-SHA256' } } }),
    deny('s3:*', ALL, { Condition: { StringNotEquals: { 's3:authType': 'REST-HEADER' } } }),
  )
  const signed = (version: string, type: string) =>
    outcome(ask(owner, 's3:GetObject', 'k', { 's3:signatureversion': version, 's3:authType': type }), { policy })
  t.equal(signed('AWS4-HMAC-SHA256', 'REST-HEADER'), 'allow')
  t.equal(signed('AWS4-HMAC-SHA256', 'REST-QUERY-STRING'), 'explicit deny')
  t.equal(signed('AWS', 'REST-HEADER'), 'explicit deny')
  t.end()
})
