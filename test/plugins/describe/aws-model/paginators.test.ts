import { join } from 'node:path'
import t from 'tap'
import { awsVersions } from '../../../support/programs/aws-cli.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { examplePlugin } from '../../calls/example-plugin.js'
import { jsonCommands } from './json-commands.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

t.test('aws-cli fetches page after page', async (t) => {
  const versions = await awsVersions(t)
  const asked: unknown[] = []
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner], plugins: [examplePlugin(asked)] })
  for (const { path, name } of versions) {
    await t.test(name, async (t) => {
      const home = t.testdir()
      const aws = jsonCommands(t, path, { endpoint, owner, home })
      const list = async (...args: string[]) => {
        asked.length = 0
        return JSON.parse(await aws('dealgate', 'list-things', ...args))
      }
      const model = join(home, 'aws-model.json')
      await aws('s3', 'cp', 's3://-/aws-model.json', model)
      await aws('configure', 'add-model', '--service-name', 'dealgate', '--service-model', `file://${model}`)
      const first = await list('--max-items', '3')
      t.match(first, { Thing: { length: 3 }, IsTruncated: true }, 'without the file a page is a page')
      await aws('s3', 'cp', 's3://-/aws-paginators.json', join(home, '.aws/models/dealgate/1/paginators-1.json'))

      const names = (things: { Name: string }[]) => things.map(({ Name }) => Name)
      const all = Array.from({ length: 25 }, (_, i) => `thing-${i}`)
      t.same(names((await list('--page-size', '10')).Thing), all)
      t.equal(asked.length, 3, 'three pages were asked for')
      const some = await list('--max-items', '12', '--page-size', '5')
      t.same(names(some.Thing), all.slice(0, 12))
      t.notOk('IsTruncated' in some)
      const rest = await list('--starting-token', some.NextToken)
      t.same(names(rest.Thing), all.slice(12))
      t.notOk('NextToken' in rest)
      t.same(names((await list('--no-paginate')).Thing), all)
      t.equal(asked.length, 1)
    })
  }
})
