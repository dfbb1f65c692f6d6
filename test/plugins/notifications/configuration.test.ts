import t from 'tap'
import { type ConfigError, readConfig } from '../../../cli/config/config.js'
import { readConfiguration, selectors } from '../../../plugins/notifications/configuration.js'
import { eventMessage, testMessage } from '../../../plugins/notifications/outbox.js'
import { Sequencer } from '../../../plugins/notifications/sender.js'
import { parseWebhook, parseWebhookSecret, webhookOfArn } from '../../../plugins/notifications/webhooks.js'
import type { ObjectEvent } from '../../../src/api/hooks.js'
import { xml } from '../../../src/plugin.js'

const read = async (content: string) => {
  const document = `<NotificationConfiguration>${content}</NotificationConfiguration>`
  const root = await xml.parse(Buffer.from(document), 'NotificationConfiguration')
  return readConfiguration(root, (name) => name !== 'other')
}
const queue = (content: string, arn = 'arn:dealgate:webhook:::hook') =>
  `<QueueConfiguration><Queue>${arn}</Queue>${content}</QueueConfiguration>`
const created = '<Event>s3:ObjectCreated:*</Event>'
const filter = (...rules: [name: string, value: string][]) =>
  `<Filter><S3Key>${rules.map(([name, value]) => `<FilterRule><Name>${name}</Name><Value>${value}</Value></FilterRule>`).join('')}</S3Key></Filter>`

t.test('what is accepted', async (t) => {
  t.same(await read(''), [])
  const kinds = ['Topic', 'Queue', 'CloudFunction']
  const events = ['s3:ObjectCreated:Put', 's3:ObjectRemoved:*', 's3:ObjectTagging:*']
  const rules = kinds.map(
    (kind, i) =>
      `<${kind}Configuration><Id>${kind}</Id><${kind}>arn:dealgate:webhook:::hook-${i}</${kind}><Event>${events[i]}</Event></${kind}Configuration>`,
  )
  const read3 = kinds.map((kind, i) => ({ id: kind, kind, webhook: `hook-${i}`, events: [events[i]] }))
  t.same(await read(rules.reverse().join('')), read3)
  const [rule] = await read(queue(`${created}${created}${filter(['Suffix', '.jpg'], ['prefix', 'images/'])}`))
  t.match(rule, { webhook: 'hook', events: ['s3:ObjectCreated:*'], prefix: 'images/', suffix: '.jpg' })
  t.ok(rule?.id, 'a rule without id gets one')
  for (const selector of selectors) t.equal((await read(queue(`<Event>${selector}</Event>`))).length, 1, selector)
})

t.test('what is refused, and how', async (t) => {
  const NOWHERE = /Unable to validate the following destination configurations/
  const event = (name: string) => queue(`<Event>s3:${name}</Event>`)
  const withFilter = (...rules: [name: string, value: string][]) => queue(created + filter(...rules))
  const many = Array.from({ length: 101 }, (_, i) => withFilter(['prefix', `${1000 + i}/`]))
  const invalid: [what: string, content: string, message: RegExp][] = [
    ['a queue of Amazon', queue(created, 'arn:aws:sqs:us-east-1:123456789012:q'), NOWHERE],
    ['a webhook that is not declared', queue(created, 'arn:dealgate:webhook:::other'), NOWHERE],
    ['an unknown event', event('ObjectSung:*'), /ObjectSung/],
    ['an event that never happens', event('Replication:OperationMissedThreshold'), /Replication/],
    ['a family of one', event('LifecycleTransition:*'), /LifecycleTransition/],
    ['an unknown filter', withFilter(['infix', 'x']), /prefix or suffix/],
    ['two prefixes', withFilter(['prefix', 'x'], ['Prefix', 'y']), /more than one prefix/],
    ['a long filter', withFilter(['prefix', 'ä'.repeat(513)]), /1024/],
    ['an id twice', queue(`<Id>a</Id>${created}`) + queue('<Id>a</Id><Event>s3:ObjectRemoved:*</Event>'), /unique/],
    ['too many', many.join(''), /100/],
    ['one event twice', queue(created) + event('ObjectCreated:Put'), /Configurations overlap/],
    ['overlapping prefixes', withFilter(['prefix', 'a']) + withFilter(['prefix', 'a/b']), /ambiguously defined/],
  ]
  for (const [what, content, message] of invalid)
    await t.rejects(read(content), { code: 'InvalidArgument', message }, what)
  await t.rejects(read('<EventBridgeConfiguration/>'), { code: 'NotImplemented', message: /EventBridge/ })
  await t.rejects(read('<Other/>'), { code: 'MalformedXML', message: /Other/ })
  for (const content of [`<QueueConfiguration>${created}</QueueConfiguration>`, queue('')])
    await t.rejects(read(content), { code: 'MalformedXML' }, 'no destination, no event')
  t.equal((await read(withFilter(['suffix', '.jpg']) + withFilter(['suffix', '.png']))).length, 2)
})

const event: ObjectEvent = {
  name: 'ObjectCreated:Put',
  bucket: 'photos',
  key: "a folder/ü+&'~*.jpg",
  size: 5,
  etag: 'abc',
  time: Date.UTC(2030, 0, 2, 3, 4, 5, 678),
  origin: { requestId: 'REQUEST', accessKeyId: 'me', remoteAddress: '192.0.2.1' },
}
const facts = { region: 'us-east-1', ruleId: 'rule', owner: 'owner', sequencer: '00A' }

t.test('the message of an event that no client has caused', async (t) => {
  const { size: _, etag: __, ...rest } = event
  const origin = { requestId: 'R', accessKeyId: '', remoteAddress: '' }
  const expired = JSON.parse(eventMessage({ ...rest, name: 'LifecycleExpiration:Delete', origin }, facts)).Records[0]
  t.equal(expired.eventVersion, '2.3')
  t.equal(expired.userIdentity.principalId, 's3.amazonaws.com')
  t.same(Object.keys(expired.s3.object), ['key', 'sequencer'])
  t.equal(JSON.parse(eventMessage({ ...event, origin }, facts)).Records[0].userIdentity.principalId, 'Anonymous')
  const until = Date.UTC(2030, 0, 5)
  const moved = (name: ObjectEvent['name']) =>
    JSON.parse(eventMessage({ ...event, name, storageClass: 'GLACIER', until }, facts)).Records[0]
  const restored = {
    lifecycleRestorationExpiryTime: '2030-01-05T00:00:00.000Z',
    lifecycleRestoreStorageClass: 'GLACIER',
  }
  const glacierEventData = { restoreEventData: restored }
  t.match(moved('ObjectRestore:Completed'), { eventVersion: '2.1', glacierEventData })
  t.match(moved('ObjectRestore:Post'), { eventVersion: '2.1', userIdentity: { principalId: 'me' } })
  t.equal(moved('ObjectRestore:Delete').eventVersion, '2.3')
  t.match(moved('LifecycleTransition'), {
    eventVersion: '2.3',
    userIdentity: { principalId: 's3.amazonaws.com' },
    lifecycleEventData: { transitionEventData: { destinationStorageClass: 'GLACIER' } },
  })
  const test = { Service: 'Amazon S3', Event: 's3:TestEvent', Time: '1970-01-01T00:00:00.000Z', Bucket: 'b' }
  t.match(JSON.parse(testMessage({ bucket: 'b', requestId: 'R', time: 0 })), test)
})

t.test('sequencers only grow', async (t) => {
  let now = 1_700_000_000_000
  const sequencer = new Sequencer(() => now)
  const some = [sequencer.next(), sequencer.next()]
  now -= 60_000
  some.push(sequencer.next())
  sequencer.follow('00FFFFFFFFFFFFF0')
  sequencer.follow('nonsense')
  some.push(sequencer.next())
  now = 1_800_000_000_000
  some.push(sequencer.next())
  t.same([...some].sort(), some)
  t.equal(new Set(some).size, some.length)
  t.ok(some.every((each) => /^[0-9A-F]{16}$/.test(each)))
})

t.test('webhooks', async (t) => {
  const url = 'https://me:secret@example.com/x?token=1'
  t.same(parseWebhook(`a=${url}`), { name: 'a', url })
  const long = `${'a'.repeat(65)}=http://x`
  for (const bad of ['', 'a', '=http://x', 'a b=http://x', 'a=ftp://x', 'a=http://', 'a=x', long])
    t.throws(() => parseWebhook(bad), bad)
  t.throws(() => parseWebhookSecret('a=short'))
  t.equal(webhookOfArn('arn:dealgate:webhook:::a_B-1'), 'a_B-1')
  for (const bad of ['arn:dealgate:webhook:::', 'arn:dealgate:webhook:us-east-1::a', 'a', 'arn:dealgate:webhook:::a/b'])
    t.equal(webhookOfArn(bad), undefined)
})

t.test('webhooks as options', async (t) => {
  const problems = (flags: Record<string, unknown>) => {
    try {
      readConfig({ flags, env: {} })
      return []
    } catch (error) {
      return (error as ConfigError).problems
    }
  }
  t.same(problems({ webhook: ['a=http://x', 'b=https://me:pass@y/?token=1'], webhookSecret: ['b=12345678'] }), [])
  t.match(problems({ webhook: ['a=http://x'], webhookSecret: ['b=12345678'] }), [/"b", which is not declared/])
  const [secret] = problems({ webhook: ['a=nowhere?token=THE-TOKEN'] })
  t.match(secret, /--webhook is not valid: after "=" there must be an http or https URL/)
  const unencoded = 'hook=http://user%:pa%73s@127.0.0.1/'
  t.throws(() => parseWebhook(unencoded), /user and password must be percent-encoded/, 'and no malformed URI')
  t.notMatch(secret, 'THE-TOKEN')
})
