import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { presignQuery } from '../../../common/sigv4.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import { startInProcess } from '../../support/server/in-process.js'
import { sendAsIs, signedRequest } from '../../support/sign/signed-request.js'
import { signVersion2 } from '../../support/sign/version-2.js'

const identity = { accessKeyId: 'key', secretAccessKey: 'secret-key' }
const domain = 's3.example.com'

/** A server behind `/storage`, and one over the same gateway that is not, on which a bucket `storage` can be made. */
async function start(t: Test) {
  const { endpoint, gateway } = await startInProcess(t, 'full', {
    identities: [identity],
    domains: [domain],
    signedBasePaths: ['/storage'],
  })
  const plain = await startInProcess(t, 'full', { identities: [identity], gateway })
  for (const [path, body] of [
    ['/photos', ''],
    ['/photos/a', 'the object a of photos'],
    ['/photos/storage/a', 'the object storage/a of photos'],
    ['/storage', ''],
    ['/storage/photos/a', 'the object photos/a of storage'],
  ] as const)
    t.equal((await signedRequest(plain.endpoint, identity, { method: 'PUT', path, body })).status, 200, path)
  return endpoint
}

/** The query of a link that is signed for a path. */
function version4(host: string, path: string): string {
  return presignQuery({
    brand: 'Amz',
    method: 'GET',
    path,
    host,
    ...identity,
    region: 'us-east-1',
    expires: 60,
    now: new Date(),
  })
}

function version2(resource: string): string {
  const expires = Math.floor(Date.now() / 1000) + 60
  const toSign = `GET\n\n\n${expires}\n${resource}`
  const signature = signVersion2(identity.secretAccessKey, toSign)
  return `AWSAccessKeyId=${identity.accessKeyId}&Expires=${expires}&Signature=${encodeURIComponent(signature)}`
}

t.test('a signature means one resource, whatever stands before the server', async (t) => {
  const endpoint = await start(t)
  const { host } = new URL(endpoint)
  const get = (path: string, query: string, at = host) =>
    sendAsIs(endpoint, { method: 'GET' }, `${path}?${query}`, { host: at })
  for (const [version, query] of [
    ['4', version4(host, '/storage/photos/a')],
    ['2', version2('/storage/photos/a')],
  ] as const) {
    t.match(await get('/photos/a', query), { status: 200, body: 'the object a of photos' }, `version ${version}`)
    t.match(
      await get('/storage/photos/a', query),
      { status: 400, code: 'InvalidBucketName' },
      `version ${version}: the bucket of that name is reserved`,
    )
  }
  const named = `storage.${domain}`
  t.match(await get('/photos/a', version4(named, '/photos/a'), named), { status: 400, code: 'InvalidBucketName' })
  t.match(await get('/photos/a', version2('/storage/photos/a'), named), { status: 400, code: 'InvalidBucketName' })

  const photos = `photos.${domain}`
  for (const [version, query] of [
    ['4', version4(photos, '/storage/a')],
    ['2', version2('/photos/storage/a')],
  ] as const) {
    t.match(await get('/storage/a', query, photos), { status: 200, body: 'the object storage/a of photos' })
    t.match(
      await get('/a', query, photos),
      { status: 403, code: 'SignatureDoesNotMatch' },
      `version ${version}: where the host names the bucket no prefix is taken off`,
    )
  }
  for (const method of ['PUT', 'GET', 'DELETE']) {
    t.match(await signedRequest(endpoint, identity, { method, path: '/storage' }), {
      status: 400,
      code: 'InvalidBucketName',
      body: /reserved/,
    })
  }
})

t.test('base paths of which a signature could mean two things stop the start', async (t) => {
  const data = join(t.testdir(), 'data')
  for (const signedBasePaths of [['/s3', '/s3/photos'], ['/a/b', '/a'], ['/-'], ['/%2D/jobs'], ['/s%33', '/s3/x']]) {
    const gateway = { url: 'http://127.0.0.1:9', account: { accessKey: 'abc', secretKey: 'abcdefgh' } }
    const log = createLogger({ level: 'silent' })
    await t.rejects(
      createProxy({ gateway, data, identities: [identity], signedBasePaths, log }),
      { name: 'TypeError', message: /signed base path/ },
      signedBasePaths.join(),
    )
  }
})
