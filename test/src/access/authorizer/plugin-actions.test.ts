import t, { type Test } from 'tap'
import { S3Error } from '../../../../common/errors/s3-error.js'
import type { Identity } from '../../../../src/api/identity.js'
import type { Plugin, PluginHost } from '../../../../src/api/plugin.js'
import { canonicalId } from '../../../../src/auth/credentials.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { foreigner, startWorld } from './world.js'

const policyOf = (...Action: string[]) => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Action, Resource: '*' }],
})
const keysOf = (name: string) => ({ accessKeyId: `${name}-key`, secretAccessKey: `secret-of-${name}` })
/** A key pair of the owner's account that has all of S3, and one that may also spend. */
const plain: Identity = { ...keysOf('plain'), policies: [policyOf('s3:*', 'jobs:*')] }
const payer: Identity = { ...keysOf('payer'), policies: [policyOf('s3:*', 'jobs:*', 'pay:Order')] }
/** A key pair of the owner's account that has the actions of S3 and `*`, which does not include those of plugins. */
const starred: Identity = { ...keysOf('starred'), policies: [policyOf('*', 'jobs:*')] }
const RULES = {
  query: { lifecycle: '' },
  body: '<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status><Filter/><Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule></LifecycleConfiguration>',
}
const TERMS = { body: 'x', headers: { 'x-amz-meta-pay-terms': 'price=9' } }

/** A plugin whose one action spends: by a storage class, by metadata, and by a job. */
async function start(t: Test) {
  let host: PluginHost | undefined
  const pay: Plugin = {
    name: 'pay',
    operations: [],
    storageClasses: [{ name: 'GLACIER', action: 'pay:Order', transition: async () => false }],
    metadataActions: { 'pay-terms': 'pay:Order' },
    jobs: [
      {
        name: 'pay:Order',
        async run() {
          throw new S3Error('InvalidRequest')
        },
      },
    ],
    async start(started) {
      host = started
    },
  }
  const world = await startWorld(t, () => [plain, payer, starred], { plugins: [pay] })
  if (!host) throw new Error('the plugin was not started')
  const { own } = host
  const send = async (who: Identity, method: string, path: string, more: object = {}) => {
    const { status, code } = await signedRequest(world.endpoint, who, { method, path, ...more })
    return `${status} ${code}`
  }
  const partner: Identity = { ...foreigner, account: world.hop.account }
  const open = (...Action: string[]) => {
    const Resource = ['arn:aws:s3:::box', 'arn:aws:s3:::box/*']
    const Principal = { CanonicalUser: canonicalId(partner) }
    const body = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal, Action, Resource }],
    })
    return world.status('owner', 'PUT', '/box', { query: { policy: '' }, body })
  }
  t.equal(await world.status('owner', 'PUT', '/box'), '200 ')
  const authorized = async (key: string) => (await own.store.head('box', key)).authorized?.['pay-terms']?.accessKeyId
  return { ...world, own, send, open, partner, authorized }
}

t.test('a bucket policy for S3 lets a partner order nothing that costs money', async (t) => {
  const { open, send, partner, authorized } = await start(t)
  for (const actions of [['s3:*'], ['s3:PutLifecycleConfiguration', 's3:PutObject'], ['*']]) {
    t.equal(await open(...actions), '204 ')
    t.equal(await send(partner, 'PUT', '/box', RULES), '403 AccessDenied', `a transition by ${actions}`)
    t.equal(await send(partner, 'PUT', '/box/terms', TERMS), '200 ', 'the object is stored')
    t.equal(await authorized('terms'), undefined, 'but its terms do not count')
  }
  const expiry = RULES.body.replace(/<Transition>.*<\/Transition>/, '<Expiration><Days>1</Days></Expiration>')
  t.equal(await send(partner, 'PUT', '/box', { ...RULES, body: expiry }), '200 ', 'a rule that costs nothing')

  t.equal(await open('s3:*', 'pay:Order'), '204 ')
  t.equal(await send(partner, 'PUT', '/box', RULES), '200 ', 'the policy names the action')
  t.equal(await send(partner, 'PUT', '/box/terms', TERMS), '200 ')
  t.equal(await authorized('terms'), partner.accessKeyId)
})

t.test('a key pair with policies spends only if they name the action', async (t) => {
  const { send, authorized, status } = await start(t)
  for (const who of [plain, starred]) {
    t.equal(await send(who, 'PUT', '/box', RULES), '403 AccessDenied', 'a transition')
    t.equal(await send(who, 'PUT', '/box/terms', TERMS), '200 ')
    t.equal(await authorized('terms'), undefined, 'terms that do not count')
    const copied = {
      headers: { ...TERMS.headers, 'x-amz-copy-source': '/box/terms', 'x-amz-metadata-directive': 'REPLACE' },
    }
    t.equal(await send(who, 'PUT', '/box/copied', copied), '200 ')
    t.equal(await authorized('copied'), undefined, 'nor those of a copy')
  }
  t.equal(await send(payer, 'PUT', '/box', RULES), '200 ')
  t.equal(await send(payer, 'PUT', '/box/terms', TERMS), '200 ')
  t.equal(await authorized('terms'), payer.accessKeyId)
  t.equal(await status('owner', 'PUT', '/box', RULES), '200 ')
  t.equal(await status('owner', 'PUT', '/box/terms', TERMS), '200 ')
  t.equal(await authorized('terms'), 'owner-key', 'a key pair of the whole account')
})

t.test('a bucket policy that denies the action binds the owner too', async (t) => {
  const { send, authorized, status } = await start(t)
  const Statement = [
    { Effect: 'Deny', Principal: '*', Action: 'pay:Order', Resource: ['arn:aws:s3:::box', 'arn:aws:s3:::box/*'] },
  ]
  const body = JSON.stringify({ Version: '2012-10-17', Statement })
  t.equal(await status('owner', 'PUT', '/box', { query: { policy: '' }, body }), '204 ')
  t.equal(await status('owner', 'PUT', '/box', RULES), '403 AccessDenied')
  t.equal(await send(payer, 'PUT', '/box/terms', TERMS), '200 ')
  t.equal(await authorized('terms'), undefined)
})

t.test('a key pair with policies runs again only jobs whose action they name', async (t) => {
  const { send, own } = await start(t)
  const failed = async ({ accessKeyId }: Identity) => {
    const { id } = await own.jobs.create({ kind: 'pay:Order', resource: '/box/k', input: {}, accessKeyId })
    await own.jobs.wait(id, 30_000)
    return `/-/jobs/v1/${id}`
  }
  const outcome = { body: JSON.stringify({ Status: 'Complete' }), headers: { 'content-type': 'application/json' } }
  for (const who of [plain, starred]) {
    const job = await failed(who)
    t.equal(await send(who, 'GET', job), '200 ')
    t.equal(await send(who, 'POST', `${job}/retry`), '403 ', 'in JSON')
    t.equal(await send(who, 'POST', `${job}/resolve`, outcome), '403 ')
  }
  t.equal(await send(payer, 'POST', `${await failed(payer)}/retry`), '200 ')
})

t.test('a policy names only actions of plugins that the server has', async (t) => {
  const { open } = await start(t)
  for (const action of ['pay:Ordr', 'foo:Bar', 'foo:*', 'deal:CreatObjectDeal', 'pay:OrderMore'])
    t.equal(await open(action), '400 MalformedPolicy', action)
  for (const action of ['pay:Order', 'PAY:order', 'pay:*', 'jobs:*', 's3:*'])
    t.equal(await open(action), '204 ', action)
  const wrong: Identity = { ...keysOf('wrong'), policies: [policyOf('pay:Ordr')] }
  await t.rejects(
    startWorld(t, () => [wrong]),
    { message: /invalid action.*pay:Ordr/i },
  )
})
