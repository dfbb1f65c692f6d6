import { join } from 'node:path'
import t from 'tap'
import deal from '../../../../plugins/deal/index.js'
import { awsVersions } from '../../../support/programs/aws-cli.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { jsonCommands } from './json-commands.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

t.test('aws-cli makes the calls of the model', async (t) => {
  const versions = await awsVersions(t)
  const { endpoint } = await startInProcess(t, 'full', {
    identities: [owner],
    plugins: [deal({ maxTimesAsk: 'none' })],
  })
  await signedRequest(endpoint, owner, { method: 'PUT', path: '/photos' })
  await signedRequest(endpoint, owner, { method: 'PUT', path: '/photos/dir/a', body: 'x'.repeat(900) })
  for (const { path, name } of versions)
    await t.test(name, async (t) => {
      const home = t.testdir()
      const aws = jsonCommands(t, path, { endpoint, owner, home })
      const call = async (...args: string[]) => JSON.parse(await aws('dealgate', ...args))
      const model = join(home, 'aws-model.json')
      await aws('s3', 'cp', 's3://-/aws-model.json', model)
      await aws('configure', 'add-model', '--service-name', 'dealgate', '--service-model', `file://${model}`)
      await aws('s3', 'cp', 's3://-/aws-paginators.json', join(home, '.aws/models/dealgate/1/paginators-1.json'))

      t.match(await call('live'), { status: 'live' })
      t.match(await call('ready', '--no-sign-request'), { status: 'ready' })
      const object = ['--bucket', 'photos', '--key', 'dir/a']
      const shared = await call('share-object', ...object, '--expiry', '60')
      t.equal(shared.Expiry, 60, 'a number')
      t.equal(await (await fetch(shared.Url)).text(), 'x'.repeat(900))
      t.match(await call('describe-extensions'), { openapi: '3.1.0', paths: { '/-/live': { get: {} } } })
      const terms = ['--miner-id', 't01000', '--price', '0.0000000005', '--duration-epochs', '518400']
      const quote = await call('quote-object-deal', ...object, ...terms)
      t.match(quote, { Bytes: 900, DurationEpochs: 518400, Price: '0.0000000005' })
      const { Providers } = await call('list-providers')
      for (const { Score, Price } of Providers) t.same([typeof Score, typeof Price], ['number', 'string'])
      const made = []
      for (let n = 0; n < 2; n++) {
        const { JobId, Deal } = await call('create-object-deal', ...object, ...terms, '--force', '--prefer', 'wait=60')
        t.match(Deal, { DurationEpochs: 518400, Price: '0.0000000005', VerifiedDeal: false, FastRetrieval: true })
        made.unshift(JobId)
      }
      const listed = await call('list-jobs', '--plugin', 'deal', '--page-size', '1', '--max-items', '2')
      t.same(
        listed.Jobs.map(({ JobId }: { JobId: string }) => JobId),
        made,
        'two pages, the newest first',
      )
      t.match(await call('get-job', '--job-id', made[0] ?? ''), { Status: 'Complete', Resource: '/photos/dir/a' })
    })
})
