import t from 'tap'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import type { TextAnswer } from '../../../support/sign/signed-request.js'
import { startWorld } from './world.js'

const ACLS = { 'x-amz-object-ownership': 'ObjectWriter' }
const PUBLIC = { 'x-amz-acl': 'public-read' }
const policy = (...statements: readonly object[]) => ({
  query: { policy: '' },
  body: JSON.stringify({
    Version: '2012-10-17',
    Statement: statements.map((one) => ({ Principal: '*', Resource: 'arn:aws:s3:::box/*', ...one })),
  }),
})
const allow = (...Action: readonly string[]) => ({ Effect: 'Allow', Action })
const uploadIdOf = ({ body }: TextAnswer) => /<UploadId>(.*)<\/UploadId>/.exec(body)?.[1] ?? ''

t.test('writes, their ACLs and the records that they replace', async (t) => {
  const { status, as, hop, endpoint } = await startWorld(t)

  t.test('a gateway rule that lets everybody write gives no right to set ACLs', async (t) => {
    t.equal(await status('owner', 'PUT', '/acls', { headers: ACLS }), '200 ')
    const user = new GatewayUser(hop)
    await user.login()
    await user.call('web.SetBucketPolicy', { bucketName: 'acls', prefix: 'in/', policy: 'writeonly' })
    t.equal(await status('anonymous', 'PUT', '/acls/in/x', { body: 'x' }), '200 ')
    t.equal(await status('anonymous', 'PUT', '/acls/in/x', { body: 'x', headers: PUBLIC }), '403 AccessDenied')
    const grants = { 'x-amz-grant-read': 'uri="http://acs.amazonaws.com/groups/global/AllUsers"' }
    t.equal(await status('anonymous', 'PUT', '/acls/in/x', { body: 'x', headers: grants }), '403 AccessDenied')
    const form = new FormData()
    form.set('key', 'in/form')
    form.set('acl', 'public-read')
    form.set('file', new Blob(['x']))
    t.equal((await fetch(`${endpoint}/acls`, { method: 'POST', body: form })).status, 403)
    t.equal(await status('owner', 'PUT', '/acls/in/own', { body: 'x', headers: PUBLIC }), '200 ')
    t.equal(await status('anonymous', 'GET', '/acls/in/own'), '200 ')
  })

  t.test('an upload names the account that began it, and the owner that its object will have', async (t) => {
    for (const [bucket, ownership] of [
      ['writer', 'ObjectWriter'],
      ['preferred', 'BucketOwnerPreferred'],
    ] as const) {
      const headers = { 'x-amz-object-ownership': ownership, 'x-amz-acl': 'public-read-write' }
      t.equal(await status('owner', 'PUT', `/${bucket}`, { headers }), '200 ')
      const begun = { query: { uploads: '' }, headers: { 'x-amz-acl': 'bucket-owner-full-control' } }
      t.equal(await status('foreigner', 'POST', `/${bucket}/k`, begun), '200 ')
      const idOf = (body: string, element: string) => new RegExp(`<${element}><ID>(\\w+)</ID>`).exec(body)?.[1]
      const own = idOf((await as.owner({ method: 'GET', path: '/' })).body, 'Owner')
      const theirs = idOf((await as.foreigner({ method: 'GET', path: '/' })).body, 'Owner')
      for (const who of ['owner', 'foreigner'] as const) {
        const { body } = await as[who]({ method: 'GET', path: `/${bucket}`, query: { uploads: '' } })
        t.equal(idOf(body, 'Initiator'), theirs, `${ownership}: ${who}`)
        t.equal(idOf(body, 'Owner'), ownership === 'ObjectWriter' ? theirs : own, `${ownership}: ${who}`)
      }
      t.equal(await status('owner', 'PUT', `/${bucket}/listed`, { body: 'x' }), '200 ')
      const listed = await as.foreigner({ method: 'GET', path: `/${bucket}` })
      t.equal(idOf(listed.body, 'Owner'), own, 'a listing names the owner of the bucket')
    }
  })

  t.test('the record of a replaced object decides nothing', async (t) => {
    t.equal(await status('owner', 'PUT', '/mixed', { headers: ACLS }), '200 ')
    const open = { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read-write' } }
    t.equal(await status('owner', 'PUT', '/mixed', open), '200 ')
    t.equal(await status('foreigner', 'PUT', '/mixed/k', { body: 'theirs' }), '200 ')
    t.equal(await status('owner', 'GET', '/mixed/k'), '403 AccessDenied')
    t.equal(await status('owner', 'PUT', '/mixed/k', { body: 'of the owner' }), '200 ')
    t.equal(await status('owner', 'GET', '/mixed/k'), '200 ')
    t.equal(await status('foreigner', 'GET', '/mixed/k'), '403 AccessDenied')
    t.equal(await status('foreigner', 'DELETE', '/mixed/k'), '403 AccessDenied', 'not its own any more')
    t.equal(await status('foreigner', 'PUT', '/mixed/own', { body: 'theirs' }), '200 ')
    t.equal(await status('foreigner', 'DELETE', '/mixed/own'), '204 ', 'WRITE lets it delete its own')
  })

  t.test('a Deny by the tags of an object keeps it from being replaced and removed', async (t) => {
    t.equal(await status('owner', 'PUT', '/box'), '200 ')
    const locked = { StringEquals: { 's3:ExistingObjectTag/lock': 'yes' } }
    const put = policy(allow('s3:PutObject', 's3:DeleteObject'), {
      Effect: 'Deny',
      Action: ['s3:PutObject', 's3:DeleteObject'],
      Condition: locked,
    })
    t.equal(await status('owner', 'PUT', '/box', put), '204 ')
    const tagged = { body: 'x', headers: { 'x-amz-tagging': 'lock=yes' } }
    t.equal(await status('owner', 'PUT', '/box/k', tagged), '200 ')
    for (const who of ['owner', 'foreigner', 'anonymous'] as const) {
      t.equal(await status(who, 'PUT', '/box/k', { body: 'y' }), '403 AccessDenied', who)
      t.equal(await status(who, 'DELETE', '/box/k'), '403 AccessDenied', who)
    }
    t.equal(await status('owner', 'DELETE', '/box/k', { query: { tagging: '' } }), '204 ')
    t.equal(await status('anonymous', 'PUT', '/box/k', { body: 'y' }), '200 ')
    t.equal(await status('anonymous', 'PUT', '/box/k', { body: 'z' }), '200 ')
    t.equal(await status('foreigner', 'DELETE', '/box/k'), '204 ')
  })

  t.test('a write is granted with all that its headers ask for, or not at all', async (t) => {
    const tagged = { body: 'x', headers: { 'x-amz-tagging': 'lock=no' } }
    t.equal(await status('owner', 'PUT', '/box', policy(allow('s3:PutObject'))), '204 ')
    for (const who of ['foreigner', 'anonymous'] as const)
      t.equal(await status(who, 'PUT', '/box/tagged', tagged), '403 AccessDenied', who)
    t.equal(await status('owner', 'GET', '/box/tagged'), '404 NoSuchKey', 'nothing was stored')
    t.equal(await status('owner', 'PUT', '/box', policy(allow('s3:PutObject', 's3:PutObjectTagging'))), '204 ')
    for (const who of ['foreigner', 'anonymous'] as const)
      t.equal(await status(who, 'PUT', '/box/tagged', tagged), '200 ', who)
    t.equal(await status('owner', 'DELETE', '/box/tagged'), '204 ')

    t.equal(await status('owner', 'PUT', '/open', { headers: ACLS }), '200 ')
    const shown = { body: 'x', headers: PUBLIC }
    const Resource = 'arn:aws:s3:::open/*'
    t.equal(await status('owner', 'PUT', '/open', policy({ ...allow('s3:PutObject'), Resource })), '204 ')
    t.equal(await status('foreigner', 'PUT', '/open/shown', shown), '403 AccessDenied')
    const both = policy({ ...allow('s3:PutObject', 's3:PutObjectAcl'), Resource })
    t.equal(await status('owner', 'PUT', '/open', both), '204 ')
    t.equal(await status('foreigner', 'PUT', '/open/shown', shown), '200 ')
  })

  t.test('each spelling of the source of a copy is the same to a condition', async (t) => {
    for (const key of ['secret/a', 'open']) t.equal(await status('owner', 'PUT', `/box/${key}`, { body: 'x' }), '200 ')
    const Condition = { StringLike: { 's3:x-amz-copy-source': 'box/secret/*' } }
    t.equal(await status('owner', 'PUT', '/box', policy({ Effect: 'Deny', Action: 's3:PutObject', Condition })), '204 ')
    const copy = (from: string) => status('owner', 'PUT', '/box/to', { headers: { 'x-amz-copy-source': from } })
    for (const from of ['box/secret/a', '/box/secret/a', 'box/%73ecret/a', 'box%2Fsecret/a?versionId=null'])
      t.equal(await copy(from), '403 AccessDenied', from)
    t.equal(await copy('/box/open'), '200 ')
  })

  t.test('DeleteObjects that no policy can allow is refused before its body is read', async (t) => {
    t.equal(await status('owner', 'PUT', '/box', policy(allow('s3:GetObject'))), '204 ')
    const wanted = {
      query: { delete: '' },
      body: 'no document',
      headers: { 'content-md5': 'eKg08Lw6qaVLc3Pv7Z3WmQ==' },
    }
    t.equal(await status('anonymous', 'POST', '/box', wanted), '403 AccessDenied')
  })

  t.test('the requests of a multipart upload are judged by what began it, and by the present policy', async (t) => {
    const Condition = { StringEquals: { 's3:x-amz-acl': 'bucket-owner-full-control' } }
    t.equal(await status('owner', 'PUT', '/box', policy({ ...allow('s3:PutObject'), Condition })), '204 ')
    const upload = async (who: 'owner' | 'foreigner') => {
      const headers = { 'x-amz-acl': 'bucket-owner-full-control' }
      const begun = { method: 'POST', path: '/box/big', query: { uploads: '' }, headers }
      const uploadId = uploadIdOf(await as[who](begun))
      return (partNumber: string) =>
        as[who]({ method: 'PUT', path: '/box/big', query: { partNumber, uploadId }, body: 'part' }).then(
          async ({ status: got, headers: { etag } }) => ({ got, etag, uploadId }),
        )
    }
    t.equal(await status('foreigner', 'POST', '/box/big', { query: { uploads: '' } }), '403 AccessDenied')
    const part = await upload('foreigner')
    const { got, etag, uploadId } = await part('1')
    t.equal(got, 200)
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`
    t.equal(await status('foreigner', 'POST', '/box/big', { query: { uploadId }, body: list }), '200 ')

    const [theirs, own] = [await upload('foreigner'), await upload('owner')]
    t.equal((await theirs('1')).got, 200)
    t.equal(await status('owner', 'DELETE', '/box', { query: { policy: '' } }), '204 ')
    t.equal((await theirs('2')).got, 403, 'no more parts fill the disk')
    t.equal((await own('1')).got, 200)
  })

  t.test('uploads in a private bucket of another account, and those that its owner did not begin', async (t) => {
    t.equal(await status('foreigner', 'POST', '/box/big', { query: { uploads: '' } }), '403 AccessDenied')

    t.equal(await status('owner', 'PUT', '/box', policy(allow('s3:PutObject'))), '204 ')
    const uploadId = uploadIdOf(await as.foreigner({ method: 'POST', path: '/box/left', query: { uploads: '' } }))
    const part = { query: { partNumber: '1', uploadId }, body: 'part' }
    t.equal(await status('foreigner', 'PUT', '/box/left', part), '200 ')
    t.equal(await status('owner', 'DELETE', '/box', { query: { policy: '' } }), '204 ')
    const all = await as.owner({ method: 'GET', path: '/box', query: { uploads: '' } })
    t.match(all.body, `<UploadId>${uploadId}</UploadId>`, 'the owner sees every upload')
    t.match(all.body, '<DisplayName>second-account</DisplayName></Initiator>')
    t.match((await as.owner({ method: 'GET', path: '/box/left', query: { uploadId } })).body, '<Size>4</Size>')
    t.match(await status('owner', 'PUT', '/box/left', part), /^40[34]/, 'but adds nothing to it')
    t.equal(await status('owner', 'DELETE', '/box/left', { query: { uploadId } }), '204 ', 'and ends it')
    t.notMatch((await as.owner({ method: 'GET', path: '/box', query: { uploads: '' } })).body, uploadId)

    const id = uploadIdOf(await as.owner({ method: 'POST', path: '/box/own', query: { uploads: '' } }))
    t.match(await status('foreigner', 'DELETE', '/box/own', { query: { uploadId: id } }), /^40[34]/)
    t.match(await status('anonymous', 'DELETE', '/box/own', { query: { uploadId: id } }), /^403/)
    t.notMatch((await as.foreigner({ method: 'GET', path: '/box', query: { uploads: '' } })).body, id)
    t.equal(await status('owner', 'DELETE', '/box/own', { query: { uploadId: id } }), '204 ')
  })
})
