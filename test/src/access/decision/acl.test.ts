import { ObjectCannedACL } from '@aws-sdk/client-s3'
import t from 'tap'
import { cannedAcl, evaluateAcl, isPublicAcl } from '../../../../src/access/acl.js'
import type { Acl, Grantee, Permission } from '../../../../src/api/access.js'
import { account, anonymous, ask, OWNER, PARTNER, STRANGER, user } from './ask.js'

const canned = (name: string, kind: 'bucket' | 'object', owner = OWNER) =>
  cannedAcl(name, { owner, bucketOwner: OWNER }, kind)
const grants = (acl: Acl) =>
  acl.grants.map(({ grantee, permission }) => `${'id' in grantee ? grantee.id[0] : grantee.group} ${permission}`)

t.test('canned ACLs', async (t) => {
  t.same(grants(canned('private', 'object')), ['a FULL_CONTROL'])
  t.same(grants(canned('public-read', 'bucket')), ['a FULL_CONTROL', 'AllUsers READ'])
  t.same(grants(canned('public-read-write', 'bucket')), ['a FULL_CONTROL', 'AllUsers READ', 'AllUsers WRITE'])
  t.same(grants(canned('authenticated-read', 'object')), ['a FULL_CONTROL', 'AuthenticatedUsers READ'])
  t.same(grants(canned('bucket-owner-read', 'object', PARTNER)), ['b FULL_CONTROL', 'a READ'])
  t.same(grants(canned('bucket-owner-full-control', 'object', PARTNER)), ['b FULL_CONTROL', 'a FULL_CONTROL'])
  t.same(grants(canned('bucket-owner-full-control', 'object')), ['a FULL_CONTROL'])
  t.same(grants(canned('bucket-owner-read', 'bucket', PARTNER)), ['b FULL_CONTROL'], 'ignored on a bucket')
  t.same(grants(canned('log-delivery-write', 'bucket')), [
    'a FULL_CONTROL',
    'LogDelivery WRITE',
    'LogDelivery READ_ACP',
  ])
  t.throws(() => canned('aws-exec-read', 'object'), { code: 'NotImplemented' })
  for (const name of ['open', '', 'PRIVATE', 'constructor'])
    t.throws(() => canned(name, 'bucket'), { code: 'InvalidArgument' }, name)
  t.same(
    [...Object.values(ObjectCannedACL), 'log-delivery-write']
      .filter((name) => name !== 'aws-exec-read' && isPublicAcl(canned(name, 'bucket')))
      .sort(),
    ['authenticated-read', 'public-read', 'public-read-write'],
  )
})

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html, table of actions by permission. */
const TABLE: Readonly<Record<'bucket' | 'object', Partial<Record<Permission, readonly string[]>>>> = {
  bucket: {
    READ: ['s3:ListBucket', 's3:ListBucketVersions', 's3:ListBucketMultipartUploads'],
    WRITE: ['s3:PutObject'],
    READ_ACP: ['s3:GetBucketAcl'],
    WRITE_ACP: ['s3:PutBucketAcl'],
  },
  object: {
    READ: ['s3:GetObject', 's3:GetObjectVersion'],
    READ_ACP: ['s3:GetObjectAcl', 's3:GetObjectVersionAcl'],
    WRITE_ACP: ['s3:PutObjectAcl', 's3:PutObjectVersionAcl'],
  },
}
const NEVER = [
  's3:DeleteObject',
  's3:GetObjectTagging',
  's3:PutBucketPolicy',
  's3:DeleteBucket',
  'deal:CreateObjectDeal',
]

t.test('the table of permissions', async (t) => {
  const actions = [...Object.values(TABLE).flatMap((rows) => Object.values(rows).flat()), ...NEVER]
  for (const kind of ['bucket', 'object'] as const) {
    for (const permission of ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'] as const) {
      const acl: Acl = { owner: OWNER, grants: [{ grantee: { id: PARTNER }, permission }] }
      const given = actions.filter((action) => {
        const [bucketAcl, objectAcl] = kind === 'bucket' ? [acl, undefined] : [undefined, acl]
        return evaluateAcl(bucketAcl, objectAcl, ask(account(PARTNER), action, 'k')).effect === 'allow'
      })
      const rows = TABLE[kind]
      const wanted = permission === 'FULL_CONTROL' ? Object.values(rows).flat() : (rows[permission] ?? [])
      t.same(given.sort(), [...wanted].sort(), `${permission} of a ${kind}`)
    }
  }
})

t.test('grantees', async (t) => {
  const found = (grantee: Grantee, ignorePublic = false) => {
    const acl: Acl = { owner: OWNER, grants: [{ grantee, permission: 'READ' }] }
    const principals = [anonymous, account(PARTNER), user(PARTNER, 'carol'), account(STRANGER)]
    return principals.map((one) => evaluateAcl(acl, undefined, ask(one, 's3:ListBucket'), { ignorePublic }).to)
  }
  t.same(found({ id: PARTNER }), [undefined, 'account', 'account', undefined])
  t.same(found({ group: 'AllUsers' }), ['everyone', 'everyone', 'everyone', 'everyone'])
  t.same(found({ group: 'AuthenticatedUsers' }), [undefined, 'everyone', 'everyone', 'everyone'])
  t.same(found({ group: 'LogDelivery' }), [undefined, undefined, undefined, undefined])
  t.same(found({ group: 'AllUsers' }, true), [undefined, undefined, undefined, undefined])
  t.same(found({ group: 'AuthenticatedUsers' }, true), [undefined, undefined, undefined, undefined])
  t.same(found({ id: PARTNER }, true), [undefined, 'account', 'account', undefined])
})

t.test('WRITE lets the owner of an object delete it', async (t) => {
  const bucketAcl = canned('public-read-write', 'bucket')
  const deletes = (owner: string, one: Parameters<typeof ask>[0]) =>
    evaluateAcl(bucketAcl, canned('private', 'object', owner), ask(one, 's3:DeleteObject', 'k')).effect
  t.equal(deletes(PARTNER, account(PARTNER)), 'allow')
  t.equal(deletes(STRANGER, account(PARTNER)), 'none')
  t.equal(deletes(PARTNER, anonymous), 'none')
})
