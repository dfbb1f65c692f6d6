import t, { type Test } from 'tap'
import { legacy, type QuirkName, startServices } from '../../../../services/index.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { Between, type Passed } from '../../../support/gateway/between.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { owner, startDealProxy } from '../../../support/plugins/deal-proxy.js'
import { quirksOf } from '../../../support/server/modes.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'

/** Rules for everybody that another program makes on the gateway by JSON-RPC. */

const BUCKET = 'photos'
const BLOCK =
  '<PublicAccessBlockConfiguration><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>'

/** The modes, and the gateway whose words for a missing object are its own. */
const gateways: Readonly<Record<string, readonly QuirkName[]>> = {
  full: quirksOf('full'),
  legacy: quirksOf('legacy'),
  FS3: [...legacy, 'fs3-texts'],
}

async function start(t: Test, quirks: readonly QuirkName[]) {
  const services = await startServices({ data: temporaryFolder(t), gateway: { host: '127.0.0.1', port: 0, quirks } })
  t.teardown(() => services.stop())
  const gateway = { url: services.gateway.url, ...(await services.gateway.credentials()) }
  const between = await Between.start(t, gateway)
  const { endpoint } = await startDealProxy(t, between)
  const other = new GatewayUser(gateway)
  await other.login()
  const send = (method: string, path: string, query: string, body = '') =>
    signedRequest(endpoint, owner, { method, path, query: { [query]: '' }, body } satisfies Wanted)
  await signedRequest(endpoint, owner, { method: 'PUT', path: `/${BUCKET}` })
  for (const key of ['top', 'pub/a', 'x?y/b'])
    await signedRequest(endpoint, owner, { method: 'PUT', path: `/${BUCKET}/${key}`, body: 'bytes' })
  return {
    between,
    /** On the bucket. */
    ask: (method: string, query: string, body = '') => send(method, `/${BUCKET}`, query, body),
    acl: (key: string) => send('GET', `/${BUCKET}/${key}`, 'acl'),
    rule: (prefix: string, policy: string) => other.call('web.SetBucketPolicy', { bucketName: BUCKET, prefix, policy }),
    rules: async () =>
      ((await other.call('web.ListAllBucketPolicies', { bucketName: BUCKET })).policies ?? []) as unknown[],
    /** Status of a download without a log-in, from the gateway itself. */
    async read(key: string) {
      const response = await fetch(`${gateway.url}/gateway/download/${BUCKET}/${encodeURIComponent(key)}?token=`, {
        headers: { 'user-agent': 'Mozilla/5.0 (test)' },
      })
      await response.arrayBuffer()
      return response.status
    },
  }
}

/** The parameters of a JSON-RPC call of this method; undefined for any other request. */
function called({ path, body }: Passed, wanted: string): Record<string, string> | undefined {
  if (!path.endsWith('/webrpc')) return undefined
  const { method, params } = JSON.parse(body.toString()) as { method: string; params: Record<string, string> }
  return method === wanted ? params : undefined
}

const success = (result: object) => ({ status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result }) })
const lists = (hidden: (request: Passed) => boolean) => (request: Passed) =>
  hidden(request) ? success({ policies: null }) : 'pass'

for (const [mode, quirks] of Object.entries(gateways)) {
  t.test(`${mode}: rules that another program made are reported and removed`, async (t) => {
    const { ask, rule, rules, read } = await start(t, quirks)
    t.match((await ask('GET', 'policyStatus')).body, '<IsPublic>false</IsPublic>')
    t.equal((await ask('PUT', 'publicAccessBlock', BLOCK)).status, 200)

    await rule('pub/', 'readonly')
    await rule('x?y', 'readonly')
    await rule('', 'writeonly')
    t.equal(await read('pub/a'), 200, 'the gateway serves everybody')
    t.match((await ask('GET', 'policyStatus')).body, '<IsPublic>true</IsPublic>')
    const { body } = await ask('GET', 'policy')
    t.match(body, '"arn:aws:s3:::photos/pub/*"')
    t.match(body, '"arn:aws:s3:::photos/x?y*"', 'also a prefix that a policy of S3 cannot name')
    t.match((await ask('GET', 'acl')).body, '<Permission>WRITE</Permission>')
    t.match((await ask('GET', 'publicAccessBlock')).body, '<RestrictPublicBuckets>false</RestrictPublicBuckets>')
    const refused = await ask('PUT', 'publicAccessBlock', BLOCK)
    t.equal(refused.code, 'NotImplemented')
    t.match(refused.body, 'readonly on &quot;pub/*&quot;')

    t.equal((await ask('DELETE', 'policy')).status, 204)
    t.same(await rules(), [])
    t.equal(await read('pub/a'), 403)
    t.match((await ask('GET', 'policyStatus')).body, '<IsPublic>false</IsPublic>')
    t.match((await ask('GET', 'publicAccessBlock')).body, '<RestrictPublicBuckets>true</RestrictPublicBuckets>')
  })

  t.test(`${mode}: a rule that the gateway keeps although it says that it is gone`, async (t) => {
    const { between, ask, rule, rules, read } = await start(t, quirks)
    await rule('pub/', 'readonly')
    await rule('other/', 'readwrite')
    between.fate = (request) =>
      called(request, 'web.SetBucketPolicy')?.prefix?.startsWith('pub/') ? success({ uiVersion: '1' }) : 'pass'
    const kept = await ask('DELETE', 'policy')
    t.equal(kept.code, 'NotImplemented')
    t.match(kept.body, /The bucket is still public.*readonly on &quot;pub\/\*&quot;/)
    t.notMatch(kept.body, 'other/')
    t.equal((await rules()).length, 1, 'the other one is gone')
    t.equal(await read('pub/a'), 200)
    t.match((await ask('GET', 'policyStatus')).body, '<IsPublic>true</IsPublic>')
    t.equal((await ask('PUT', 'publicAccessBlock', BLOCK)).code, 'NotImplemented')
    between.fate = () => 'pass'
    t.equal((await ask('DELETE', 'policy')).status, 204)
    t.equal(await read('pub/a'), 403)
  })

  for (const prefix of ['', 'pub/'])
    t.test(`${mode}: a rule for "${prefix}" that the gateway does not list`, async (t) => {
      const { between, ask, acl, rule, rules, read } = await start(t, quirks)
      await rule(prefix, 'readonly')
      let keeps = true
      between.fate = (request) => {
        if (keeps && called(request, 'web.SetBucketPolicy')) return success({ uiVersion: '1' })
        return lists((one) => called(one, 'web.ListAllBucketPolicies') !== undefined)(request)
      }
      t.match((await ask('GET', 'policyStatus')).body, '<IsPublic>true</IsPublic>')
      const { body } = await ask('GET', 'policy')
      t.match(body, `"arn:aws:s3:::photos/${prefix}*"`)
      t.match((await acl('pub/a')).body, '<Permission>READ</Permission>')
      t.equal((await acl('x?y/b')).body.includes('<Permission>READ</Permission>'), prefix === '')
      t.equal((await ask('PUT', 'publicAccessBlock', BLOCK)).code, 'NotImplemented')
      const kept = await ask('DELETE', 'policy')
      t.equal(kept.code, 'NotImplemented')
      t.match(kept.body, `reading objects below &quot;${prefix}&quot;`)
      t.equal(await read('pub/a'), 200)

      keeps = false
      t.equal((await ask('DELETE', 'policy')).status, 204)
      t.same(await rules(), [])
      t.equal(await read('pub/a'), 403)
      t.match((await ask('GET', 'policyStatus')).body, '<IsPublic>false</IsPublic>')
      t.equal((await ask('PUT', 'publicAccessBlock', BLOCK)).status, 200)
    })

  t.test(`${mode}: whether a bucket is public is not told when the gateway cannot be asked`, async (t) => {
    const { between, ask } = await start(t, quirks)
    t.equal((await ask('PUT', 'publicAccessBlock', BLOCK)).status, 200)
    between.fate = (request) =>
      request.path.includes('/download/') ? { status: 500, type: 'text/plain', body: 'broken' } : 'pass'
    for (const [method, query] of [
      ['GET', 'policyStatus'],
      ['GET', 'publicAccessBlock'],
      ['DELETE', 'policy'],
    ] as const)
      t.ok((await ask(method, query)).status >= 500, `${method} ?${query}`)
  })
}
