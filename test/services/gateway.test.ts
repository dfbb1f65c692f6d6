import { randomBytes } from 'node:crypto'
import t from 'tap'
import { md5 } from '../support/content/content.js'
import { Client, startGateway } from './gateway-client.js'

t.test('a bucket, an object in it, and both gone again', async (t) => {
  const client = await startGateway(t)
  t.same(Object.keys(await client.call('MakeBucket', { bucketName: 'photos' })), ['uiVersion'])
  const { buckets } = await client.call('ListBuckets')
  t.match(buckets, [{ name: 'photos', creationDate: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/ }])

  for (const size of [0, 1, 32 * 1024, 32 * 1024 + 1, 3_000_000]) {
    const body = randomBytes(size)
    const up = await client.put('photos', `of ${size}`, body, { 'content-type': 'image/png' })
    t.equal(up.status, 200)
    t.equal(up.headers.etag, `"${md5(body)}"`)
    const down = await client.get('photos', `of ${size}`)
    t.equal(down.status, 200)
    t.ok(down.body.equals(body), `${size} bytes come back`)
    t.match(down.headers, {
      etag: `"${md5(body)}"`,
      'content-type': 'image/png',
      'content-length': String(size),
      'accept-ranges': 'bytes',
      'x-cloud-generation': up.headers['x-cloud-generation'],
      'x-cloud-last-modified': up.headers['x-cloud-last-modified'],
    })
    const head = await client.head('photos', `of ${size}`)
    t.equal(head.body.length, 0)
    t.same({ ...head.headers, date: '' }, { ...down.headers, date: '' })
  }
  t.same(await client.names('photos'), ['of 0', 'of 1', 'of 3000000', 'of 32768', 'of 32769'])

  t.match(await client.failure('DeleteBucket', { bucketName: 'photos' }), {
    message: 'The bucket you tried to delete is not empty',
    data: { code: 'BucketNotEmpty' },
  })
  const objects = await client.names('photos')
  await client.call('RemoveObject', { bucketName: 'photos', objects: [...objects, 'not there'] })
  t.same(await client.names('photos'), [])
  t.equal((await client.get('photos', 'of 1')).status, 404)
  await client.call('DeleteBucket', { bucketName: 'photos' })
  t.same((await client.call('ListBuckets')).buckets, [])
})

t.test('log-in', async (t) => {
  const client = await startGateway(t, { accessKey: 'owner', secretKey: 'very-secret' })
  const anybody = new Client(client.url, 'gateway')
  t.match(await anybody.failure('ListBuckets'), { message: 'JWT token missing', data: { code: 'AccessDenied' } })
  const refused = await anybody.failure('Login', { username: 'other', password: 'very-secret' })
  t.match(refused, { message: 'Authentication failed, check your access credentials', data: { code: 'AccessDenied' } })
  for (const [username, password] of [
    ['owner', 'very-wrong'],
    ['ow', 'x'],
    ['owner', ''],
    ['', ''],
  ] as const) {
    t.same(await anybody.failure('Login', { username, password }), refused, 'which key is wrong is not said')
  }
  const login = await anybody.call('Login', { USERNAME: 'owner', PassWord: 'very-secret' })
  t.ok(login.token && login.uiVersion)
})
