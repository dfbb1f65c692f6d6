import t from 'tap'
import { HOUR_MS } from '../../../common/time.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { inProcess } from './child.js'
import type { Client, RpcError } from './client.js'

/** A lock and the deletion of a version at the same time, at two processes of the gateway on PostgreSQL. */

const bucketName = 'bucket'
const ROUNDS = 8

interface Race {
  readonly name: string
  /** Of the version, before. */
  readonly hold?: true
  readonly change: object
  readonly bypass?: true
  /** Whether the version may be deleted after the change. */
  readonly ends?: true
}

const inAnHour = Date.now() + HOUR_MS
const races: readonly Race[] = [
  { name: 'a legal hold', change: { hold: true } },
  { name: 'a retention', change: { retention: { mode: 'GOVERNANCE', until: inAnHour } } },
  {
    name: 'a retention that no bypass passes',
    change: { retention: { mode: 'COMPLIANCE', until: inAnHour } },
    bypass: true,
  },
  { name: 'the end of a legal hold', hold: true, change: { hold: false }, ends: true },
]

t.test('either a change of a lock or the deletion comes first', { timeout: 600_000 }, async (t) => {
  const [data, database] = [temporaryFolder(t), await emptyDatabase()]
  const { client: one } = await inProcess(t, data, { database })
  const two = onPostgres ? (await inProcess(t, data, { database })).client : one
  await one.call('MakeBucket', { bucketName, lock: true })
  for (const { name, hold, change, bypass, ends } of races) {
    for (let round = 0; round < ROUNDS; round++) {
      const key = `${name} ${round}`.replaceAll(' ', '-')
      const place = { bucketName, objectName: key }
      const { headers } = await one.put(bucketName, key, 'body', hold && { 'x-cloud-legal-hold': 'ON' })
      const versionId = String(headers['x-cloud-version-id'])
      const [locking, removing] = round % 2 === 0 ? [one, two] : [two, one]
      const [changed, deleted] = await Promise.all([
        codeOf(locking.call('SetObjectLock', { ...place, versionId, ...change })),
        codeOf(removing.call('RemoveObject', { bucketName, objects: [key], versionId, bypass })),
      ])
      const found = await Promise.all([one, two].map((client) => statusOf(client, key, versionId)))
      const outcome = `${changed}, ${deleted}, ${found.join(' ')}`
      const expected = ends
        ? ['ok, ok, 404 404', 'ok, AccessDenied, 200 200']
        : ['ok, AccessDenied, 200 200', 'NoSuchVersion, ok, 404 404']
      t.ok(expected.includes(outcome), `${key}: ${outcome}`)
    }
  }
})

/** `ok`, or the code of the refusal. */
function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    ({ data }: RpcError) => String(data?.code),
  )
}

async function statusOf(client: Client, key: string, versionId: string): Promise<number> {
  return (await client.get(bucketName, key, { 'x-cloud-version-id': versionId })).status
}
