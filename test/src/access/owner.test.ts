import { join } from 'node:path'
import {
  CopyObjectCommand,
  type CopyObjectCommandInput,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import t from 'tap'
import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import { startServices } from '../../../services/index.js'
import type { Context } from '../../../src/api/context.js'
import type { AnyOperation } from '../../../src/api/operation.js'
import { defineCall } from '../../../src/plugins/calls/define-call.js'
import { ACCESSES, defineOperation } from '../../../src/plugins/define-plugin.js'
import { refusedOperations } from '../../../src/s3/refused.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { SecondAccount } from '../../support/gateway/second-account.js'
import { owner, startDealProxy } from '../../support/plugins/deal-proxy.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes, quirksOf } from '../../support/server/modes.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { clientOf, contentOf, furnish } from '../s3/furnished.js'
import { answerOf, calls, command, type Target } from '../s3/s3-calls.js'
import { heldLock } from '../state/samples.js'

const foreigner = { accessKeyId: 'foreigner', secretAccessKey: 'secret-of-the-foreigner' }

/**
 * Operations that are refused to an account that may not write, by the gateway or by its rules, before anything
 * changes.
 */
const OF_OBJECTS = ['PutObject', 'DeleteObject', 'DeleteObjects', 'CopyObject']
const OF_LOCKS = ['PutObjectRetention', 'PutObjectLegalHold']
const OF_QUOTAS = ['SetBucketQuota']
const OF_UPLOADS = ['CreateMultipartUpload', 'CompleteMultipartUpload']
const DECIDED_BY_GATEWAY = [...OF_OBJECTS, ...OF_LOCKS, ...OF_UPLOADS, ...OF_QUOTAS]
/**
 * Operations that change nothing of a foreign bucket: a link that the gateway signs, parts of an upload that only the
 * key pair which began it sees, and an archive of objects that the caller may read.
 */
const OF_PARTS = ['UploadPart', 'UploadPartCopy', 'AbortMultipartUpload']
const OF_THE_CALLER_ALONE = ['CreateBucket', 'ShareObject', 'PostZip', 'KeepZipSelection', ...OF_PARTS]
const terms = { MinerId: 'f01000', Price: '0.0001', Duration: 518400 }
const dealBodies: Readonly<Record<string, object>> = {
  CreateObjectDeal: terms,
  CreateBucketDeal: terms,
  QuoteObjectDeal: terms,
  QuoteBucketDeal: terms,
  SetBucketDealConfiguration: { MaxSpendPerDay: '1', ReadThrough: true },
  CreateBucketInventory: { Id: 'all' },
}

/** The answer to a request of the foreign account for an operation on the bucket of another. Undefined for success. */
async function tryOut({ name, on, call }: AnyOperation, target: Target, client: S3, endpoint: string) {
  if (call) {
    const path = on.resource === 'object' ? `/${target.bucket}/${target.key}` : `/${target.bucket}`
    const query = Object.fromEntries((on.query ?? []).map((word) => [word, '']))
    const body = on.method === 'GET' ? '' : JSON.stringify(dealBodies[name] ?? {})
    const headers: Record<string, string> = on.method === 'GET' ? {} : { 'content-type': 'application/json' }
    const answer = await signedRequest(endpoint, foreigner, { method: on.method, path, query, headers, body })
    const { code = answer.code } = answer.body.startsWith('{') ? JSON.parse(answer.body) : {}
    const known: Readonly<Record<number, string>> = { 403: 'AccessDenied', 501: 'NotImplemented' }
    return answer.status < 300 ? undefined : (known[answer.status] ?? `${answer.status} ${code}`)
  }
  // The command for it is about a bucket of another name, so that the walks of other tests keep theirs.
  if (name === 'DeleteBucket')
    return (await signedRequest(endpoint, foreigner, { method: 'DELETE', path: `/${target.bucket}` })).code
  return codeOf(client, command(name, target))
}

type Sent = ReturnType<typeof command>

async function codeOf(client: S3, sent: Sent): Promise<string | undefined> {
  try {
    await client.send(sent)
    return undefined
  } catch (error) {
    if (error instanceof S3ServiceException) return error.name
    throw error
  }
}

for (const mode of modes)
  t.test(`${mode}: an account that can list and read a bucket of another account changes nothing of it`, async (t) => {
    const data = t.testdir()
    const quirks = quirksOf(mode)
    const services = await startServices({
      data: join(data, 'services'),
      gateway: { host: '127.0.0.1', port: 0, quirks },
    })
    t.teardown(() => services.stop())
    const hop = await SecondAccount.start(t, { url: services.gateway.url, ...(await services.gateway.credentials()) })
    const identities = [owner, { ...foreigner, account: hop.account }]
    const { endpoint, proxy } = await startDealProxy(t, hop, { data, identities, proxy: { websiteDomains: [] } })
    const clientFor = ({ accessKeyId: accessKey, secretAccessKey: secretKey }: typeof owner) =>
      clientOf(t, { endpoint, region: 'us-east-1', accessKey, secretKey } as Parameters<typeof clientOf>[1])
    const own = clientFor(owner)
    const foreign = clientFor(foreigner)
    const full = await furnish(own, 'full')
    for (const name of ['PutBucketCors', 'PutBucketLifecycleConfiguration', 'PutPublicAccessBlock', 'PutObjectTagging'])
      t.equal(await codeOf(own, command(name, full)), undefined, `the owner: ${name}`)

    const { Contents } = await foreign.listObjectsV2({ Bucket: 'full' })
    t.equal(Contents?.[0]?.Key, full.key, 'the foreign account lists the bucket')
    const { Body } = await foreign.getObject({ Bucket: 'full', Key: full.key })
    t.equal(await Body?.transformToString(), 'content', 'and reads its objects')

    const before = contentOf(data)
    const rows = proxy.operations
      .map(({ operation }) => operation)
      .filter((operation) => operation.on.resource !== 'service' && !refusedOperations.includes(operation))
    for (const operation of rows) {
      const { name, on, access } = operation
      if (access === 'public' || OF_THE_CALLER_ALONE.includes(name)) continue
      const writes = !/^(GET|HEAD|OPTIONS)$/.test(on.method)
      if (writes) t.ok(access === 'owner' || DECIDED_BY_GATEWAY.includes(name), `${name} says who may write`)
      if (!writes && access !== 'owner') continue
      const code = await tryOut(operation, full, foreign, endpoint)
      if (access === 'owner') t.equal(code, 'AccessDenied', name)
      else if ([...OF_LOCKS, ...OF_QUOTAS].includes(name) && mode === 'legacy') t.equal(code, 'NotImplemented', name)
      // DeleteObjects answers 200 and refuses each key for itself. The upload is that of another key pair.
      else t.match(code ?? name, /^(AccessDenied|DeleteObjects|NoSuchUpload)$/, name)
    }
    t.equal(contentOf(data), before, 'nothing has changed')

    const inPlace: CopyObjectCommandInput = {
      ...{ Bucket: 'full', Key: full.key, CopySource: encodeURI(`full/${full.key}`) },
      ...{ MetadataDirective: 'REPLACE', Metadata: { 'deal-terms': 'mine' }, StorageClass: 'GLACIER' },
    }
    t.equal(await codeOf(foreign, new CopyObjectCommand(inPlace) as unknown as Sent), 'AccessDenied', 'onto itself')
    t.equal(contentOf(data), before, 'nothing has changed')

    const open = new PutObjectCommand({ Bucket: 'full', Key: 'pub/a', Body: 'x' }) as unknown as Sent
    t.equal(await codeOf(foreign, open), undefined, 'it may write where everybody may')
    const begun = (Key: string) =>
      codeOf(foreign, new CreateMultipartUploadCommand({ Bucket: 'full', Key }) as unknown as Sent)
    t.equal(await begun('pub/b'), 'AccessDenied', 'no rule of the bucket says so: no part is kept')
    const user = new GatewayUser({ url: services.gateway.url, ...(await services.gateway.credentials()) })
    await user.login()
    await user.call('web.SetBucketPolicy', { bucketName: 'full', prefix: 'pub/', policy: 'writeonly' })
    t.equal(await begun('pub/b'), undefined, 'a rule says so')
    t.equal(await begun('public'), 'AccessDenied', 'it is not about this key')
    await user.call('web.SetBucketPolicy', { bucketName: 'full', prefix: 'pub/', policy: 'none' })

    const tagged = { Bucket: 'full', Key: 'pub/b', Body: 'x', Tagging: 'archive=yes' }
    for (const sent of [new PutObjectCommand(tagged), new CreateMultipartUploadCommand(tagged)])
      t.equal(await codeOf(foreign, sent as unknown as Sent), 'AccessDenied', 'tags, by which the owner’s rules act')
    t.test('a copy does not tell the tags of a foreign object', async (t) => {
      await foreign.createBucket({ Bucket: 'copies' })
      const copy = { Bucket: 'copies', Key: 'copy', CopySource: encodeURI(`full/${full.key}`) }
      t.equal(await codeOf(foreign, new CopyObjectCommand(copy) as unknown as Sent), 'AccessDenied')
      const bare = new CopyObjectCommand({ ...copy, TaggingDirective: 'REPLACE' })
      t.equal(await codeOf(foreign, bare as unknown as Sent), undefined, 'without them it is made')
    })

    t.test('the same account changes what is its own', async (t) => {
      const theirs = await furnish(foreign, 'theirs')
      const names = rows
        .filter(({ access, call, name }) => access === 'owner' && !call && name !== 'DeleteBucket')
        .map(({ name }) => name)
      for (const name of Object.keys(calls).filter((name) => names.includes(name)))
        t.equal(await codeOf(foreign, command(name, theirs)), answerOf(name, mode), name)
      const body = JSON.stringify(dealBodies.SetBucketDealConfiguration)
      const wanted = { method: 'POST', path: '/theirs', query: { 'x-deal-config': '' }, body }
      const headers = { 'content-type': 'application/json' }
      const configured = await signedRequest(endpoint, foreigner, { ...wanted, headers })
      t.equal(configured.status, 200, configured.body)
    })

    t.test('the answer to the owner is NoSuchBucket where there is none', async (t) => {
      for (const { name, access, call } of rows) {
        if (access !== 'owner' || call) continue
        t.equal(await codeOf(own, command(name, { ...full, bucket: 'nowhere' })), 'NoSuchBucket', name)
      }
    })
  })

/** Ways in which an operation could change what the server keeps of a bucket: those of its store, and of the state. */
function changesOf(bucket: string, revision: string, id: string, { settings, store, state }: Context) {
  const event = { name: 'ObjectTagging:Put', origin: { requestId: id, remoteAddress: '', accessKeyId: '' } } as const
  const attributes = { contentType: 'a/b', headers: {}, metadata: {} }
  const records = state.records<string>('opened')
  const upload = {
    ...{ uploadId: `${id}-${id}`, bucket, key: 'key', initiated: 0, accessKeyId: '', headers: {}, metadata: {} },
    contentType: undefined,
  }
  const ofStore = [
    () => settings.set(bucket, 'tagging', [{ key: 'a', value: 'b' }]),
    () => settings.delete(bucket, 'tagging'),
    () => settings.clear(bucket),
    () => store.setTags(bucket, 'key', [{ key: 'a', value: 'b' }], event),
    () => store.replaceMetadata({ bucket, key: 'key', revision, event, attributes }),
    () => store.annotate(bucket, 'key', revision, (archive) => ({ ...archive, facts: { a: 'b' } })),
  ]
  const ofState = [
    () => records.set('a', 'b'),
    () => records.change('a', () => 'c'),
    () => records.delete('a'),
    () => state.objects.delete(bucket, 'none', heldLock()),
    () => state.uploads.create(upload),
    async () => (await state.uploads.openPart(upload.uploadId, 1)).discard(),
    () => state.uploads.abort(upload.uploadId),
    () => state.uploads.sweep(0),
  ]
  return { ofStore, ofState }
}

/** `done`, or the code of the refusal, of each work in turn. */
async function outcomesOf(works: readonly (() => Promise<unknown>)[]): Promise<string[]> {
  const outcomes: string[] = []
  for (const work of works)
    outcomes.push(
      await work().then(
        () => 'done',
        (error) => (error instanceof S3Error ? error.code : String(error)),
      ),
    )
  return outcomes
}

for (const access of ['signed', 'owner'] as const)
  t.test(`an operation of a plugin with the access ${access} changes nothing of a foreign bucket`, async (t) => {
    const services = await startServices({ data: temporaryFolder(t), gateway: { host: '127.0.0.1', port: 0 } })
    t.teardown(() => services.stop())
    const account = await services.gateway.credentials()
    const hop = await SecondAccount.start(t, { url: services.gateway.url, ...account })
    const eager = defineOperation({
      name: 'ChangeAll',
      action: 'eager:ChangeAll',
      source: 'this test',
      access,
      needs: { some: 'any' },
      on: { method: 'POST', resource: 'bucket', query: ['x-eager'] },
      async run({ bucket, id }, context) {
        const { revision } = await context.store.head(bucket, 'key')
        const { ofStore, ofState } = changesOf(bucket, revision, id, context)
        const ofAnother = changesOf(bucket, revision, id, context.as(undefined)).ofState
        const [store, state] = [await outcomesOf(ofStore), await outcomesOf([...ofState, ...ofAnother])]
        return { status: 200, headers: {}, body: JSON.stringify({ store, state }) }
      },
    })
    const { endpoint } = await startInProcess(t, 'full', {
      identities: [owner, { ...foreigner, account: hop.account }],
      gateway: { url: hop.url, account },
      plugins: [{ name: 'eager', operations: [eager] }],
    })
    await signedRequest(endpoint, owner, { method: 'PUT', path: '/full' })
    await signedRequest(endpoint, owner, { method: 'PUT', path: '/full/key', body: 'x' })
    const change = (keys: typeof owner) =>
      signedRequest(endpoint, keys, { method: 'POST', path: '/full', query: { 'x-eager': '' } })
    const all = (outcome: string) => ({ store: Array(6).fill(outcome), state: Array(16).fill(outcome) })

    const refused = await change(foreigner)
    if (access === 'owner') t.match(refused, { status: 403, code: 'AccessDenied' })
    else t.same(JSON.parse(refused.body), all('AccessDenied'))
    const done = JSON.parse((await change(owner)).body)
    // The state itself is changed by operations for the owner alone, also by way of another caller.
    t.same(done, access === 'owner' ? all('done') : { ...all('done'), state: all('AccessDenied').state })
  })

t.test('every row declares who may ask for it, and no server starts with one that does not', async (t) => {
  const { proxy } = await startInProcess(t, 'full', { identities: [owner] })
  t.ok(proxy.operations.length > 100)
  for (const { plugin, operation } of proxy.operations) {
    const { name, on, access, needs, call } = operation
    t.ok(ACCESSES.includes(access), `${plugin}:${name}`)
    if (/^(PUT|POST)$/.test(on.method) && on.resource !== 'service' && !call) t.ok(needs, `${plugin}:${name}`)
  }
  const keeping = proxy.operations.filter(({ operation }) => operation.keeps).map(({ operation }) => operation.name)
  const ofUploads = ['CreateMultipartUpload', 'UploadPart', 'UploadPartCopy', 'CompleteMultipartUpload']
  const those = ['CreateBucket', ...ofUploads, 'AbortMultipartUpload']
  t.same(keeping, those, 'those that change uploads without asking for the owner')

  const run = async () => ({ status: 200, headers: {} })
  const silent = { name: 'Change', action: 'silent:Change', source: 'this test', run }
  const posted = { method: 'POST', resource: 'bucket', query: ['x-silent'] }
  const call = {
    ...{ name: 'Ask', source: 'this test', summary: 'Asks for it.', result: z.object({}), answer: async () => ({}) },
    on: { method: 'GET', resource: 'object', subresource: 'x-silent' },
  }
  const wrong: [operation: object, problem: RegExp][] = [
    [{ ...silent, on: posted }, /the plugin "silent": operation Change must declare its `access`/],
    [
      { ...silent, access: 'signed', on: posted },
      /"silent": operation Change takes a body and must declare in `needs`/,
    ],
    [defineCall(call as never), /the plugin "silent": operation Ask must declare its `access`/],
  ]
  for (const [operation, problem] of wrong) {
    const plugins = [{ name: 'silent', operations: [operation as AnyOperation] }]
    await t.rejects(startInProcess(t, 'full', { identities: [owner], plugins }), problem)
  }
})
