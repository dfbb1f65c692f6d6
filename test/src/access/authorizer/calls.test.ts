import t, { type Test } from 'tap'
import { startServices } from '../../../../services/index.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { Between, type Passed } from '../../../support/gateway/between.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }
const ARN = 'arn:aws:s3:::policy'
const POLICY = {
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Principal: { CanonicalUser: 'b'.repeat(64) }, Action: 's3:GetObject', Resource: `${ARN}/*` },
    {
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:*',
      Resource: [ARN, `${ARN}/*`],
      Condition: { NotIpAddress: { 'aws:SourceIp': ['127.0.0.0/8', '::1'] } },
    },
  ],
}

const LISTS = 'web.ListBuckets'
/** Shortest time between two of them, ms. */
const LIST_MS = 30_000

/** `GET /gateway/download/bucket/key`, or the method of a call. */
function nameOf({ method, path, body }: Passed): string {
  if (path !== '/gateway/webrpc') return `${method} ${path.split('?')[0]}`
  return (JSON.parse(body.toString()) as { method: string }).method
}

async function start(t: Test) {
  const services = await startServices({ data: temporaryFolder(t), gateway: { host: '127.0.0.1', port: 0 } })
  t.teardown(() => services.stop())
  const account = await services.gateway.credentials()
  const between = await Between.start(t, { url: services.gateway.url, ...account })
  const gateway = { url: between.url, account }
  const { endpoint } = await startInProcess(t, 'full', { gateway, identities: [owner] })
  const request = async (wanted: Wanted): Promise<void> => {
    const { status, code } = await signedRequest(endpoint, owner, wanted)
    t.ok(status < 300, `${wanted.method} ${wanted.path}: ${status} ${code}`)
  }
  /** The calls that the gateway gets for one request, but for those that come with time. */
  const callsOf = async (wanted: Wanted): Promise<string[]> => {
    const known = between.requests.length
    await request(wanted)
    return between.requests
      .slice(known)
      .map(nameOf)
      .filter((name) => name !== LISTS)
  }
  await request({ method: 'PUT', path: '/plain' })
  await request({ method: 'PUT', path: '/policy' })
  await request({ method: 'PUT', path: '/policy', query: { policy: '' }, body: JSON.stringify(POLICY) })
  await request({ method: 'PUT', path: '/acls', headers: { 'x-amz-object-ownership': 'ObjectWriter' } })
  await request({ method: 'PUT', path: '/acls', query: { acl: '' }, headers: { 'x-amz-acl': 'authenticated-read' } })
  for (const bucket of ['plain', 'policy', 'acls']) await request({ method: 'PUT', path: `/${bucket}/key`, body: 'a' })
  // The session of the account has its token for downloads from here on.
  await request({ method: 'GET', path: '/plain/key' })
  const lists = () => between.requests.filter((passed) => nameOf(passed) === LISTS).length
  return { callsOf, lists }
}

t.test('a decision asks the gateway nothing', async (t) => {
  const { callsOf, lists } = await start(t)
  const [known, begun] = [lists(), performance.now()]
  for (const bucket of ['plain', 'policy', 'acls']) {
    const path = `/${bucket}/key`
    t.same(await callsOf({ method: 'GET', path }), [`GET /gateway/download${path}`], `GET, ${bucket}`)
    t.same(await callsOf({ method: 'HEAD', path }), [`HEAD /gateway/download${path}`], `HEAD, ${bucket}`)
    t.same(await callsOf({ method: 'PUT', path, body: 'b' }), [`PUT /gateway/upload${path}`], `PUT, ${bucket}`)
    t.same(await callsOf({ method: 'GET', path }), [`GET /gateway/download${path}`], `GET of the new one, ${bucket}`)
  }
  const most = 1 + Math.ceil((performance.now() - begun) / LIST_MS)
  t.ok(lists() - known <= most, 'whose buckets there are is asked for all requests together')
})
