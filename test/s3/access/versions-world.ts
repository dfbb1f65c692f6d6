import type { Test } from 'tap'
import { startWorld } from '../../access/authorizer/world.js'
import { contentMd5 } from '../../support/content/content.js'
import { signedRequest } from '../../support/sign/signed-request.js'

export const keysOf = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: `secret-of-${accessKeyId}` })
export const policyOf = (...statements: readonly object[]) => ({ Version: '2012-10-17', Statement: statements })
const only = (...Action: string[]) => policyOf({ Effect: 'Allow', Action, Resource: '*' })

/** Key pairs of the owner's account, by what their policies allow. */
export const pairs = {
  deleter: only('s3:DeleteObject'),
  'version-deleter': only('s3:DeleteObjectVersion'),
  passer: only('s3:DeleteObjectVersion', 's3:BypassGovernanceRetention'),
  writer: only('s3:PutObject'),
  retainer: only('s3:PutObject', 's3:PutObjectRetention', 's3:GetObject', 's3:GetObjectRetention'),
  reader: only('s3:GetObject', 's3:GetObjectVersion'),
  capped: policyOf(
    { Effect: 'Allow', Action: ['s3:PutObject', 's3:PutObjectRetention'], Resource: '*' },
    {
      ...{ Effect: 'Deny', Action: ['s3:PutObject', 's3:PutObjectRetention'], Resource: '*' },
      Condition: { NumericGreaterThan: { 's3:object-lock-remaining-retention-days': '10' } },
    },
    {
      ...{ Effect: 'Deny', Action: 's3:PutObjectRetention', Resource: '*' },
      Condition: { StringEquals: { 's3:object-lock-mode': 'COMPLIANCE' } },
    },
  ),
}

/** The bucket `box` of the owner, with versions, and with locks where asked. */
export async function startVersions(t: Test, { locks = false } = {}) {
  const world = await startWorld(t, () => [
    ...Object.entries(pairs).map(([name, policy]) => ({ ...keysOf(name), policies: [policy] })),
    { ...keysOf('with-rights'), rights: [{ bucket: 'box', access: 'readwrite' }] },
  ])
  const { as, endpoint } = world
  const owner = async (method: string, path: string, query = {}, body = '', headers = {}) => {
    const answer = await as.owner({ method, path, query, body, headers })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`)
    return answer
  }
  await owner('PUT', '/box', {}, '', locks ? { 'x-amz-bucket-object-lock-enabled': 'true' } : {})
  const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
  await owner('PUT', '/box', { versioning: '' }, enabled, contentMd5(enabled))
  return {
    ...world,
    owner,
    put: async (key: string, body: string, headers = {}) =>
      String(
        (await owner('PUT', `/box/${key}`, {}, body, { ...contentMd5(body), ...headers })).headers['x-amz-version-id'],
      ),
    by: async (name: keyof typeof pairs | 'with-rights', method: string, path: string, more = {}) => {
      const { status, code } = await signedRequest(endpoint, keysOf(name), { method, path, ...more })
      return `${status} ${code}`
    },
  }
}
