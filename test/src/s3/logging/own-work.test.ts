import t from 'tap'
import { DAY_MS } from '../../../../common/time.js'
import { OWN_ID } from '../../../../src/auth/credentials.js'
import { definePlugin } from '../../../../src/plugins/define-plugin.js'
import { done } from '../../../support/plugins/batch-scene.js'
import { owner } from '../../access/authorizer/world.js'
import { enabled, startLogging } from './scene.js'

// What the server does by itself, in the access log of the bucket.

const cold = definePlugin({
  name: 'cold',
  summary: 'Moves whatever it is given.',
  create: () => ({
    operations: [],
    storageClasses: [{ name: 'GLACIER', action: 'cold:Move', transition: async () => true }],
  }),
})

const rule = (id: string, prefix: string, action: string) =>
  `<Rule><ID>${id}</ID><Status>Enabled</Status><Filter><Prefix>${prefix}</Prefix></Filter>${action}</Rule>`

const RULES = `<LifecycleConfiguration>${[
  rule('a', 'old/', '<Expiration><Days>1</Days></Expiration>'),
  rule('b', 'cold/', '<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>'),
  rule(
    'c',
    'up/',
    '<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>',
  ),
  rule('d', 'old/', '<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>'),
].join('')}</LifecycleConfiguration>`

t.test('lifecycle rules', async (t) => {
  let now = Date.now()
  const scene = await startLogging(t, { now: () => now, lifecycleIntervalMs: 20, plugins: [cold({})] })
  const { as, set, arrived, status } = scene
  t.equal(await set('logging', enabled('logs', 'a/')), '200 ')
  await as.owner({ method: 'PUT', path: '/source/old/a b', body: 'abc' })
  // Smaller ones are not moved.
  await as.owner({ method: 'PUT', path: '/source/cold/b', body: 'x'.repeat(131_073) })
  t.equal(await status('owner', 'POST', '/source/up/c', { query: { uploads: '' } }), '200 ')
  t.equal(await set('lifecycle', RULES), '200 ')
  now += 2 * DAY_MS
  const operation = (name: string) => arrived(name, (fields) => fields[6] === name)
  const expired = await operation('S3.EXPIRE.OBJECT')
  t.equal(expired.length, 26)
  t.same(expired.slice(0, 2), [OWN_ID, 'source'])
  t.same(expired.slice(3, 5), ['-', 'AmazonS3'])
  t.match(expired[5], /^[0-9A-F]{16}$/)
  t.equal(expired[7], 'old/a%2520b')
  t.same(expired.slice(8, 18), ['"-"', '-', '-', '-', '3', '-', '-', '"-"', '"-"', '-'])
  t.same(expired.slice(19), ['-', '-', '-', '-', '-', '-', '-'])
  t.same((await operation('S3.TRANSITION.OBJECT')).slice(7, 13), ['cold/b', '"-"', '-', '-', '-', '131073'])
  t.same((await operation('S3.DELETE.UPLOAD')).slice(7, 13), ['up/c', '"-"', '-', '-', '-', '-'])

  const enable = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
  t.equal(await set('versioning', enable), '200 ')
  await as.owner({ method: 'PUT', path: '/source/old/v', body: 'abcd' })
  now += DAY_MS
  const marker = await operation('S3.CREATE.DELETEMARKER')
  t.same(marker.slice(7, 13), ['old/v', '"-"', '-', '-', '-', '-'])
  t.not(marker[17], '-', 'the version of the marker')
  now += 3 * DAY_MS
  const version = await arrived('the version', (fields) => fields[6] === 'S3.EXPIRE.OBJECT' && fields[7] === 'old/v')
  t.equal(version[12], '4')
  t.not(version[17], marker[17])
})

t.test('tasks of batch jobs have the lines of the requests that they are', async (t) => {
  const { as, set, arrived, endpoint } = await startLogging(t)
  for (const key of ['a', 'b']) await as.owner({ method: 'PUT', path: `/source/${key}`, body: 'abc' })
  t.equal(await set('logging', enabled('logs', 'a/')), '200 ')
  const at = { endpoint, accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey, region: 'us-east-1' }
  const Filter = { Bucket: 'source' }
  await done(at, { Operation: 'Copy', Copy: { TargetBucket: 'logs', TargetPrefix: 'copies/' }, Filter })
  await done(at, { Operation: 'Tag', Tag: { Tags: [{ Key: 'k', Value: 'v' }] }, Filter })
  await done(at, { Operation: 'Delete', Filter })
  const lineOf = (name: string, key: string) =>
    arrived(`${name} of ${key}`, (fields) => fields[6] === name && fields[7] === key, 'a/')
  for (const key of ['a', 'b']) {
    const removed = await lineOf('REST.DELETE.OBJECT', key)
    t.same(removed.slice(0, 2), [OWN_ID, 'source'])
    t.same(removed.slice(3, 5), ['127.0.0.1', OWN_ID])
    t.same(removed.slice(8, 12), ['"-"', '204', '-', '-'], 'no request has come')
    await lineOf('REST.PUT.OBJECT_TAGGING', key)
    await lineOf('REST.COPY.OBJECT_GET', key)
  }
})
