import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { findClient } from '../support/programs/run.js'
import { S3cmd } from '../support/programs/s3cmd.js'
import { startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { until } from '../support/waiting.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'

/*
 * Configurations of buckets as aws-cli and s3cmd write them, and what they make of the answers. test/src/s3/lifecycle,
 * logging and notifications, and s3/bucket/website, have what the server does then.
 */

const ARN = 'arn:dealgate:webhook:::hook'
const [version] = await awsVersions(t)
const s3cmdPath = await findClient(t, 's3cmd')
const receiver = await WebhookReceiver.start(t)
const websites = ['--website-port', String(await lastingPort())]
const server = await startDealgate(t, { args: ['--webhook', `hook=${receiver.url}`, ...websites] })
if (version) await t.test('aws-cli', (t) => awsCli(t, new Aws(version, server, temporaryFolder(t))))
if (s3cmdPath) await t.test('s3cmd', (t) => s3cmd(t, s3cmdPath))

async function awsCli(t: Test, aws: Aws): Promise<void> {
  const bucket = ['--bucket', 'rules']
  for (const name of ['rules', 'logs']) await aws.api('create-bucket', '--bucket', name)
  /** Puts a document in a flag of the command, and returns what the program reads back. */
  const kept = async (name: string, flag: string, document: object) => {
    await aws.api(`put-bucket-${name}`, ...bucket, `--${flag}`, JSON.stringify(document))
    return aws.api(`get-bucket-${name}`, ...bucket)
  }

  const noncurrent = { NoncurrentDays: 1, NewerNoncurrentVersions: 9 }
  const Rules = [
    {
      ID: 'one',
      Filter: { And: { Prefix: 'logs/', Tags: [{ Key: 'a', Value: 'b' }], ObjectSizeGreaterThan: 5 } },
      Status: 'Enabled',
      Expiration: { Days: 3 },
      NoncurrentVersionExpiration: noncurrent,
    },
    {
      ID: 'two',
      Filter: { Prefix: '' },
      Status: 'Disabled',
      AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 },
      Expiration: { ExpiredObjectDeleteMarker: true },
      NoncurrentVersionTransitions: [{ ...noncurrent, StorageClass: 'GLACIER' }],
    },
    { ID: 'three', Filter: { Prefix: 'x/' }, Status: 'Enabled', Expiration: { Date: '2038-01-01T00:00:00.000Z' } },
  ]
  const shown = await kept('lifecycle-configuration', 'lifecycle-configuration', { Rules })
  // Versions of the program write an instant in different ways.
  shown.Rules[2].Expiration.Date = new Date(shown.Rules[2].Expiration.Date).toISOString()
  t.same(shown.Rules, Rules)
  const { Expiration } = await aws.api('put-object', ...bucket, '--key', 'x/1')
  t.equal(Expiration, 'expiry-date="Fri, 01 Jan 2038 00:00:00 GMT", rule-id="three"')
  // The older operations, which write the prefix beside the rule.
  const older = { Rules: [{ ID: 'old', Prefix: 'old/', Status: 'Enabled', Expiration: { Days: 2 } }] }
  t.same(await kept('lifecycle', 'lifecycle-configuration', older), older)
  await aws.api('delete-bucket-lifecycle', ...bucket)
  t.match(await aws.apiFailing('get-bucket-lifecycle-configuration', ...bucket), 'NoSuchLifecycleConfiguration')

  const LoggingEnabled = { TargetBucket: 'logs', TargetPrefix: 'a/' }
  t.match(await kept('logging', 'bucket-logging-status', { LoggingEnabled }), { LoggingEnabled })
  t.same(await kept('logging', 'bucket-logging-status', {}), {})

  const Redirect = { HostName: 'other.test', Protocol: 'https', HttpRedirectCode: '302', ReplaceKeyPrefixWith: 'new/' }
  const website = {
    IndexDocument: { Suffix: 'index.html' },
    ErrorDocument: { Key: 'error.html' },
    RoutingRules: [{ Condition: { KeyPrefixEquals: 'old/' }, Redirect }],
  }
  t.same(await kept('website', 'website-configuration', website), website)
  await aws.api('delete-bucket-website', ...bucket)
  t.match(await aws.apiFailing('get-bucket-website', ...bucket), 'NoSuchWebsiteConfiguration')

  const FilterRules = [{ Name: 'Suffix', Value: '.jpg' }]
  const notifications = {
    TopicConfigurations: [{ Id: 't', TopicArn: ARN, Events: ['s3:ObjectRemoved:*'] }],
    QueueConfigurations: [{ Id: 'q', QueueArn: ARN, Events: ['s3:ObjectCreated:*'], Filter: { Key: { FilterRules } } }],
  }
  const name = 'notification-configuration'
  t.same(await kept(name, name, notifications), notifications)
  for (const key of ['a b.jpg', 'c.txt']) await aws.api('put-object', ...bucket, '--key', key)
  await aws.api('delete-object', ...bucket, '--key', 'a b.jpg')
  await until('both are told', () => receiver.events.length >= 2)
  t.same(receiver.events, ['ObjectCreated:Put a b.jpg', 'ObjectRemoved:Delete a b.jpg'])
  t.same(await kept(name, name, {}), {})
}

async function s3cmd(t: Test, path: string): Promise<void> {
  const bucket = 's3://s3cmd-rules'
  const client = await S3cmd.configured(path, server, temporaryFolder(t))
  await client.run('mb', bucket)
  const file = join(client.home, 'told.xml')
  const topic = `<Id>t</Id><Topic>${ARN}</Topic><Event>s3:LifecycleExpiration:*</Event>`
  await writeFile(
    file,
    `<NotificationConfiguration><TopicConfiguration>${topic}</TopicConfiguration></NotificationConfiguration>`,
  )
  await client.run('setnotification', file, bucket)
  t.match(await client.run('getnotification', bucket), ARN)
  await client.run('delnotification', bucket)
  t.notMatch(await client.run('getnotification', bucket), ARN)

  await client.run('expire', '--expiry-date=2038-01-01', '--expiry-prefix=due/', bucket)
  t.match(await client.run('info', bucket), /Expiration rule: *objects with key prefix 'due\/'.*2038-01-01/i)
  await client.run('dellifecycle', bucket)
  t.match(await client.failing('getlifecycle', bucket), 'NoSuchLifecycleConfiguration')
}
