import t from 'tap'
import type { Wanted } from '../../../support/sign/signed-request.js'
import { startWorld, type Who } from './world.js'

type Step = readonly [who: Who, method: string, path: string, more: Partial<Wanted>, answer: string, why?: string]

const DENIED = '403 AccessDenied'
const UNSUPPORTED = '400 AccessControlListNotSupported'
const x = { body: 'x' }
const canned = (acl: string) => ({ headers: { 'x-amz-acl': acl } })
const setAcl = (acl: string) => ({ query: { acl: '' }, ...canned(acl) })
const enforce = {
  query: { ownershipControls: '' },
  body: '<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>',
}
const everyone = { Effect: 'Allow', Principal: '*', Action: 's3:*' }
const everything = { ...everyone, Resource: ['arn:aws:s3:::box', 'arn:aws:s3:::box/*'] }

t.test('ACLs of objects and buckets open what they grant, and nothing once they are disabled', async (t) => {
  const { status, as, endpoint } = await startWorld(t)
  const all = async (steps: readonly Step[]) => {
    for (const [who, method, path, more, answer, why = ''] of steps)
      t.equal(await status(who, method, path, more), answer, `${who} ${method} ${path} ${JSON.stringify(more)} ${why}`)
  }
  await all([
    ['owner', 'PUT', '/box', { headers: { 'x-amz-object-ownership': 'BucketOwnerPreferred' } }, '200 '],
    ['owner', 'PUT', '/box/open', { ...x, ...canned('public-read') }, '200 '],
    ['owner', 'PUT', '/box/shut', x, '200 '],
    ['anonymous', 'GET', '/box/open', {}, '200 '],
    ['foreigner', 'GET', '/box/open', {}, '200 '],
    ['anonymous', 'GET', '/box/shut', {}, DENIED],
    ['anonymous', 'GET', '/box', {}, DENIED],
    ['anonymous', 'PUT', '/box/open', x, DENIED],
    ['owner', 'PUT', '/box/shut', setAcl('authenticated-read'), '200 '],
    ['foreigner', 'GET', '/box/shut', {}, '200 '],
    ['anonymous', 'GET', '/box/shut', {}, DENIED],
  ])
  const { body } = await as.owner({ method: 'GET', path: '/box/open', query: { acl: '' } })
  t.match(body, /AllUsers.*<Permission>READ</)

  await all([
    ['owner', 'PUT', '/box', setAcl('public-read-write'), '200 '],
    ['anonymous', 'GET', '/box', {}, '200 '],
    ['anonymous', 'PUT', '/box/theirs', x, '200 '],
    ['anonymous', 'PUT', '/box/shown', { ...x, ...canned('public-read') }, '200 '],
    ['owner', 'GET', '/box/shown', {}, '200 ', 'who may write an object sets its ACL'],
    ['foreigner', 'GET', '/box/shown', {}, '200 '],
    ['anonymous', 'PUT', '/box/shut', setAcl('public-read'), DENIED, 'but not that of an object that is there'],
    ['foreigner', 'PUT', '/box/shut', setAcl('public-read'), DENIED],
  ])
  const byEmail = { query: { acl: '' }, headers: { 'x-amz-grant-read': 'emailAddress="a@example.com"' } }
  const grantee =
    '<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="AmazonCustomerByEmail"><EmailAddress>a@example.com</EmailAddress></Grantee>'
  const document = `<AccessControlPolicy><AccessControlList><Grant>${grantee}<Permission>READ</Permission></Grant></AccessControlList></AccessControlPolicy>`
  for (const path of ['/box', '/box/shut'])
    for (const wanted of [byEmail, { query: { acl: '' }, body: document }])
      t.equal(await status('owner', 'PUT', path, wanted), '405 MethodNotAllowed', path)
  const form = new FormData()
  for (const [name, value] of Object.entries({ key: 'posted', acl: 'public-read', file: 'x' })) form.append(name, value)
  t.equal((await fetch(`${endpoint}/box`, { method: 'POST', body: form })).status, 204)

  await all([
    ['anonymous', 'GET', '/box/posted', {}, '200 '],
    ['foreigner', 'PUT', '/box/given', { ...x, ...canned('bucket-owner-full-control') }, '200 '],
    ['owner', 'GET', '/box/given', {}, '200 '],
    ['foreigner', 'PUT', '/box/kept', x, '200 '],
    ['owner', 'GET', '/box/kept', {}, DENIED, 'an object of its writer'],
    ['foreigner', 'GET', '/box/kept', {}, '200 '],
    ['owner', 'DELETE', '/box/kept', {}, '204 '],
    ['owner', 'PUT', '/box/open', x, '200 '],
    ['anonymous', 'GET', '/box/open', {}, DENIED, 'an ACL does not outlive its object'],

    ['owner', 'PUT', '/box', enforce, '400 InvalidBucketAclWithObjectOwnership'],
    ['owner', 'PUT', '/box', setAcl('private'), '200 '],
    ['owner', 'PUT', '/box', enforce, '200 '],
    ['foreigner', 'GET', '/box/shut', {}, DENIED],
    ['owner', 'PUT', '/box', { query: { policy: '' }, body: JSON.stringify({ Statement: everything }) }, '204 '],
    ['foreigner', 'PUT', '/box/mine', { ...x, ...canned('private') }, UNSUPPORTED, 'it keeps the owner out'],
    ['foreigner', 'POST', '/box/mine', { query: { uploads: '' }, ...canned('private') }, UNSUPPORTED],
    ['foreigner', 'PUT', '/box', setAcl('private'), UNSUPPORTED],
    ['foreigner', 'PUT', '/box/shut', setAcl('private'), UNSUPPORTED],
    ['owner', 'PUT', '/box/mine', { ...x, ...canned('private') }, '200 ', 'what is true is accepted'],
  ])
})
