import { join } from 'node:path'
import t from 'tap'
import deal from '../../../plugins/deal/index.js'
import { examplePlugin } from '../../src/plugins/calls/example-plugin.js'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { runText } from '../../support/programs/run.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

t.test('aws-cli makes the calls of the model, and fetches page after page', async (t) => {
  const [version] = await awsVersions(t)
  if (!version) return
  const asked: unknown[] = []
  const { endpoint } = await startInProcess(t, 'full', {
    identities: [owner],
    plugins: [deal({ maxTimesAsk: 'none' }), examplePlugin(asked)],
  })
  for (const path of ['/photos', '/photos/dir/a'])
    await signedRequest(endpoint, owner, { method: 'PUT', path, body: path.endsWith('a') ? 'x'.repeat(900) : '' })
  const home = t.testdir()
  const env = {
    HOME: home,
    AWS_ACCESS_KEY_ID: owner.accessKeyId,
    AWS_SECRET_ACCESS_KEY: owner.secretAccessKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_MAX_ATTEMPTS: '1',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_PAGER: '',
  }
  const run = (args: string[]) => runText(version.path, ['--endpoint-url', endpoint, '--output', 'json', ...args], env)
  const aws = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(args)
    t.equal(code, 0, stderr)
    return stdout
  }
  /** What a call says that fails. */
  const failing = async (...args: string[]) => {
    const { code, stderr } = await run(['dealgate', ...args])
    t.not(code, 0, args.join(' '))
    return stderr
  }
  const call = async (...args: string[]) => JSON.parse(await aws('dealgate', ...args))
  const model = join(home, 'aws-model.json')
  await aws('s3', 'cp', 's3://-/aws-model.json', model)
  await aws('configure', 'add-model', '--service-name', 'dealgate', '--service-model', `file://${model}`)
  await aws('s3', 'cp', 's3://-/aws-paginators.json', join(home, '.aws/models/dealgate/1/paginators-1.json'))

  await t.test('pages', async (t) => {
    const names = (things: { Name: string }[]) => things.map(({ Name }) => Name)
    const all = Array.from({ length: 25 }, (_, i) => `thing-${i}`)
    t.same(names((await call('list-things', '--kind', 'big', '--page-size', '10')).Thing), all)
    t.equal(asked.length, 3, 'three pages were asked for')
    const some = await call('list-things', '--max-items', '12', '--page-size', '5')
    t.same(names(some.Thing), all.slice(0, 12))
    t.notOk('IsTruncated' in some)
    const rest = await call('list-things', '--starting-token', some.NextToken)
    t.same(names(rest.Thing), all.slice(12))
    t.notOk('NextToken' in rest)
  })

  await t.test('values of every kind', async (t) => {
    t.same(await call('get-thing', '--name', 'thing-3'), { Name: 'thing-3', Size: 3 })
    const refused = await failing('get-thing', '--name', 'none')
    t.match(refused, 'An error occurred (NoSuchKey) when calling the GetThing operation')
    const body = ['--miner-id', 'f01', '--price', '0.5', '--count', '3', '--no-fast']
    const nested = ['--tags', 'a', 'b', '--terms', 'Class=big', 'Class=small', '--extra', 'a=b']
    const whole = { MinerId: 'f01', Price: '0.5', Count: 3, Fast: false, Tags: ['a', 'b'], Extra: { a: 'b' } }
    const Got = { ...whole, Terms: [{ Class: 'big' }, { Class: 'small' }] }
    t.same(await call('quote-thing', '--bucket', 'photos', '--key', 'a b/é+(1)', ...body, ...nested), { Got })
  })

  await t.test('jobs', async (t) => {
    const create = ['create-thing', '--bucket', 'photos', '--key', 'k', '--how']
    t.same(await call(...create, 'soon', '--client-token', 'one', '--force'), { Made: '/photos/k' })
    t.same(await call(...create, 'soon', '--client-token', 'one'), { Made: '/photos/k' }, 'the same job')
    t.match(await failing(...create, 'badly'), /\(DealRejected\).*too cheap/)
    const { JobId, ClientToken } = await call(...create, 'late', '--prefer', 'wait=0')
    t.match(ClientToken, /^[\w-]{36}$/, 'made up by aws-cli')
    t.match(await call('cancel-job', '--job-id', JobId), { JobId, Operation: 'test:CreateThing' })
  })

  await t.test('calls of the server and of a built-in plugin', async (t) => {
    t.match(await call('ready', '--no-sign-request'), { status: 'ready' })
    const object = ['--bucket', 'photos', '--key', 'dir/a']
    const shared = await call('share-object', ...object, '--expiry', '60')
    t.equal(shared.Expiry, 60, 'a number')
    t.equal(await (await fetch(shared.Url)).text(), 'x'.repeat(900))
    const terms = ['--miner-id', 't01000', '--price', '0.0000000005', '--duration-epochs', '518400']
    const { JobId, Deal } = await call('create-object-deal', ...object, ...terms, '--prefer', 'wait=60')
    t.match(Deal, { DurationEpochs: 518400, Price: '0.0000000005', VerifiedDeal: false, FastRetrieval: true })
    const listed = await call('list-jobs', '--plugin', 'deal', '--page-size', '1')
    t.match(listed.Jobs, [{ JobId, Status: 'Complete', Resource: '/photos/dir/a' }])
  })
})
