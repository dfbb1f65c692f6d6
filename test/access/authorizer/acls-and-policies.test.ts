import t from 'tap'
import { startWorld } from './world.js'

const OWNERSHIP = (value: string) =>
  `<OwnershipControls><Rule><ObjectOwnership>${value}</ObjectOwnership></Rule></OwnershipControls>`

t.test('ACLs of objects and buckets open what they grant, and nothing once they are disabled', async (t) => {
  const { status, as, endpoint } = await startWorld(t)
  const headers = { 'x-amz-object-ownership': 'BucketOwnerPreferred' }
  t.equal(await status('owner', 'PUT', '/box', { headers }), '200 ')
  t.equal(await status('owner', 'PUT', '/box/open', { body: 'a', headers: { 'x-amz-acl': 'public-read' } }), '200 ')
  t.equal(await status('owner', 'PUT', '/box/shut', { body: 'b' }), '200 ')
  t.equal(await status('anonymous', 'GET', '/box/open'), '200 ')
  t.equal(await status('foreigner', 'GET', '/box/open'), '200 ')
  t.equal(await status('anonymous', 'GET', '/box/shut'), '403 AccessDenied')
  t.equal(await status('anonymous', 'GET', '/box'), '403 AccessDenied')
  t.equal(await status('anonymous', 'PUT', '/box/open', { body: 'x' }), '403 AccessDenied')
  t.match(
    (await as.owner({ method: 'GET', path: '/box/open', query: { acl: '' } })).body,
    /AllUsers.*<Permission>READ</,
  )

  t.equal(
    await status('owner', 'PUT', '/box/shut', { query: { acl: '' }, headers: { 'x-amz-acl': 'authenticated-read' } }),
    '200 ',
  )
  t.equal(await status('foreigner', 'GET', '/box/shut'), '200 ')
  t.equal(await status('anonymous', 'GET', '/box/shut'), '403 AccessDenied')

  t.equal(
    await status('owner', 'PUT', '/box', { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read-write' } }),
    '200 ',
  )
  t.equal(await status('anonymous', 'GET', '/box'), '200 ')
  t.equal(await status('anonymous', 'PUT', '/box/theirs', { body: 'x' }), '200 ')
  t.equal(
    await status('anonymous', 'PUT', '/box/shown', { body: 'x', headers: { 'x-amz-acl': 'public-read' } }),
    '200 ',
  )
  t.equal(await status('owner', 'GET', '/box/shown'), '200 ', 'who may write an object sets its ACL')
  t.equal(await status('foreigner', 'GET', '/box/shown'), '200 ')
  const later = { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read' } }
  t.match(await status('anonymous', 'PUT', '/box/shut', later), /^403/, 'but not that of an object that is there')
  t.match(await status('foreigner', 'PUT', '/box/shut', later), /^403/)
  const byEmail = { query: { acl: '' }, headers: { 'x-amz-grant-read': 'emailAddress="a@example.com"' } }
  t.equal(await status('owner', 'PUT', '/box/shut', byEmail), '405 MethodNotAllowed')
  const form = new FormData()
  for (const [name, value] of Object.entries({ key: 'posted', acl: 'public-read', file: 'x' })) form.append(name, value)
  t.equal((await fetch(`${endpoint}/box`, { method: 'POST', body: form })).status, 204)
  t.equal(await status('anonymous', 'GET', '/box/posted'), '200 ')
  t.equal(
    await status('foreigner', 'PUT', '/box/given', {
      body: 'x',
      headers: { 'x-amz-acl': 'bucket-owner-full-control' },
    }),
    '200 ',
  )
  t.equal(await status('owner', 'GET', '/box/given'), '200 ')
  t.equal(await status('foreigner', 'PUT', '/box/kept', { body: 'x' }), '200 ')
  t.equal(await status('owner', 'GET', '/box/kept'), '403 AccessDenied', 'an object of its writer')
  t.equal(await status('foreigner', 'GET', '/box/kept'), '200 ')
  t.equal(await status('owner', 'DELETE', '/box/kept'), '204 ')

  t.equal(await status('owner', 'PUT', '/box/open', { body: 'again' }), '200 ')
  t.equal(await status('anonymous', 'GET', '/box/open'), '403 AccessDenied', 'an ACL does not outlive its object')

  t.equal(
    await status('owner', 'PUT', '/box', { query: { ownershipControls: '' }, body: OWNERSHIP('BucketOwnerEnforced') }),
    '400 InvalidBucketAclWithObjectOwnership',
  )
  t.equal(await status('owner', 'PUT', '/box', { query: { acl: '' }, headers: { 'x-amz-acl': 'private' } }), '200 ')
  t.equal(
    await status('owner', 'PUT', '/box', { query: { ownershipControls: '' }, body: OWNERSHIP('BucketOwnerEnforced') }),
    '200 ',
  )
  t.equal(await status('foreigner', 'GET', '/box/shut'), '403 AccessDenied')

  const everyone = { Effect: 'Allow', Principal: '*', Action: 's3:*' }
  const body = JSON.stringify({ Statement: { ...everyone, Resource: ['arn:aws:s3:::box', 'arn:aws:s3:::box/*'] } })
  t.equal(await status('owner', 'PUT', '/box', { query: { policy: '' }, body }), '204 ')
  const own = { headers: { 'x-amz-acl': 'private' } }
  const acl = { query: { acl: '' }, ...own }
  const refused = '400 AccessControlListNotSupported'
  t.equal(await status('foreigner', 'PUT', '/box/mine', { body: 'x', ...own }), refused, 'it keeps the owner out')
  t.equal(await status('foreigner', 'POST', '/box/mine', { query: { uploads: '' }, ...own }), refused)
  t.equal(await status('foreigner', 'PUT', '/box', acl), refused)
  t.equal(await status('foreigner', 'PUT', '/box/shut', acl), refused)
  t.equal(await status('owner', 'PUT', '/box/mine', { body: 'x', ...own }), '200 ', 'what is true is accepted')
})

t.test('a policy opens what it allows, and nothing else', async (t) => {
  const { status, as } = await startWorld(t)
  await as.owner({ method: 'PUT', path: '/box' })
  await as.owner({ method: 'PUT', path: '/box/k', body: 'hello' })
  t.equal(await status('anonymous', 'GET', '/box/k'), '403 AccessDenied')
  t.equal(await status('foreigner', 'GET', '/box/k'), '403 AccessDenied')
  const policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::box/*' }],
  })
  t.equal(await status('owner', 'PUT', '/box', { query: { policy: '' }, body: policy }), '204 ')
  t.equal(await status('anonymous', 'GET', '/box/k'), '200 ')
  t.equal(await status('foreigner', 'GET', '/box/k'), '200 ')
  t.equal(await status('anonymous', 'GET', '/box'), '403 AccessDenied')
  t.equal(await status('anonymous', 'GET', '/box/none'), '403 AccessDenied')
  t.equal(await status('anonymous', 'PUT', '/box/k', { body: 'x' }), '403 AccessDenied')
  t.equal(await status('anonymous', 'DELETE', '/box/k'), '403 AccessDenied')
  t.equal((await as.owner({ method: 'GET', path: '/box', query: { policy: '' } })).body, policy)
})
