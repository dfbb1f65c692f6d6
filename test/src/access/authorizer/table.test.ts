import t from 'tap'
import { actionsOf } from '../../../../src/access/language/patterns.js'
import type { Identity } from '../../../../src/api/identity.js'
import { actionNames } from '../../../../src/plugins/actions.js'
import { rowsOf } from '../../../../src/plugins/table.js'
import { refusedOperations } from '../../../../src/s3/refused.js'
import { corePlugins } from '../../../../src/server/core-plugins.js'
import { standardPlugins } from '../../../support/server/standard-plugins.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { startWorld } from './world.js'

/** A request, and what it asks. */
interface Try {
  readonly method: string
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly actions: readonly string[]
}

const TAGS = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
const tries: readonly Try[] = [
  { method: 'GET', key: 'a', actions: ['s3:GetObject'] },
  { method: 'HEAD', key: 'a', actions: ['s3:GetObject'] },
  { method: 'PUT', key: 'a', body: 'w', actions: ['s3:PutObject'] },
  { method: 'DELETE', key: 'a', actions: ['s3:DeleteObject'] },
  { method: 'GET', key: 'a', query: { tagging: '' }, actions: ['s3:GetObjectTagging'] },
  { method: 'PUT', key: 'a', query: { tagging: '' }, body: TAGS, actions: ['s3:PutObjectTagging'] },
  {
    ...{ method: 'GET', key: 'a', query: { attributes: '' }, headers: { 'x-amz-object-attributes': 'ETag' } },
    actions: ['s3:GetObject', 's3:GetObjectAttributes'],
  },
  { method: 'GET', key: 'a', query: { acl: '' }, actions: ['s3:GetObjectAcl'] },
  { method: 'GET', key: 'a', query: { versionId: 'null' }, actions: ['s3:GetObjectVersion'] },
  { method: 'HEAD', key: 'a', query: { versionId: 'null' }, actions: ['s3:GetObjectVersion'] },
  { method: 'DELETE', key: 'a', query: { versionId: 'null' }, actions: ['s3:DeleteObjectVersion'] },
  {
    ...{ method: 'DELETE', key: 'a', query: { versionId: 'null' } },
    headers: { 'x-amz-bypass-governance-retention': 'true' },
    actions: ['s3:DeleteObjectVersion', 's3:BypassGovernanceRetention'],
  },
  {
    ...{ method: 'DELETE', key: 'a', headers: { 'x-amz-bypass-governance-retention': 'true' } },
    actions: ['s3:DeleteObject'],
  },
  { method: 'GET', key: 'a', query: { tagging: '', versionId: 'null' }, actions: ['s3:GetObjectVersionTagging'] },
  {
    ...{ method: 'PUT', key: 'a', query: { tagging: '', versionId: 'null' }, body: TAGS },
    actions: ['s3:PutObjectVersionTagging'],
  },
  { method: 'DELETE', key: 'a', query: { tagging: '', versionId: 'null' }, actions: ['s3:DeleteObjectVersionTagging'] },
  { method: 'GET', key: 'a', query: { acl: '', versionId: 'null' }, actions: ['s3:GetObjectVersionAcl'] },
  {
    ...{ method: 'GET', key: 'a', query: { attributes: '', versionId: 'null' } },
    headers: { 'x-amz-object-attributes': 'ETag' },
    actions: ['s3:GetObjectVersion', 's3:GetObjectVersionAttributes'],
  },
  { method: 'HEAD', actions: ['s3:ListBucket'] },
  { method: 'GET', query: { 'list-type': '2' }, actions: ['s3:ListBucket'] },
  { method: 'GET', query: { prefix: 'a' }, actions: ['s3:ListBucket'] },
  { method: 'GET', query: { versions: '' }, actions: ['s3:ListBucketVersions'] },
  { method: 'GET', query: { location: '' }, actions: ['s3:GetBucketLocation'] },
  { method: 'GET', query: { acl: '' }, actions: ['s3:GetBucketAcl'] },
  { method: 'GET', query: { policy: '' }, actions: ['s3:GetBucketPolicy'] },
  { method: 'GET', query: { tagging: '' }, actions: ['s3:GetBucketTagging'] },
  { method: 'GET', query: { cors: '' }, actions: ['s3:GetBucketCORS'] },
  { method: 'GET', query: { lifecycle: '' }, actions: ['s3:GetLifecycleConfiguration'] },
  { method: 'GET', query: { uploads: '' }, actions: ['s3:ListBucketMultipartUploads'] },
  { method: 'GET', query: { publicAccessBlock: '' }, actions: ['s3:GetBucketPublicAccessBlock'] },
]

t.test('each request needs the actions that it is about, and no others', async (t) => {
  const names = [...new Set(tries.flatMap(({ actions }) => actions))]
  const policy = (Action: readonly string[]) => ({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action, Resource: '*' }],
  })
  const keysOf = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: `secret-of-${accessKeyId}` })
  const pairs = names.flatMap((name, i): Identity[] => [
    { ...keysOf(`only-${i}`), policies: [policy([name])] },
    { ...keysOf(`without-${i}`), policies: [policy(names.filter((other) => other !== name))] },
  ])
  const { as, endpoint } = await startWorld(t, () => pairs)
  t.equal((await as.owner({ method: 'PUT', path: '/place' })).status, 200)
  for (const { actions, key, ...request } of tries) {
    const wanted = { ...request, path: key === undefined ? '/place' : `/place/${key}` }
    const statusFor = async (keys: string) => {
      t.equal((await as.owner({ method: 'PUT', path: '/place/a', body: 'a' })).status, 200)
      return (await signedRequest(endpoint, keysOf(keys), wanted)).status
    }
    const what = `${request.method} ${key ?? ''}?${Object.keys(request.query ?? {})}`
    for (const name of actions) {
      t.equal(await statusFor(`without-${names.indexOf(name)}`), 403, `${what} without ${name}`)
      const only = await statusFor(`only-${names.indexOf(name)}`)
      if (actions.length > 1) t.equal(only, 403, `${what} with ${name} alone`)
      else t.ok(only < 400 || only === 404, `${what} with ${name}: ${only}`)
    }
  }
})

/** Operations that read and change nothing of anyone, or that check a proof of their own. */
const WITHOUT = [
  'SecurityTokenService',
  'PreflightBucket',
  'PreflightObject',
  'Live',
  'Ready',
  ...['ListObjects', 'ListObjectsV2', 'HeadBucket', 'GetBucketLocation', 'CreateBucket'].flatMap((name) => [
    `${name}OfService`,
    `${name}OfServiceRoot`,
  ]),
  ...refusedOperations.map(({ name }) => name),
]

t.test('every operation declares the actions that policies decide about', async (t) => {
  for (const { plugin, operation } of rowsOf([...corePlugins, ...standardPlugins()])) {
    const names = actionNames(operation.action, plugin)
    if (operation.action === 'none') t.ok(WITHOUT.includes(operation.name), `${operation.name} has nothing to decide`)
    else t.ok(names.length > 0, `${operation.name} declares ${names}`)
    for (const name of names) {
      if (!name.startsWith('s3:')) continue
      const [known, ...others] = actionsOf(name)
      t.same([known?.name, others], [name, []], `${name} is an action of S3`)
      const on =
        operation.on.resource === 'object' || (typeof operation.action === 'object' && 'each' in operation.action)
          ? 'object'
          : operation.on.resource
      t.equal(known?.on, on, `${name} of ${operation.name} is about its resource`)
    }
  }
})
