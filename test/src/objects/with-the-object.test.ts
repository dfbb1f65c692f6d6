import { S3Client } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { startServices } from '../../../services/index.js'
import type { State } from '../../../src/api/state.js'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { openState } from '../../../src/state/open-state.js'
import { contentMd5 } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between, type Fate } from '../../support/gateway/between.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest, unsignedRequest, type Wanted } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { startWorld } from '../access/authorizer/world.js'

// Tags and ACL are there from the moment of the object on where the gateway keeps records with objects, although the
// record in the state is written after it.

const KEYS = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
const PART = 'a part of an object'

/** Object records whose writes wait or fail on demand, and that get lost. */
function holding(state: State) {
  let free: (() => void) | undefined
  let held: Promise<void> | undefined
  let waiting = 0
  const now = { lost: false, failing: false }
  const objects = new Proxy(state.objects, {
    get(target, name: keyof State['objects']) {
      if (name === 'get' && now.lost) return async () => undefined
      if (name !== 'set') return target[name].bind(target)
      return async (...given: Parameters<State['objects']['set']>) => {
        waiting++
        await held
        waiting--
        if (now.failing) throw new Error('the state is full')
        await target.set(...given)
      }
    },
  })
  return {
    state: { ...state, objects },
    hold() {
      held = new Promise((resolve) => (free = resolve))
    },
    go() {
      free?.()
      held = undefined
    },
    waiting: () => waiting,
    now,
  }
}

async function openHeld(t: Test) {
  const own = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  return { held: holding(own), close: () => own.close() }
}

async function start(t: Test, mode: 'full' | 'legacy', options: Partial<ProxyOptions> = {}) {
  const { held, close } = await openHeld(t)
  const server = await startInProcess(t, mode, { ...options, state: held.state })
  t.teardown(close)
  const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
    signedRequest(server.endpoint, KEYS, { method, path, ...more })
  t.equal((await send('PUT', '/box')).status, 200)
  const rule = '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>'
  t.equal((await send('PUT', '/box', { query: { ownershipControls: '' }, body: rule })).status, 200)
  return { ...server, held, send }
}

const ATTRIBUTES = {
  'x-amz-tagging': 'who=new',
  'x-amz-acl': 'authenticated-read',
  'x-amz-storage-class': 'STANDARD_IA',
}

type Started = Awaited<ReturnType<typeof start>>

/** What a reader sees of the object. */
async function look({ send }: Pick<Started, 'send'>, path: string) {
  const [head, got, tags, acl] = await Promise.all([
    send('HEAD', path),
    send('GET', path),
    send('GET', path, { query: { tagging: '' } }),
    send('GET', path, { query: { acl: '' } }),
  ])
  return {
    counts: [head, got].map(({ headers }) => headers['x-amz-tagging-count']),
    classes: [head, got].map(({ headers }) => headers['x-amz-storage-class']),
    tag: /<Value>(.*?)<\/Value>/.exec(tags.body)?.[1],
    grantee: /<URI>.*\/(\w+)<\/URI>/.exec(acl.body)?.[1],
  }
}

const COMPLETE = {
  counts: ['1', '1'],
  classes: ['STANDARD_IA', 'STANDARD_IA'],
  tag: 'new',
  grantee: 'AuthenticatedUsers',
}

/** Writes of the key, each with the attributes. */
const writes: Record<string, (started: Started, path: string) => Promise<() => Promise<{ readonly status: number }>>> =
  {
    async PutObject({ send }, path) {
      return () => send('PUT', path, { body: 'of a', headers: { ...ATTRIBUTES, 'x-amz-checksum-crc32': 'oWr6tw==' } })
    },
    async 'PutObject of a large body'({ send }, path) {
      return () => send('PUT', path, { body: Buffer.alloc(600_000, 'large'), headers: ATTRIBUTES })
    },
    async CopyObject({ send }, path) {
      await send('PUT', '/box/source', { body: 'source', headers: { 'x-amz-tagging': 'who=source' } })
      const headers = { ...ATTRIBUTES, 'x-amz-copy-source': '/box/source', 'x-amz-tagging-directive': 'REPLACE' }
      return () => send('PUT', path, { headers })
    },
    async CompleteMultipartUpload({ send }, path) {
      const begun = await send('POST', path, { query: { uploads: '' }, headers: ATTRIBUTES })
      const uploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1] ?? ''
      const { headers } = await send('PUT', path, { query: { uploadId, partNumber: '1' }, body: PART })
      const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${headers.etag}</ETag></Part></CompleteMultipartUpload>`
      return () => send('POST', path, { query: { uploadId }, body: list })
    },
    async 'a POST form'({ endpoint }, path) {
      const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: KEYS })
      const tagging = '<Tagging><TagSet><Tag><Key>who</Key><Value>new</Value></Tag></TagSet></Tagging>'
      const { url, fields } = await createPresignedPost(client, {
        Bucket: 'box',
        Key: path.slice('/box/'.length),
        Fields: { tagging, acl: ATTRIBUTES['x-amz-acl'], 'x-amz-storage-class': 'STANDARD_IA' },
      })
      client.destroy()
      const form = new FormData()
      for (const [name, value] of Object.entries(fields)) form.append(name, value)
      form.append('file', new Blob(['by form']), 'f')
      return () => fetch(url, { method: 'POST', body: form })
    },
  }

t.test('a reader sees tags, ACL and label of an object before its record is stored', async (t) => {
  const started = await start(t, 'full')
  const { send, held } = started
  for (const [name, prepare] of Object.entries(writes)) {
    const path = `/box/${name.replaceAll(' ', '-')}`
    await send('PUT', path, { body: 'before', headers: { 'x-amz-tagging': 'who=old&more=1' } })
    const write = await prepare(started, path)
    held.hold()
    const answer = write()
    await until('the record is on its way', async () => held.waiting() > 0)
    t.match(await look(started, path), COMPLETE, `${name}: before the record`)
    held.go()
    t.ok((await answer).status < 300, name)
    t.match(await look(started, path), COMPLETE, `${name}: after the record`)
  }
})

t.test('elsewhere the object comes first, with an ACL that is no wider', async (t) => {
  const started = await start(t, 'legacy')
  const { send, held } = started
  await send('PUT', '/box/k', { body: 'before', headers: { 'x-amz-acl': 'public-read' } })
  held.hold()
  const answer = send('PUT', '/box/k', { body: 'the new one', headers: ATTRIBUTES })
  await until('the record is on its way', async () => held.waiting() > 0)
  t.match(await look(started, '/box/k'), { counts: [undefined, undefined], tag: undefined, grantee: undefined })
  held.go()
  t.equal((await answer).status, 200)
  t.match(await look(started, '/box/k'), COMPLETE)
})

t.test('a Deny by tag applies from the moment of the object on', async (t) => {
  const { send, held, endpoint } = await start(t, 'full')
  const grant = { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::box/*' }
  const tagged = { StringEquals: { 's3:ExistingObjectTag/who': 'new' } }
  const policy = { Version: '2012-10-17', Statement: [grant, { ...grant, Effect: 'Deny', Condition: tagged }] }
  t.equal((await send('PUT', '/box', { query: { policy: '' }, body: JSON.stringify(policy) })).status, 204)
  const read = async () => (await unsignedRequest(endpoint, { method: 'GET', path: '/box/k' })).status
  await send('PUT', '/box/k', { body: 'before' })
  t.equal(await read(), 200)
  held.hold()
  const answer = send('PUT', '/box/k', { body: 'the new one', headers: ATTRIBUTES })
  await until('the record is on its way', async () => held.waiting() > 0)
  t.equal(await read(), 403)
  held.go()
  t.equal((await answer).status, 200)
  t.equal(await read(), 403)
})

t.test('a store that has lost its records leaves the last tags and the last ACL', async (t) => {
  const { send, endpoint, held } = await start(t, 'full')
  await send('PUT', '/box/k', { body: 'x', headers: { 'x-amz-tagging': 'who=old', 'x-amz-acl': 'public-read' } })
  const tagging = '<Tagging><TagSet><Tag><Key>who</Key><Value>ü new</Value></Tag></TagSet></Tagging>'
  t.equal((await send('PUT', '/box/k', { query: { tagging: '' }, body: tagging })).status, 200)
  t.equal((await send('PUT', '/box/k', { query: { acl: '' }, headers: { 'x-amz-acl': 'private' } })).status, 200)
  await send('PUT', '/box/untagged', { body: 'x', headers: { 'x-amz-tagging': 'who=old' } })
  t.equal((await send('DELETE', '/box/untagged', { query: { tagging: '' } })).status, 204)
  await send('PUT', '/box/copied', { body: 'x', headers: { 'x-amz-tagging': 'who=old' } })
  const itself = { 'x-amz-copy-source': '/box/copied', 'x-amz-metadata-directive': 'REPLACE' }
  const replaced = { ...itself, 'x-amz-tagging-directive': 'REPLACE', 'x-amz-tagging': 'who=new' }
  t.equal((await send('PUT', '/box/copied', { headers: replaced })).status, 200)
  t.equal((await unsignedRequest(endpoint, { method: 'GET', path: '/box/k' })).status, 403)

  held.now.lost = true
  const tags = async (path: string) => (await send('GET', path, { query: { tagging: '' } })).body
  t.match(await tags('/box/k'), '<Value>ü new</Value>')
  t.notMatch(await tags('/box/untagged'), '<Value>')
  t.match(await tags('/box/copied'), '<Value>new</Value>')
  t.notMatch((await send('GET', '/box/k', { query: { acl: '' } })).body, 'AllUsers')
  t.equal((await unsignedRequest(endpoint, { method: 'GET', path: '/box/k' })).status, 403)
  t.equal((await send('PUT', '/box/k', { query: { tagging: '' }, body: tagging })).status, 200)
  t.notMatch((await send('GET', '/box/k', { query: { acl: '' } })).body, 'AllUsers')

  await send('PUT', '/box/open', { body: 'x', headers: { 'x-amz-tagging': 'who=open', 'x-amz-acl': 'public-read' } })
  const tagged = { StringEquals: { 's3:ExistingObjectTag/who': 'nobody' } }
  const deny = {
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:GetObject',
    Resource: 'arn:aws:s3:::box/*',
    Condition: tagged,
  }
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: [deny] })
  t.equal((await send('PUT', '/box', { query: { policy: '' }, body: policy })).status, 204)
  t.match((await send('GET', '/box/open', { query: { acl: '' } })).body, 'AllUsers')
  t.equal((await unsignedRequest(endpoint, { method: 'GET', path: '/box/open' })).status, 403, 'a lost ACL is closed')
})

t.test('what the gateway keeps is bounded, and anything else that stands there is ignored', async (t) => {
  const { send, gateway, held } = await start(t, 'full')
  const many = Array.from({ length: 10 }, (_, i) => `k${i}=${encodeURIComponent('ü'.repeat(250))}`).join('&')
  t.equal((await send('PUT', '/box/many', { body: 'x', headers: { 'x-amz-tagging': many } })).status, 200)
  t.equal((await send('HEAD', '/box/many')).headers['x-amz-tagging-count'], '10')
  held.now.lost = true
  t.equal((await send('HEAD', '/box/many')).headers['x-amz-tagging-count'], undefined, 'too long to be kept there')

  const client = new GatewayUser(gateway)
  await client.login()
  for (const record of ['no JSON', '5', '{"acl":{"owner":1}}', '{"tags":"x"}']) {
    await client.put('box', 'foreign', Buffer.from('x'), { 'x-cloud-record': record })
    t.match(await look({ send }, '/box/foreign'), { counts: [undefined, undefined], tag: undefined }, record)
  }
})

const ANY = { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::box/*' }
const SECRET = {
  ...ANY,
  Effect: 'Deny',
  Action: 's3:*',
  Condition: { StringEquals: { 's3:ExistingObjectTag/who': 'new' } },
}
const policyOf = (...Statement: object[]) => ({
  query: { policy: '' },
  body: JSON.stringify({ Version: '2012-10-17', Statement }),
})
t.test('the policy of a bucket opens no object of another account before its record is stored', async (t) => {
  const { held, close } = await openHeld(t)
  const { status } = await startWorld(t, undefined, { state: held.state })
  t.teardown(close)
  await status('owner', 'PUT', '/box', { headers: { 'x-amz-object-ownership': 'ObjectWriter' } })
  const policy = policyOf({ ...ANY, Action: ['s3:GetObject', 's3:PutObject'] })
  t.equal(await status('owner', 'PUT', '/box', policy), '204 ')
  t.equal(await status('owner', 'PUT', '/box/own', { body: 'x', headers: { 'x-amz-acl': 'public-read' } }), '200 ')
  const reads = async (path: string) => [await status('anonymous', 'GET', path), await status('foreigner', 'GET', path)]
  t.same(await reads('/box/own'), ['200 ', '200 '])
  held.hold()
  const answers = ['/box/k', '/box/own'].map((path) => status('foreigner', 'PUT', path, { body: 'of another account' }))
  await until('the records are on their way', async () => held.waiting() === 2)
  t.same(await reads('/box/k'), ['403 AccessDenied', '200 '], 'a new object')
  t.same(await reads('/box/own'), ['403 AccessDenied', '200 '], 'an object of another owner before')
  held.go()
  t.same(await Promise.all(answers), ['200 ', '200 '])
  t.same(await reads('/box/k'), ['403 AccessDenied', '200 '])
  held.now.lost = true
  t.same(await reads('/box/k'), ['403 AccessDenied', '200 '], 'its record is lost')
})

t.test('an ACL opens what both the gateway and the state say', async (t) => {
  const { send, held, endpoint } = await start(t, 'full')
  const read = async () => (await unsignedRequest(endpoint, { method: 'GET', path: '/box/k' })).status
  const setAcl = (headers: Record<string, string>) => send('PUT', '/box/k', { query: { acl: '' }, headers })
  await send('PUT', '/box/k', { body: 'x', headers: { 'x-amz-acl': 'public-read' } })
  const groups = 'http://acs.amazonaws.com/groups'
  held.hold()
  const more = {
    'x-amz-grant-read': `uri="${groups}/global/AllUsers"`,
    'x-amz-grant-read-acp': `uri="${groups}/s3/LogDelivery"`,
  }
  const answer = setAcl(more)
  await until('the record is on its way', async () => held.waiting() > 0)
  t.equal(await read(), 200, 'while it gets a further grant')
  held.go()
  t.equal((await answer).status, 200)
  held.now.failing = true
  t.equal((await setAcl({ 'x-amz-acl': 'private' })).status, 500)
  t.notMatch((await send('GET', '/box/k', { query: { acl: '' } })).body, 'AllUsers')
  t.equal(await read(), 403, 'the narrower one of the gateway')
  held.now.failing = false
  t.equal((await setAcl({ 'x-amz-acl': 'private' })).status, 200)
  held.now.failing = true
  t.equal((await setAcl({ 'x-amz-acl': 'public-read' })).status, 500)
  t.equal(await read(), 403, 'the narrower one of the state')
})

t.test(
  'a decision by tags asks the gateway only where they matter, and holds for the object that is read',
  async (t) => {
    const services = await startServices({ data: temporaryFolder(t), gateway: { host: '127.0.0.1', port: 0 } })
    t.teardown(() => services.stop())
    const account = await services.gateway.credentials()
    const between = await Between.start(t, { url: services.gateway.url, ...account })
    // Something on the way joins `//`, which the server asks about with a key that is too long.
    between.fate = ({ path }) => (path.includes('x'.repeat(500)) ? { status: 200, body: '' } : 'pass')
    const { send, held, endpoint } = await start(t, 'full', { gateway: { url: between.url, account } })
    const removable = { ...ANY, Action: 's3:DeleteObject', Resource: 'arn:aws:s3:::box/open/*' }
    t.equal((await send('PUT', '/box', policyOf(ANY, removable, SECRET))).status, 204)

    const objects = Array.from({ length: 5 }, (_, i) => `<Object><Key>k${i}</Key></Object>`).join('')
    const body = `<Delete>${objects}</Delete>`
    const headers = contentMd5(body)
    const refused = await unsignedRequest(endpoint, {
      method: 'POST',
      path: '/box',
      query: { delete: '' },
      headers,
      body,
    })
    t.equal(refused.body.match(/<Code>AccessDenied</g)?.length, 5)
    t.equal(between.count('HEAD', '/gateway/download/box/k'), 0, 'no call for a key that is refused in any case')

    await send('PUT', '/box/k', { body: 'x' })
    between.fate = ({ method }) => (method === 'HEAD' ? { status: 403, body: '' } : 'pass')
    t.equal((await send('DELETE', '/box/k')).status, 204, 'the look of the decision is refused')
    t.equal((await send('DELETE', '/box/a//b')).status, 204, 'it cannot name the key')

    between.fate = () => 'pass'
    await send('PUT', '/box/k', { body: 'before' })
    let writing: Promise<{ readonly status: number }> | undefined
    between.fate = async ({ method, path }): Promise<Fate> => {
      if (writing || method !== 'GET' || !path.startsWith('/gateway/download/box/k')) return 'pass'
      held.hold()
      writing = send('PUT', '/box/k', { body: 'the new one', headers: { 'x-amz-tagging': 'who=new' } })
      await until('the record is on its way', async () => held.waiting() > 0)
      return 'pass'
    }
    const { status } = await unsignedRequest(endpoint, { method: 'GET', path: '/box/k' })
    t.ok(writing, 'it was replaced between the decision and the read')
    t.equal(status, 403)
    held.go()
    t.equal((await writing)?.status, 200)
  },
)
