import t, { type Test } from 'tap'
import { startServices } from '../../../src/services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { SecondAccount } from '../../support/gateway/second-account.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest, unsignedRequest, type Wanted } from '../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }
const foreigner = { accessKeyId: 'foreigner', secretAccessKey: 'secret-of-the-foreigner' }

async function start(t: Test) {
  const services = await startServices({ data: temporaryFolder(t), gateway: { host: '127.0.0.1', port: 0 } })
  t.teardown(() => services.stop())
  const account = await services.gateway.credentials()
  const hop = await SecondAccount.start(t, { url: services.gateway.url, ...account }, { looks: false })
  const { endpoint } = await startInProcess(t, 'full', {
    gateway: { url: hop.url, account },
    identities: [owner, { ...foreigner, account: hop.account }],
  })
  const as = (keys: typeof owner) => (wanted: Wanted) => signedRequest(endpoint, keys, wanted)
  return {
    owner: as(owner),
    foreigner: as(foreigner),
    anonymous: (wanted: Wanted) => unsignedRequest(endpoint, wanted),
  }
}

t.test('a policy opens what it allows, and nothing else', async (t) => {
  const as = await start(t)
  const status = async (who: keyof typeof as, method: string, path: string, more: Partial<Wanted> = {}) => {
    const { status, code } = await as[who]({ method, path, ...more })
    return `${status} ${code}`
  }
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
