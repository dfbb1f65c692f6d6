import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { findClient, run } from '../support/programs/run.js'
import { S3cmd } from '../support/programs/s3cmd.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { until } from '../support/waiting.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'

/** What is to become of objects of a bucket (lifecycle), and which receivers get its events (notifications). */

const ARN = 'arn:dealgate:webhook:::hook'
const aws = await awsVersions(t)
const s3cmdPath = await findClient(t, 's3cmd')

// Settings of buckets are records, which the gateway does not see: s3/lifecycle/lifecycle tries both modes.
const receiver = await WebhookReceiver.start(t)
const port = await lastingPort()
const server = await startDealgate(t, {
  args: ['--webhook', `hook=${receiver.url}`, '--bucket-log-interval-seconds', '1', '--website-port', String(port)],
})
for (const version of aws) {
  const cli = new Aws(version, server, temporaryFolder(t))
  await t.test(`${version.name}: lifecycle`, (t) => awsLifecycle(t, cli))
  await t.test(`${version.name}: access logs`, (t) => awsLogging(t, cli))
  await t.test(`${version.name}: websites`, (t) => awsWebsite(t, cli))
  await t.test(`${version.name}: notifications`, (t) => awsNotifications(t, cli, receiver))
}
if (s3cmdPath) await t.test('s3cmd', (t) => s3cmd(t, s3cmdPath, server, receiver))

async function awsLifecycle(t: Test, cli: Aws): Promise<void> {
  const bucket = ['--bucket', 'aws-lifecycle']
  await cli.api('create-bucket', ...bucket)
  t.match(await cli.apiFailing('get-bucket-lifecycle-configuration', ...bucket), 'NoSuchLifecycleConfiguration')
  const Rules = [
    {
      ID: 'one',
      Filter: { And: { Prefix: 'logs/', Tags: [{ Key: 'a', Value: 'b' }], ObjectSizeGreaterThan: 5 } },
      Status: 'Enabled',
      Expiration: { Days: 3 },
    },
    {
      ID: 'two',
      Filter: { Prefix: '' },
      Status: 'Disabled',
      AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 },
    },
    { ID: 'three', Filter: { Prefix: 'x/' }, Status: 'Enabled', Expiration: { Date: '2038-01-01T00:00:00.000Z' } },
  ]
  const put = (rules: object) =>
    ['put-bucket-lifecycle-configuration', ...bucket, '--lifecycle-configuration', JSON.stringify(rules)] as const
  const [command, ...args] = put({ Rules })
  await cli.api(command, ...args)
  const shown = await cli.api('get-bucket-lifecycle-configuration', ...bucket)
  // Versions of the program write an instant in different ways.
  shown.Rules[2].Expiration.Date = new Date(shown.Rules[2].Expiration.Date).toISOString()
  t.same(shown.Rules, Rules)
  const { Expiration } = await cli.api('put-object', ...bucket, '--key', 'x/1')
  t.equal(Expiration, 'expiry-date="Fri, 01 Jan 2038 00:00:00 GMT", rule-id="three"')
  t.equal((await cli.api('head-object', ...bucket, '--key', 'x/1')).Expiration, Expiration)

  const ofVersions = [
    { ...Rules[0], NoncurrentVersionExpiration: { NoncurrentDays: 1, NewerNoncurrentVersions: 9 } },
    { ...Rules[1], Expiration: { ExpiredObjectDeleteMarker: true } },
  ]
  await cli.api(...put({ Rules: ofVersions }))
  t.same((await cli.api('get-bucket-lifecycle-configuration', ...bucket)).Rules, ofVersions)
  // s3/lifecycle/configuration has the other rules that are refused.
  const many = { ...Rules[0], NoncurrentVersionExpiration: { NoncurrentDays: 1, NewerNoncurrentVersions: 101 } }
  t.match(await cli.apiFailing(...put({ Rules: [many] })), 'InvalidArgument')

  // The older operations, which write the prefix beside the rule.
  const older = { Rules: [{ ID: 'old', Prefix: 'old/', Status: 'Enabled', Expiration: { Days: 2 } }] }
  await cli.api('put-bucket-lifecycle', ...bucket, '--lifecycle-configuration', JSON.stringify(older))
  t.same((await cli.api('get-bucket-lifecycle', ...bucket)).Rules, older.Rules)
  await cli.api('delete-bucket-lifecycle', ...bucket)
  t.match(await cli.apiFailing('get-bucket-lifecycle-configuration', ...bucket), 'NoSuchLifecycleConfiguration')
  await cli.s3('rb', '--force', 's3://aws-lifecycle')
}

async function awsLogging(t: Test, cli: Aws): Promise<void> {
  for (const name of ['aws-logged', 'aws-logs']) await cli.api('create-bucket', '--bucket', name)
  const bucket = ['--bucket', 'aws-logged']
  t.same(await cli.api('get-bucket-logging', ...bucket), {})
  const put = (status: object) =>
    ['put-bucket-logging', ...bucket, '--bucket-logging-status', JSON.stringify(status)] as const
  const LoggingEnabled = { TargetBucket: 'aws-logs', TargetPrefix: 'a/' }
  await cli.api(...put({ LoggingEnabled }))
  t.match(await cli.api('get-bucket-logging', ...bucket), { LoggingEnabled })
  const elsewhere = { LoggingEnabled: { ...LoggingEnabled, TargetBucket: 'aws-absent' } }
  t.match(await cli.apiFailing(...put(elsewhere)), 'InvalidTargetBucketForLogging')
  await cli.api('put-object', ...bucket, '--key', 'x/1')
  const line = await until('the request is logged', async () => {
    const text =
      (await cli.s3('cp', '--recursive', 's3://aws-logs/', join(cli.home, 'logs'))) && (await logsIn(cli.home))
    return text.split('\n').find((one) => one.includes('REST.PUT.OBJECT x/1'))
  })
  t.match(line, /^[0-9a-f]{64} aws-logged \[.*"PUT \/aws-logged\/x\/1 HTTP\/1.1" 200 - - - \d+ \d+ "-" "aws-cli/i)
  await cli.api(...put({}))
  t.same(await cli.api('get-bucket-logging', ...bucket), {})
}

async function logsIn(home: string): Promise<string> {
  const folder = join(home, 'logs', 'a')
  const names = await readdir(folder).catch(() => [])
  return (await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))).join('')
}

async function awsWebsite(t: Test, cli: Aws): Promise<void> {
  const bucket = ['--bucket', 'aws-website']
  await cli.api('create-bucket', ...bucket)
  t.match(await cli.apiFailing('get-bucket-website', ...bucket), 'NoSuchWebsiteConfiguration')
  const redirect = { HostName: 'other.test', Protocol: 'https', HttpRedirectCode: '302' }
  const website = {
    IndexDocument: { Suffix: 'index.html' },
    ErrorDocument: { Key: 'error.html' },
    RoutingRules: [{ Condition: { KeyPrefixEquals: 'old/' }, Redirect: { ...redirect, ReplaceKeyPrefixWith: 'new/' } }],
  }
  await cli.api('put-bucket-website', ...bucket, '--website-configuration', JSON.stringify(website))
  t.same(await cli.api('get-bucket-website', ...bucket), website)
  const Statement = { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::aws-website/*' }
  await cli.api('put-bucket-policy', ...bucket, '--policy', JSON.stringify({ Version: '2012-10-17', Statement }))
  const page = join(cli.home, 'index.html')
  await writeFile(page, '<h1>Hello</h1>')
  await cli.s3('cp', page, 's3://aws-website/')
  const curl = (path: string) =>
    run('curl', ['-sS', '-i', '-H', 'Host: aws-website.localhost', `http://127.0.0.1:${port}${path}`]).then(String)
  const home = await curl('/')
  t.match(home, /^HTTP\/1.1 200 OK[\s\S]*content-type: text\/html[\s\S]*<h1>Hello<\/h1>$/i)
  t.match(await curl('/old/a'), /^HTTP\/1.1 302 Found[\s\S]*location: https:\/\/other.test\/new\/a/i)
  t.match(await curl('/absent'), /^HTTP\/1.1 403 Forbidden[\s\S]*<h1>403 AccessDenied<\/h1>/)
  await cli.api('delete-bucket-website', ...bucket)
  t.match(await curl('/'), /^HTTP\/1.1 404 Not Found[\s\S]*NoSuchWebsiteConfiguration/)
}

async function awsNotifications(t: Test, cli: Aws, receiver: WebhookReceiver): Promise<void> {
  const bucket = ['--bucket', 'aws-notifications']
  await cli.api('create-bucket', ...bucket)
  t.same(await cli.api('get-bucket-notification-configuration', ...bucket), {})
  const put = (configuration: object) =>
    [
      'put-bucket-notification-configuration',
      ...bucket,
      '--notification-configuration',
      JSON.stringify(configuration),
    ] as const
  const topic = { Id: 't', TopicArn: ARN, Events: ['s3:ObjectRemoved:*'] }
  const FilterRules = [{ Name: 'suffix', Value: '.jpg' }]
  const queue = { Id: 'q', QueueArn: ARN, Events: ['s3:ObjectCreated:*'], Filter: { Key: { FilterRules } } }
  const before = receiver.taken.length
  const [command, ...args] = put({ TopicConfigurations: [topic], QueueConfigurations: [queue] })
  await cli.api(command, ...args)
  t.match(receiver.taken[before]?.body, { Event: 's3:TestEvent', Bucket: 'aws-notifications' })
  const shown = await cli.api('get-bucket-notification-configuration', ...bucket)
  t.same(shown.TopicConfigurations, [topic])
  t.same(shown.QueueConfigurations, [
    { ...queue, Filter: { Key: { FilterRules: [{ Name: 'Suffix', Value: '.jpg' }] } } },
  ])
  for (const key of ['a b.jpg', 'c.txt']) await cli.api('put-object', ...bucket, '--key', key)
  await cli.api('delete-object', ...bucket, '--key', 'a b.jpg')
  const events = () =>
    receiver.taken.slice(before + 1).map(({ record }) => `${record.eventName} ${record.s3.object.key}`)
  await until('both are told', () => events().length >= 2)
  t.same(events(), ['ObjectCreated:Put a+b.jpg', 'ObjectRemoved:Delete a+b.jpg'])

  const [, ...nothing] = put({})
  await cli.api(command, ...nothing)
  t.same(await cli.api('get-bucket-notification-configuration', ...bucket), {})
  await cli.s3('rb', '--force', 's3://aws-notifications')
}
async function s3cmd(t: Test, path: string, server: Dealgate, receiver: WebhookReceiver): Promise<void> {
  const home = temporaryFolder(t)
  const bucket = 's3://s3cmd-rules'
  let client = await S3cmd.configured(path, server, home)
  await client.run('mb', bucket)
  t.match(await client.run('info', bucket), /Expiration rule: *none/i)
  const file = join(home, 'rules.xml')
  const rules =
    '<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Rule><ID>old form</ID><Prefix>logs/</Prefix><Status>Enabled</Status><Expiration><Days>9</Days></Expiration></Rule></LifecycleConfiguration>'
  await writeFile(file, rules)
  await client.run('setlifecycle', file, bucket)
  t.match(await client.run('getlifecycle', bucket), /old form[\s\S]*<Days>9</)
  t.match(
    await client.run('info', bucket),
    /Expiration rule: *objects with key prefix 'logs\/' will expire in '9' day/i,
  )
  await client.run('dellifecycle', bucket)
  t.match(await client.failing('getlifecycle', bucket), 'NoSuchLifecycleConfiguration')

  const told = join(home, 'told.xml')
  await writeFile(
    told,
    `<NotificationConfiguration><TopicConfiguration><Id>t</Id><Topic>${ARN}</Topic><Event>s3:LifecycleExpiration:*</Event></TopicConfiguration></NotificationConfiguration>`,
  )
  await client.run('setnotification', told, bucket)
  t.match(await client.run('getnotification', bucket), ARN)

  // A date that is over: at its next start the server carries it out.
  for (const key of ['due/1', 'due/2', 'stays']) await client.run('put', file, `${bucket}/${key}`)
  await client.run('expire', '--expiry-date=2020-01-01', '--expiry-prefix=due/', bucket)
  t.match(await client.run('info', bucket), /'due\/'.*2020-01-01/)
  await server.stop()
  await server.start()
  client = await S3cmd.configured(path, server, home)
  const expired = () => receiver.events.filter((event) => event.startsWith('LifecycleExpiration')).sort()
  await until('they are gone', () => expired().length === 2)
  t.same(expired(), ['LifecycleExpiration:Delete due/1', 'LifecycleExpiration:Delete due/2'])
  const left = await client.run('ls', '--recursive', bucket)
  t.match(left, 'stays')
  t.notMatch(left, 'due/')
  await client.run('delnotification', bucket)
  t.notMatch(await client.run('getnotification', bucket), ARN)
  await client.run('expire', bucket)
  t.match(await client.run('info', bucket), /Expiration rule: *none/i)
  await client.run('rb', '--recursive', '--force', bucket)
}
