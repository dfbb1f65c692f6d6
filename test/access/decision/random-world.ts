// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this

import type { Random } from '../../fuzz/random.js'
import type { SlowQuestion, SlowWorld } from './slow-evaluator.js'

/** Few names, so that policies and questions often meet. */
export const BUCKET = 'bkt'
export const OWNER = 'a'.repeat(64)
const OTHER = 'b'.repeat(64)
const THIRD = 'c'.repeat(64)
const ACCOUNTS = [OWNER, OTHER, THIRD]
const arn = (account: string, name: string) => `arn:aws:iam::${account}:user/${name}`
const USERS = [arn(OWNER, 'alice'), arn(OWNER, 'bob'), arn(OTHER, 'carol')]
const ACTIONS = [
  ...['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:ListBucket', 's3:GetObjectAcl', 's3:PutObjectAcl'],
  ...['s3:GetObjectTagging', 's3:GetBucketPolicy', 's3:PutBucketPolicy', 's3:PutBucketAcl', 's3:GetBucketAcl'],
  ...['s3:AbortMultipartUpload', 's3:ListBucketMultipartUploads', 'deal:CreateObjectDeal'],
]
const ACTION_PATTERNS = [
  ...ACTIONS,
  '*',
  's3:*',
  's3:Get*',
  'S3:listbucket',
  's3:*Object',
  's3:?etObject*',
  'deal:*',
  's3:List*',
]
const KEYS = ['a.txt', 'home/alice/x', 'home/bob/x', 'home/*/x', 'dir/?', '$odd', 'ünï😀', 'a/b/c']
const RESOURCES = [
  ...['', '/*', '/a.txt', '/?.txt', '/home/${aws:username}/*', "/home/${aws:username, 'alice'}/*", '/home/${*}/x'],
  ...['/dir/${?}', '/${$}odd', '/*/x', '/a*c', '/ünï?', '/${s3:prefix}*'],
]
const WHOLE_RESOURCES = ['*', 'arn:aws:s3:::*', 'arn:aws:s3:::b*/home/*', 'arn:aws:s3:::b?t/*']

const VALUES: Readonly<Record<string, readonly string[]>> = {
  'aws:username': ['alice', 'bob', 'carol', 'al*', ''],
  'aws:userid': ['id-alice', 'id-bob'],
  's3:prefix': ['', 'home/', 'home/alice/', 'dir/', 'HOME/'],
  's3:max-keys': ['1', '10', '100', '1000', '2.5', 'many'],
  'aws:securetransport': ['true', 'false'],
  'aws:sourceip': ['10.1.2.3', '192.168.0.7', '203.0.113.9', '2001:db8::7', '::ffff:10.1.2.3', 'fe80::1'],
  'aws:currenttime': ['2026-01-01T00:00:00Z', '2026-06-01T12:00:00Z', '2030-01-01T00:00:00.5Z'],
  'aws:epochtime': ['1767225600', '1780315200'],
  'aws:principalarn': [...USERS, 'no arn'],
  'aws:useragent': ['curl/8', 'aws-cli/2', 'a*b?c'],
  's3:requestobjecttagkeys': ['dept', 'owner', 'cost'],
  's3:existingobjecttag/dept': ['hr', 'it', 'HR'],
  's3:requestobjecttag/dept': ['hr', 'it', ''],
  's3:x-amz-content-sha256': ['AAEC', 'aGk='],
}
const WANTED: Readonly<Record<string, readonly string[]>> = {
  ...VALUES,
  's3:max-keys': ['1', '10', '100', '2.50'],
  's3:prefix': ['', 'home/', 'home/*', 'home/${aws:username}/', '*', 'h?me/', "${aws:username, 'home'}/", '${*}'],
  'aws:useragent': ['curl/*', '*', 'a${*}b${?}c', 'a*c', 'CURL/8', '?url/?'],
  'aws:sourceip': [
    '10.0.0.0/8',
    '192.168.0.0/16',
    '203.0.113.9',
    '2001:db8::/32',
    '0.0.0.0/1',
    '2000::/3',
    '10.1.2.3/32',
  ],
  'aws:currenttime': ['2026-06-01T12:00:00Z', '2026-06-01T14:00:00+02:00', '2027-01-01', '1780315200'],
  'aws:epochtime': ['1780315200', '1767225600', '1800000000'],
  'aws:principalarn': [
    ...USERS,
    'arn:aws:iam::*:user/alice',
    `arn:aws:iam::${OWNER}:user/\${aws:username}`,
    'arn:*:*:*:*:user/*',
  ],
}
const STRING = [
  'StringEquals',
  'StringNotEquals',
  'StringEqualsIgnoreCase',
  'StringNotEqualsIgnoreCase',
  'StringLike',
  'StringNotLike',
]
const RELATIONS = ['Equals', 'NotEquals', 'LessThan', 'LessThanEquals', 'GreaterThan', 'GreaterThanEquals']
const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  's3:max-keys': [...RELATIONS.map((one) => `Numeric${one}`), 'StringEquals'],
  'aws:securetransport': ['Bool'],
  'aws:sourceip': ['IpAddress', 'NotIpAddress'],
  'aws:currenttime': RELATIONS.map((one) => `Date${one}`),
  'aws:epochtime': [...RELATIONS.map((one) => `Date${one}`), ...RELATIONS.map((one) => `Numeric${one}`)],
  'aws:principalarn': ['ArnEquals', 'ArnLike', 'ArnNotEquals', 'ArnNotLike'],
  's3:x-amz-content-sha256': ['BinaryEquals', 'StringEquals'],
}

function some<T>(random: Random, choices: readonly T[], most: number): T[] {
  return Array.from({ length: 1 + random.below(most) }, () => random.of(choices))
}

function oneOrMore(random: Random, choices: readonly string[]): string | string[] {
  return random.chance(0.5) ? random.of(choices) : some(random, choices, 3)
}

function principal(random: Random): unknown {
  if (random.chance(0.4)) return '*'
  const names = [...ACCOUNTS, ...USERS, ...ACCOUNTS.map((id) => `arn:aws:iam::${id}:root`)]
  if (random.chance(0.2)) return { CanonicalUser: oneOrMore(random, ACCOUNTS) }
  return { AWS: oneOrMore(random, random.chance(0.2) ? [...names, '*'] : names) }
}

function condition(random: Random): Record<string, Record<string, unknown>> {
  const result: Record<string, Record<string, unknown>> = {}
  for (let left = 1 + random.below(2); left > 0; left--) {
    const key = random.of(Object.keys(VALUES))
    if (random.chance(0.1)) {
      result.Null = { ...result.Null, [key]: random.of(['true', 'false', true, false]) }
      continue
    }
    const prefix = random.of(['', '', '', 'ForAllValues:', 'ForAnyValue:'])
    const name = `${prefix}${random.of(OPERATORS[key] ?? STRING)}${random.chance(0.25) ? 'IfExists' : ''}`
    const written = random.chance(0.3) ? key.toUpperCase().replace('S3:', 's3:') : key
    result[name] = { ...result[name], [written]: oneOrMore(random, WANTED[key] ?? VALUES[key] ?? []) }
  }
  return result
}

function statement(random: Random, kind: 'bucket' | 'identity'): object {
  const resources = [...RESOURCES.map((end) => `arn:aws:s3:::${BUCKET}${end}`), ...WHOLE_RESOURCES]
  return {
    ...(random.chance(0.2) && { Sid: `s${random.below(9)}` }),
    Effect: random.chance(0.75) ? 'Allow' : 'Deny',
    ...(kind === 'bucket' && { [random.chance(0.85) ? 'Principal' : 'NotPrincipal']: principal(random) }),
    [random.chance(0.9) ? 'Action' : 'NotAction']: oneOrMore(random, ACTION_PATTERNS),
    [random.chance(0.9) ? 'Resource' : 'NotResource']: oneOrMore(random, resources),
    ...(random.chance(0.5) && { Condition: condition(random) }),
  }
}

export function randomPolicy(random: Random, kind: 'bucket' | 'identity'): string {
  const list = Array.from({ length: 1 + random.below(3) }, () => statement(random, kind))
  const version = random.of(['2012-10-17', '2012-10-17', '2012-10-17', '2008-10-17', undefined])
  return JSON.stringify({ Version: version, Statement: list.length === 1 && random.chance(0.5) ? list[0] : list })
}

function randomAcl(random: Random, owner: string): SlowWorld['objectAcl'] {
  const to = ['AllUsers', 'AuthenticatedUsers', 'LogDelivery', ...ACCOUNTS]
  const permissions = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL']
  return {
    owner,
    grants: Array.from({ length: random.below(4) }, () => ({ to: random.of(to), permission: random.of(permissions) })),
  }
}

/** @param accepted a random policy that the product accepts */
export function randomWorld(random: Random, accepted: (kind: 'bucket' | 'identity') => string): SlowWorld {
  return {
    owner: OWNER,
    ...(random.chance(0.8) && { policy: accepted('bucket') }),
    ...(random.chance(0.3) && {
      identityPolicies: Array.from({ length: random.below(3) }, () => accepted('identity')),
    }),
    ...(random.chance(0.1) && { sessionPolicy: accepted('identity') }),
    ...(random.chance(0.6) && { bucketAcl: randomAcl(random, OWNER) as NonNullable<SlowWorld['bucketAcl']> }),
    ...(random.chance(0.6) && {
      objectAcl: randomAcl(random, random.of(ACCOUNTS)) as NonNullable<SlowWorld['objectAcl']>,
    }),
    ownership: random.of(['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter', 'ObjectWriter']),
    ignorePublicAcls: random.chance(0.25),
    restrictPublicBuckets: random.chance(0.2),
  }
}

export function randomQuestion(random: Random): SlowQuestion {
  const context: Record<string, string[]> = {}
  for (const [key, values] of Object.entries(VALUES)) {
    if (!random.chance(0.6)) continue
    const most = key === 's3:requestobjecttagkeys' ? 3 : key.includes('objecttag/') ? 2 : 1
    context[key] = some(random, values, most)
  }
  const kind = random.below(4)
  const user = random.of(USERS)
  const action = random.of(ACTIONS)
  const onBucket = /Bucket/.test(action) || random.chance(0.05)
  return {
    ...(kind === 1 && { account: random.of(ACCOUNTS) }),
    ...(kind > 1 && { account: user.split(':')[4] as string, user }),
    action,
    resource: onBucket ? `arn:aws:s3:::${BUCKET}` : `arn:aws:s3:::${BUCKET}/${random.of(KEYS)}`,
    context,
  }
}
