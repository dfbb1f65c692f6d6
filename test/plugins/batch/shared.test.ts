import t from 'tap'
import { postgres, redis } from '../../src/state/servers.js'
import { Between } from '../../support/gateway/between.js'
import { startGateway } from '../../support/gateway/embedded.js'
import { batch, reaches, reportOf } from '../../support/plugins/batch-scene.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { sendUntilDone } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

const ROWS = 300
const Bucket = 'things'

for (const kind of [redis, postgres])
  t.test(
    `two proxies on one ${kind.name} work on jobs, and one goes on with those of the other`,
    { skip: kind.skip },
    async (t) => {
      const store = await kind.start()
      t.teardown(() => store.stop())
      const gateway = await startGateway(t, 'full')
      // The one to be killed gets no answer to a part of its removals, none of which arrives.
      const between = await Between.start(t, gateway)
      let removals = 0
      between.fate = ({ body }) =>
        body.includes('RemoveObject') && ++removals > ROWS ? new Promise<never>(() => {}) : 'pass'
      const args = [
        ...['--state', store.url, '--staging', 'gateway', '--lock-lease-seconds', '1', '--batch-rate', '100000'],
        ...['--access-key', 'two-access', '--secret-key', 'two-secret-key'],
      ]
      const [victim, other] = [
        await startDealgate(t, { gateway: between, args }),
        await startDealgate(t, { gateway, args }),
      ]
      const s3 = sdkFor(t, other)
      for (const one of [Bucket, 'reports']) await s3.createBucket({ Bucket: one })
      await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
      const keysOf = (prefix: string) =>
        Array.from({ length: ROWS }, (_, at) => `${prefix}/${String(at).padStart(3, '0')}`)
      const prefixes = ['a', 'b', 'c', 'd']
      const puts = prefixes
        .flatMap(keysOf)
        .map((key) => ({ method: 'PUT', target: `/${Bucket}/${key}`, body: Buffer.from('x') }))
      await sendUntilDone(other, puts)
      const removedBelow = async (Prefix: string) =>
        (await s3.listObjectVersions({ Bucket, Prefix: `${Prefix}/` })).DeleteMarkers?.length ?? 0

      const order = async (prefix: string) => {
        const at = prefix < 'c' ? victim : other
        const { json } = await batch(at, 'POST', '', {
          ...{ Operation: 'Delete', Filter: { Bucket, Prefixes: [`${prefix}/`] }, Report: { Bucket: 'reports' } },
        })
        return { prefix, id: json.JobId as string }
      }
      const jobs = await Promise.all(prefixes.map(order))
      const half = async () => (await removedBelow('a')) + (await removedBelow('b')) === ROWS
      await until('one is stopped in the middle of its jobs', half)
      for (const { id, prefix } of jobs)
        if (prefix >= 'c') t.match(await reaches(other, id), { Status: 'Complete' }, 'the other one does its own')
      await victim.kill9()
      for (const { id, prefix } of jobs) {
        const job = await reaches(other, id)
        const counts = { TotalNumberOfTasks: ROWS, NumberOfTasksSucceeded: ROWS, NumberOfTasksFailed: 0 }
        t.match(job, { Status: 'Complete', ...counts })
        const { manifest, lines } = await reportOf(s3, job.Report)
        t.same(manifest.Summary, counts)
        t.same(
          lines.sort(),
          keysOf(prefix).map((key) => `${Bucket},${key},,succeeded,204,,`),
        )
        t.equal(await removedBelow(prefix), ROWS, 'no row is done twice')
      }
    },
  )
