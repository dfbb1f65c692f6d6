import type { Event, S3 } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'
import { until } from '../../support/waiting.js'
import { WebhookReceiver } from '../../support/webhook-receiver.js'

const Bucket = 'bucket'
const ARN = 'arn:dealgate:webhook:::hook'

function subscribe(s3: S3, Events: string[], more: object = {}, options: object = {}) {
  const rule = { Id: 'rule', QueueArn: ARN, Events: Events as Event[], ...more }
  return s3.putBucketNotificationConfiguration({
    Bucket,
    NotificationConfiguration: { QueueConfigurations: [rule] },
    ...options,
  })
}

async function start(t: Test, mode: (typeof modes)[number], options: object = {}) {
  const receiver = await WebhookReceiver.start(t)
  const webhooks = [{ name: 'hook', url: `${receiver.url}/in?token=THE-TOKEN` }]
  const server = await startInProcess(t, mode, {
    standard: { notifications: { webhooks, firstRetryMs: 5 } },
    ...options,
  })
  await server.s3.createBucket({ Bucket })
  return { ...server, receiver }
}

for (const mode of modes) {
  t.test(`${mode}: everything that happens to objects is told`, async (t) => {
    const { s3, receiver } = await start(t, mode, {
      now: () => Date.now() + 10 * 24 * 3600 * 1000,
      lifecycleIntervalMs: 20,
    })
    await subscribe(s3, ['s3:ObjectCreated:*', 's3:ObjectRemoved:*', 's3:ObjectTagging:*', 's3:LifecycleExpiration:*'])
    t.match(receiver.taken[0]?.body, { Service: 'Amazon S3', Event: 's3:TestEvent', Bucket })

    const Key = 'a folder/ü+&.txt'
    await s3.putObject({ Bucket, Key, Body: 'hello' })
    await s3.copyObject({
      Bucket,
      Key: 'copy',
      CopySource: encodeURI(`${Bucket}/${Key}`).replace('+', '%2B').replace('&', '%26'),
    })
    const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'parts' })
    const { ETag } = await s3.uploadPart({ Bucket, Key: 'parts', UploadId, PartNumber: 1, Body: 'part' })
    await s3.completeMultipartUpload({
      Bucket,
      Key: 'parts',
      UploadId,
      MultipartUpload: { Parts: [{ ETag, PartNumber: 1 }] },
    })
    const aborted = await s3.createMultipartUpload({ Bucket, Key: 'aborted' })
    await s3.abortMultipartUpload({ Bucket, Key: 'aborted', UploadId: aborted.UploadId })
    await s3.putObjectTagging({ Bucket, Key: 'copy', Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } })
    await s3.deleteObjectTagging({ Bucket, Key: 'copy' })
    await s3.deleteObject({ Bucket, Key: 'copy' })
    await s3.deleteObjects({ Bucket, Delete: { Objects: [{ Key: 'parts' }] } })
    await t.rejects(s3.getObject({ Bucket, Key: 'nothing' }), 'a failure is no event')
    await s3.putBucketLifecycleConfiguration({
      Bucket,
      LifecycleConfiguration: { Rules: [{ Filter: {}, Status: 'Enabled', Expiration: { Days: 1 } }] },
    })
    await until('all is told', () => receiver.events.length >= 8)
    t.same(
      [...receiver.events].sort(),
      [
        ...[`LifecycleExpiration:Delete ${Key}`, 'ObjectCreated:CompleteMultipartUpload parts'],
        ...['ObjectCreated:Copy copy', `ObjectCreated:Put ${Key}`, 'ObjectRemoved:Delete copy'],
        ...['ObjectRemoved:Delete parts', 'ObjectTagging:Delete copy', 'ObjectTagging:Put copy'],
      ].sort(),
    )
    const records = receiver.taken.slice(1).map(({ record }) => record)
    const ofCopy = records.filter(({ s3 }) => s3.object.key === 'copy').map(({ eventName }) => eventName)
    t.same(
      ofCopy,
      ['ObjectCreated:Copy', 'ObjectTagging:Put', 'ObjectTagging:Delete', 'ObjectRemoved:Delete'],
      'in order',
    )
    const put = records.find(({ eventName }) => eventName === 'ObjectCreated:Put')
    t.match(put, {
      awsRegion: 'us-east-1',
      userIdentity: { principalId: 'test-key' },
      requestParameters: { sourceIPAddress: /127\.0\.0\.1/ },
      responseElements: { 'x-amz-request-id': /^[0-9A-F]{16}$/ },
      s3: {
        configurationId: 'rule',
        bucket: { name: Bucket, arn: `arn:aws:s3:::${Bucket}` },
        object: { key: 'a+folder/%C3%BC%2B%26.txt', size: 5, eTag: '5d41402abc4b2a76b9719d911017c592' },
      },
    })
    const gone = records.find(({ eventName }) => eventName === 'LifecycleExpiration:Delete')
    t.ok(gone.s3.object.sequencer > put.s3.object.sequencer)
    t.notOk(JSON.stringify(gone).includes('eTag'))
  })
}

t.test('what is set is shown, filters hold, and nothing is told any more once it is taken away', async (t) => {
  const { s3, receiver, lines } = await start(t, 'full')
  const get = async () => {
    const { $metadata: _, ...configuration } = await s3.getBucketNotificationConfiguration({ Bucket })
    return configuration
  }
  t.same(await get(), {})
  const FilterRules = [
    { Name: 'prefix' as const, Value: 'images/' },
    { Name: 'suffix' as const, Value: '.jpg' },
  ]
  const NotificationConfiguration = {
    TopicConfigurations: [{ Id: 't', TopicArn: ARN, Events: ['s3:ObjectRemoved:*' as const] }],
    QueueConfigurations: [
      { Id: 'q', QueueArn: ARN, Events: ['s3:ObjectCreated:Put' as const], Filter: { Key: { FilterRules } } },
    ],
    LambdaFunctionConfigurations: [{ Id: 'f', LambdaFunctionArn: ARN, Events: ['s3:ObjectTagging:*' as const] }],
  }
  await s3.putBucketNotificationConfiguration({ Bucket, NotificationConfiguration })
  t.equal(receiver.taken.length, 1, 'one test event for each destination')
  const shown = await get()
  t.same(shown.TopicConfigurations, NotificationConfiguration.TopicConfigurations)
  t.same(shown.LambdaFunctionConfigurations, NotificationConfiguration.LambdaFunctionConfigurations)
  t.match(shown.QueueConfigurations?.[0]?.Filter?.Key?.FilterRules, [
    { Name: 'Prefix', Value: 'images/' },
    { Name: 'Suffix', Value: '.jpg' },
  ])
  for (const Key of ['images/a.jpg', 'images/a.png', 'a.jpg']) await s3.putObject({ Bucket, Key, Body: '' })
  await s3.deleteObject({ Bucket, Key: 'a.jpg' })
  await until('both are told', () => receiver.events.length === 2)
  t.same([...receiver.events].sort(), ['ObjectCreated:Put images/a.jpg', 'ObjectRemoved:Delete a.jpg'])

  await s3.putBucketNotificationConfiguration({ Bucket, NotificationConfiguration: {} })
  t.same(await get(), {})
  await s3.deleteObject({ Bucket, Key: 'images/a.jpg' })
  await s3.deleteObject({ Bucket, Key: 'images/a.png' })
  await subscribe(s3, ['s3:ObjectCreated:*'])
  await s3.deleteBucket({ Bucket })
  await s3.createBucket({ Bucket })
  t.same(await get(), {}, 'a new bucket inherits nothing')
  await s3.putObject({ Bucket, Key: 'last', Body: '' })
  t.equal(receiver.events.length, 2)
  t.notOk(JSON.stringify(lines).includes('THE-TOKEN'))
})

t.test('destinations are tried out, unless that is not wanted', async (t) => {
  const { s3, receiver, restart, lines } = await start(t, 'full')
  receiver.behave = (response) => response.writeHead(403).end()
  await t.rejects(subscribe(s3, ['s3:ObjectCreated:*']), {
    name: 'InvalidArgument',
    message:
      /Unable to validate the following destination configurations: arn:dealgate:webhook:::hook: it answered 403/,
  })
  const { QueueConfigurations } = await s3.getBucketNotificationConfiguration({ Bucket })
  t.equal(QueueConfigurations, undefined, 'nothing was kept')
  await subscribe(s3, ['s3:ObjectCreated:*'], {}, { SkipDestinationValidation: true })
  t.equal(receiver.all.length, 1)
  await t.rejects(subscribe(s3, ['s3:ObjectCreated:*'], { QueueArn: 'arn:aws:sqs:us-east-1:1:q' }), {
    name: 'InvalidArgument',
  })
  await t.rejects(
    s3.putBucketNotificationConfiguration({ Bucket, NotificationConfiguration: { EventBridgeConfiguration: {} } }),
    { name: 'NotImplemented' },
  )
  await t.rejects(s3.getBucketNotificationConfiguration({ Bucket: 'missing' }), { name: 'NoSuchBucket' })

  // A webhook that is not declared any more: what it should be told waits until it is again.
  receiver.behave = undefined
  await restart({ standard: { notifications: { webhooks: [] } } })
  await s3.putObject({ Bucket, Key: 'k', Body: '' })
  await until('it is told in the log', () => lines.some(({ why }) => why === 'the webhook is not declared'))
  await restart()
  await until('it is told', () => receiver.events.length === 1)

  const identity = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
  await restart({ identities: [{ ...identity, rights: [{ bucket: Bucket, prefix: 'a/', access: 'readwrite' }] }] })
  await t.rejects(subscribe(s3, ['s3:ObjectCreated:*']), { name: 'AccessDenied' })
  await t.rejects(s3.getBucketNotificationConfiguration({ Bucket }), { name: 'AccessDenied' })
})

t.test('kill -9 between a PUT and its delivery', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const args = ['--webhook-secret', 'hook=signing secret', '--log-level', 'debug']
  const env = { DEALGATE_WEBHOOK: `hook=${receiver.url.replace('//', '//me:THE-PASSWORD@')}/in?token=THE-TOKEN` }
  const data = t.testdir()
  const first = await startDealgate(t, { data, args, env })
  const s3 = sdkFor(t, first)
  await s3.createBucket({ Bucket })
  await subscribe(s3, ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'])
  // It hangs, so that the first is under way and the others wait.
  receiver.behave = () => {}
  await Promise.all(['a', 'b', 'c'].map((Key) => s3.putObject({ Bucket, Key, Body: Key })))
  await s3.deleteObject({ Bucket, Key: 'a' })
  await until('one is under way', () => receiver.all.length >= 2)
  const killed = await first.stop('SIGKILL')
  await receiver.stop()
  receiver.behave = undefined
  t.same(receiver.events, [])

  const second = await startDealgate(t, { data, args, env })
  await receiver.start()
  await until('all is told', () => receiver.events.length >= 4)
  t.same([...receiver.events].sort(), [
    'ObjectCreated:Put a',
    'ObjectCreated:Put b',
    'ObjectCreated:Put c',
    'ObjectRemoved:Delete a',
  ])
  t.ok(receiver.events.indexOf('ObjectRemoved:Delete a') > receiver.events.indexOf('ObjectCreated:Put a'))
  t.match(receiver.taken.at(-1)?.headers['x-dealgate-signature'], /^t=\d+,v1=[0-9a-f]{64}$/)
  const ended = await second.stop()
  t.equal(ended.code, 0)
  for (const secret of ['THE-TOKEN', 'THE-PASSWORD', 'signing secret'])
    for (const { stderr, stdout } of [killed, ended]) t.notOk((stderr + stdout).includes(secret), `no ${secret}`)
  t.match(killed.stderr + ended.stderr, /"webhook":"hook"/, 'but the webhook’s name')
})
