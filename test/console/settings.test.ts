import t, { type Test } from 'tap'
import { ask } from '../support/server/many-deaths.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'
import { type ConsoleScene, forward, intercept, respond, signBy, startConsole } from './browser.js'

t.test('the settings of a bucket', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const scene = await startConsole(t, { args: ['--webhook', `hook=${receiver.url}`] })
  if (!scene) return
  const { server, tab } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a.txt', body: Buffer.from('content') })
  const headers = { 'x-amz-storage-class': 'STANDARD_IA' }
  await send(server, { method: 'PUT', target: '/photos/b.txt', headers, body: Buffer.from('more') })
  await tab.signIn()
  await t.test('how it keeps its objects', (t) => general(t, scene))
  await t.test('who may use it', (t) => access(t, scene))
  await t.test('what its deals cost', (t) => deals(t, scene))
  await t.test('rules', (t) => rules(t, scene))
  await t.test('what it writes into others', (t) => events(t, scene))
  await t.test('a new bucket', (t) => creation(t, scene))
  t.same(tab.complaints, [])
})

/** The text of a document of the bucket `photos`. */
const readOf =
  ({ server }: ConsoleScene) =>
  async (query: string, bucket = 'photos') =>
    (await send(server, { method: 'GET', target: `/${bucket}?${query}` })).body.toString()

async function general(t: Test, scene: ConsoleScene): Promise<void> {
  const { server, tab, accessible } = scene
  const read = readOf(scene)
  await ask(server, 'POST', '/photos?x-quota=', { json: { Bytes: 1234567 } })
  await tab.goTo('#/buckets/photos/settings', '11 B of 1.2 MiB')
  await accessible('general settings')
  await tab.click('button', 'Count objects and bytes')
  for (const shown of ['2 objects, 11 B', '1 object, 7 B', '1 object, 4 B']) await tab.sees(shown)
  await tab.fill('At most MiB', '')
  await tab.fill('At most objects', '3')
  await tab.click('button', 'Save quota and size', 'Quota and size: saved', '2 objects of 3')
  t.match(JSON.parse(await read('format=json&x-quota=')), { Quota: { Objects: 3 } })

  await tab.click('button', 'Save versioning')
  await tab.untilTrue(`[...document.querySelectorAll('option')].some(({ value }) => value === 'Suspended')`)
  await tab.choose('State to be', 'Suspended')
  await tab.click('button', 'Save versioning', 'replaces the object for good')
  await tab.click('button', 'Suspend')
  await tab.untilTrue(`document.querySelector('dialog') === null && /◐\\s*Suspended/.test(document.body.innerText)`)
  t.match(await read('versioning'), '<Status>Suspended<')
  await tab.choose('State to be', 'Enabled')
  await tab.click('button', 'Save versioning', 'Versioning: saved')

  await tab.choose('Default retention of new versions', 'COMPLIANCE')
  await tab.fill('Kept for', '2')
  await tab.click('button', 'Save object lock', 'nobody can delete it')
  await tab.sees('Every new version is kept for 2 days')
  await accessible('the question before a lock')
  t.equal(
    (await send(server, { method: 'GET', target: '/photos?object-lock' })).code,
    'ObjectLockConfigurationNotFoundError',
  )
  await tab.click('button', 'Cancel')
  await tab.choose('Default retention of new versions', 'GOVERNANCE')
  await tab.click('button', 'Save object lock')
  await tab.fill('Type photos to confirm', 'photos')
  await tab.click('button', 'Turn it on', 'On: versions can be locked')
  t.match(await read('object-lock'), '<Mode>GOVERNANCE</Mode><Days>2</Days>')

  await tab.choose('Encryption of new objects', 'aws:kms')
  await tab.fill('Name of the key', 'missing')
  await tab.click('button', 'Save encryption')
  await tab.untilTrue(
    `document.querySelector('.careful input:invalid')`,
    'it is stored without the question for a copy',
  )
  await tab.click('checkbox', 'There is a copy of the keys, or I will make one')
  await tab.click('button', 'Save encryption', 'Line 5 Warning: The server has no key of this name')
  await tab.click('button', 'Encryption as a form')
  await tab.choose('Encryption of new objects', 'AES256')
  await tab.click('checkbox', 'There is a copy of the keys, or I will make one')
  await tab.click('button', 'Save encryption', 'Encrypted with AES256')
  t.match(await read('encryption'), '<SSEAlgorithm>AES256<')
  await tab.click('button', 'Count what is not encrypted', 'not encrypted 2 objects, 11 B; encrypted 0 objects')
  await tab.sees('a.txt')

  await tab.click('button', 'Tags as XML')
  await tab.fill('Tags, XML', '<Tagging>\n<TagSet>\n<Tag><Key>a</Key><Value>b</Key></Tag>\n</TagSet></Tagging>')
  await tab.click('button', 'Save tags', 'Line 3 Error: This is no XML document: </Key> closes nothing that is open.')
  await accessible('a document with a mistake')
  await tab.fill('Tags, XML', '<Tagging><TagSet>\n<Tag><Key>a</Key></Tag>\n</TagSet></Tagging>')
  await tab.click('button', 'Save tags', 'Every Tag needs a Key and a Value')
  await tab.fill('Tags, XML', '<Tagging><TagSet><Tag><Key>a\u202eb</Key><Value>c</Value></Tag></TagSet></Tagging>')
  await tab.click('button', 'Save tags', 'InvalidTag')
  await tab.fill('Tags, XML', '<Tagging><TagSet><Tag><Key>a</Key><Value>c</Value></Tag></TagSet></Tagging>')
  await tab.click('button', 'Save tags', 'Tags: saved')
  await tab.click('button', 'Tags as a form')
  await tab.fill('Value of tag 1', 'd')
  await tab.click('button', 'Save tags')
  await until('the tag is stored', async () => (await read('tagging')).includes('<Key>a</Key><Value>d</Value>'))
}

async function access(t: Test, scene: ConsoleScene): Promise<void> {
  const { server, tab, accessible } = scene
  const read = readOf(scene)
  await tab.goTo('#/buckets/photos/settings/access', 'Not public')
  await tab.click('button', 'Add grant')
  await tab.click('button', 'Save ACL', 'AccessControlListNotSupported')
  await tab.choose('Objects belong to', 'ObjectWriter')
  await tab.click('button', 'Save ownership of objects', 'Ownership of objects: saved')
  await tab.click('button', 'Save ACL', 'ACL: saved')
  t.match(await read('acl'), /AuthenticatedUsers[\s\S]*<Permission>READ</)
  await tab.sees('opens it to everybody')
  await accessible('a bucket with an ACL')
  await tab.goTo('#/buckets')
  await tab.untilTrue(`/◉\\s*Public/.test(document.body.innerText)`)
  await tab.goTo('#/buckets/photos/settings/access')
  await tab.click('button', 'Remove grant 1')
  await tab.click('button', 'Save ACL', 'Not public')
  t.notMatch(await read('acl'), /AuthenticatedUsers/)
  await tab.click('checkbox', 'Refuse policies that open something to everybody')
  await tab.click('button', 'Save public access block', 'Public access block: saved')
  t.match(await read('publicAccessBlock'), /<BlockPublicPolicy>true/)

  const Condition = { Bool: { 'aws:SecureTransport': 'false' } }
  const deny = {
    Effect: 'Deny',
    Principal: '*',
    Action: ['s3:PutObject'],
    Resource: 'arn:aws:s3:::photos/*',
    Condition,
  }
  const policy = Buffer.from(JSON.stringify({ Version: '2012-10-17', Statement: [deny] }))
  t.equal((await send(server, { method: 'PUT', target: '/photos?policy', body: policy })).status, 204)
  await tab.goTo('#/buckets')
  await tab.goTo('#/buckets/photos/settings/access', 'Condition')
  await tab.click('button', 'Actions on statement 1')
  await tab.click('button', 'Change…', 'The statement also has Condition')
  await tab.fill('Actions', 's3:PutObject\ns3:PutObjekt')
  await tab.click('button', 'Save', 'Line 9 Error: Policy has invalid action: s3:PutObjekt')
  await tab.click('button', 'Bucket policy as a form')
  await tab.click('button', 'Actions on statement 1')
  await tab.click('button', 'Change…')
  await tab.fill('Actions', 's3:PutObject\ns3:DeleteObject')
  await tab.click('button', 'Save', 'Bucket policy: saved')
  const stored = JSON.parse(await read('policy'))
  t.same(stored.Statement, [{ ...deny, Action: ['s3:PutObject', 's3:DeleteObject'] }], 'what no form shows stays')

  await tab.click('button', 'Save website', 'This server does not do that')
  t.match(await tab.text(), 'Buckets are not served as websites here')
  await tab.click('button', 'CORS rules as XML')
  const cors = (method: string) =>
    `<CORSConfiguration>\n<CORSRule>\n<AllowedMethod>GET</AllowedMethod>\n<AllowedOrigin>*</AllowedOrigin>\n</CORSRule>\n<CORSRule>\n<AllowedMethod>${method}</AllowedMethod>\n<AllowedOrigin>*</AllowedOrigin>\n</CORSRule>\n</CORSConfiguration>`
  await tab.fill('CORS rules, XML', cors('PULL'))
  await tab.click('button', 'Save CORS rules', 'Line 7 Error: Found unsupported HTTP method in CORS config')
  await tab.fill('CORS rules, XML', cors('PUT'))
  await tab.click('button', 'Save CORS rules', 'CORS rules: saved')
  await accessible('the settings of access')

  await tab.goTo('#/buckets/photos/object?key=a.txt')
  await tab.click('summary', 'Edit rights (ACL)')
  await tab.click('button', 'Add grant')
  await tab.click('button', 'Save ACL', 'The ACL was saved')
  t.match((await send(server, { method: 'GET', target: '/photos/a.txt?acl' })).body.toString(), /AuthenticatedUsers/)
}

async function deals(t: Test, scene: ConsoleScene): Promise<void> {
  const { server, tab, accessible } = scene
  const ofClass = { StorageClass: 'GLACIER', MinerId: 't01001' }
  const set = await ask(server, 'POST', '/photos?x-deal-config=', { json: { Terms: [ofClass], ReadThrough: true } })
  t.equal(set.status, 200)
  await tab.goTo('#/buckets/photos/settings/deals', 'There is no schedule')
  await accessible('the settings of deals')
  await tab.fill('Provider', 't01000')
  await tab.fill('Price', '0.0000000005')
  await tab.fill('Epochs', '518400')
  await tab.fill('Most that deals of this bucket may cost per day', '5')
  await tab.fill('Renew deals so many days before they end', '14')
  await tab.choose('Deals of objects that are not encrypted', 'encrypted-only')
  await tab.click('button', 'Save deal defaults and spending', 'Deal defaults and spending: saved')
  const Terms = [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400 }, ofClass]
  const expected = {
    Terms,
    MaxSpendPerDay: '5',
    RenewBeforeDays: 14,
    ReadThrough: true,
    PublicNetwork: 'encrypted-only',
  }
  t.same(JSON.parse(await readOf(scene)('format=json&x-deal-config=')), expected)
  await tab.fill('Price', 'cheap')
  await tab.click('button', 'Save deal defaults and spending', 'This failed')
  await tab.click('button', 'Deal defaults and spending as JSON')
  await tab.fill('Deal defaults and spending, JSON', '{\n  "MaxSpendPerDay": "5",\n  "ReadThru": true\n}')
  await tab.click('button', 'Save deal defaults and spending', 'Line 3 Error: ReadThru is not a member')
  await tab.fill('Deal defaults and spending, JSON', '{\n  "MaxSpendPerDay" "5"\n}')
  await tab.click(
    'button',
    'Save deal defaults and spending',
    'Line 2 Error: This is no JSON document: it needs : here',
  )
}

async function events(t: Test, scene: ConsoleScene): Promise<void> {
  const { tab, server, accessible } = scene
  const read = readOf(scene)
  await send(server, { method: 'PUT', target: '/logs' })
  await tab.goTo('#/buckets/photos/settings/events', 'There is no inventory')
  await tab.fill('Bucket of the log', 'logs')
  await tab.fill('Keys begin with', 'of/photos/')
  await tab.click('button', 'Save access log', 'Access log: saved')
  t.match(await read('logging'), '<TargetBucket>logs</TargetBucket><TargetPrefix>of/photos/<')
  await tab.fill('Bucket of the log', '')
  await tab.click('button', 'Save access log', 'Access log: removed')
  t.notMatch(await read('logging'), 'TargetBucket')
  await tab.click('button', 'Add inventory')
  await tab.fill('Id', 'all.of-it')
  await tab.click('button', 'Go on')
  await tab.fill('Bucket of the files', 'none-such')
  await tab.click('checkbox', 'x-DealState')
  await tab.click('button', 'Save inventory all.of-it', 'A session may not do this')
  await signBy(tab, server)
  await tab.click('button', 'Save', 'NoSuchBucket')
  await tab.click('button', 'Cancel')
  await tab.fill('Bucket of the files', 'logs')
  await tab.click('button', 'Save inventory all.of-it')
  await signBy(tab, server)
  await tab.click('button', 'Save', 'Inventory all.of-it: saved')
  t.match(await read('inventory&id=all.of-it'), /arn:aws:s3:::logs.*<Field>x-DealState</s)
  await accessible('the settings of events')
  await tab.click('button', 'Actions on inventory all.of-it')
  await tab.click('button', 'Remove…')
  await tab.click('button', 'Remove', 'There is no inventory')
  t.notMatch(await read('inventory'), 'all.of-it')
}

/** A bucket is made with all of its settings, and what could not be made is said. */
async function creation(t: Test, scene: ConsoleScene): Promise<void> {
  const { tab, accessible } = scene
  const read = readOf(scene)
  await tab.goTo('#/buckets')
  await tab.click('button', 'Create bucket', 'It cannot be changed later')
  await tab.fill('Name', 'My..bucket-')
  for (const rule of ['only lower-case letters', 'a letter or digit at both ends', 'no dot beside another dot'])
    await tab.sees(rule)
  await tab.fill('Name', 'with-locks')
  await tab.sees('This name can be used')
  await tab.click('checkbox', 'Object lock', 'On, because object lock needs it')
  await tab.choose('Default retention of new versions', 'COMPLIANCE')
  await tab.sees('COMPLIANCE cannot be taken back')
  await tab.fill('Kept for', '1')
  await tab.choose('Unit', 'Years')
  await tab.choose('Encryption of new objects', 'AES256')
  await tab.click('checkbox', 'There is a copy of the keys, or I will make one')
  await tab.fill('At most objects', '7')
  await tab.click('button', 'Add tag')
  await tab.fill('Name of tag 1', '<b onclick=x>\u202e')
  await accessible('a new bucket')
  await tab.click('button', 'Create')
  await tab.untilTrue(`document.querySelector('.careful input:invalid')`, 'COMPLIANCE is set without a question')
  await tab.click('checkbox', 'I know that this cannot be taken back')
  const made = [
    'Done: the bucket, with object lock',
    'Done: default retention, COMPLIANCE for 1 year',
    'Done: default encryption',
  ]
  await tab.click(
    'button',
    'Create',
    'The bucket is not complete',
    ...made,
    'Failed: tags',
    'Not done: quota',
    'InvalidTag',
  )
  await accessible('a bucket that is not complete')
  await tab.click('button', 'Go on', 'Failed: tags')
  await tab.click('link', 'Leave it so, and see its settings', 'Settings of with-locks', 'without all of its settings')
  t.match(await read('object-lock', 'with-locks'), '<Mode>COMPLIANCE</Mode><Years>1</Years>')
  await tab.goTo('#/buckets')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'complete')
  await tab.click('checkbox', 'Versioning')
  await tab.fill('At most objects', '7')
  await tab.click('button', 'Add tag')
  await tab.fill('Name of tag 1', 'a')
  await tab.click('button', 'Create', 'The bucket complete was created.')
  t.match(await read('versioning', 'complete'), '<Status>Enabled<')
  t.match(await read('tagging', 'complete'), '<Key>a</Key>')
  t.match(JSON.parse(await read('format=json&x-quota=', 'complete')), { Quota: { Objects: 7 } })
}

/** The rules of a bucket by their forms, which keep what they do not know. */
async function rules(t: Test, scene: ConsoleScene): Promise<void> {
  const { tab, server, accessible } = scene
  const read = readOf(scene)
  const write = async (query: string, text: string, headers = {}) => {
    const put = await send(server, { method: 'PUT', target: `/photos?${query}`, headers, body: Buffer.from(text) })
    t.equal(put.status, 200)
  }

  await tab.goTo('#/buckets/photos/settings/events', 'There is no notification')
  await tab.click('button', 'Add notification')
  await tab.fill('Sent to', 'arn:dealgate:webhook:::none')
  await tab.fill('Keys that begin with', 'in/')
  await tab.click('checkbox', 's3:ObjectCreated:*')
  await accessible('a new notification')
  await tab.click('button', 'Save', 'InvalidArgument')
  await tab.fill('Sent to', 'arn:dealgate:webhook:::hook')
  await tab.click('button', 'Save', 'Notifications: saved', 'in/*')
  t.match(await read('notification'), /webhook:::hook<.*s3:ObjectCreated:\*.*<Name>Prefix<.Name><Value>in\/</)
  await tab.click('button', 'Actions on notification 1')
  await tab.click('button', 'Remove…')
  await tab.click('button', 'Remove', 'Notifications: removed')
  t.notMatch(await read('notification'), /webhook:::hook/)

  const filter = '<Filter><And><Prefix>logs/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>'
  const expiration = '<Expiration><Days>30</Days></Expiration>'
  const document = `<LifecycleConfiguration><Rule><ID>x</ID>${filter}<Status>Enabled</Status>${expiration}</Rule></LifecycleConfiguration>`
  const smallest = { 'x-amz-transition-default-minimum-object-size': 'varies_by_storage_class' }
  await write('lifecycle', document, smallest)
  await tab.goTo('#/buckets/photos/settings/lifecycle', 'logs/*, a=b', 'Delete objects after 30 days')
  const sent: string[] = []
  const unknown = '<Later u="2"><Days>1</Days></Later>'
  const stop = await intercept(tab, /[?&]lifecycle=/, async (request) => {
    if (request.method() === 'PUT') sent.push(request.postData() ?? '')
    const answer = request.method() === 'PUT' ? undefined : await forward(request)
    const body = (await answer?.text())
      ?.replace('</And>', '<Odd u="1">2</Odd></And>')
      .replace('</Rule>', `${unknown}</Rule>`)
    await respond(request, body ?? '')
  })
  const change = async () => {
    await tab.click('button', 'Actions on lifecycle rule 1')
    await tab.click('button', 'Change…')
  }
  await tab.goTo('#/buckets')
  await tab.goTo('#/buckets/photos/settings/lifecycle')
  await change()
  await tab.fill('Keys that begin with', '')
  await tab.click('button', 'Save', 'Lifecycle rules: saved')
  await tab.goTo('#/buckets', '1 bucket')
  await stop()
  const and = '<Filter><And><Tag><Key>a</Key><Value>b</Value></Tag><Odd u="1">2</Odd></And></Filter>'
  const kept = `<ID>x</ID>${and}<Status>Enabled</Status>${expiration}${unknown}</Rule>`
  t.match(sent[0]?.replace(/\n */g, ''), kept, 'what no form knows stays')

  await tab.goTo('#/buckets/photos/settings/lifecycle', 'Delete objects after 30 days')
  await change()
  await tab.click('button', 'Add action')
  await tab.choose('Action 2', 'Transition GLACIER')
  await tab.fill('Time of action 2', '3')
  await tab.fill('More bytes than', '1000')
  await accessible('a lifecycle rule')
  await tab.click('button', 'Save', 'Move objects to GLACIER after 3 days')
  await tab.click('button', 'Add lifecycle rule')
  await tab.choose('Action 1', 'AbortIncompleteMultipartUpload')
  await tab.fill('Time of action 1', '7')
  await tab.click('button', 'Add action')
  await tab.choose('Action 2', 'Markers')
  await tab.click('button', 'Add action')
  await tab.choose('Action 3', 'NoncurrentVersionExpiration')
  await tab.fill('Time of action 3', '9')
  await tab.fill('Versions that action 3 keeps', '2')
  await tab.click('button', 'Save', 'End unfinished uploads after 7 days')
  await tab.sees(
    'Remove delete markers without versions',
    'Delete versions that are replaced after 9 days, but keep the newest 2',
  )
  const stored = await send(server, { method: 'GET', target: '/photos?lifecycle' })
  const last = '<ObjectSizeGreaterThan>1000</ObjectSizeGreaterThan></And></Filter><Status>Enabled</Status>'
  const actions = [
    `<Transition><Days>3</Days><StorageClass>GLACIER</StorageClass></Transition>${expiration}`,
    'DaysAfterInitiation>7<',
    '<ExpiredObjectDeleteMarker>true<',
    '<NoncurrentDays>9</NoncurrentDays><NewerNoncurrentVersions>2<',
  ]
  for (const part of [last, ...actions]) t.match(stored.body.toString(), part)
  t.match(stored.headers, smallest, 'a header of the rules stays')
  await change()
  await write('lifecycle', stored.body.toString(), {
    'x-amz-transition-default-minimum-object-size': 'all_storage_classes_128K',
  })
  await tab.click('button', 'Save', 'Another program has changed this meanwhile')
  await tab.page.keyboard.press('Escape')
  await tab.sees('What is shown is older than what is saved')
  await tab.click('button', 'Lifecycle rules as XML')
  const expires = (days: number) =>
    `<Rule>\n<ID>of ${days}</ID><Filter/><Status>Enabled</Status>\n<Expiration>\n<Days>${days}</Days>\n</Expiration></Rule>`
  await tab.fill(
    'Lifecycle rules, XML',
    `<LifecycleConfiguration>\n${expires(1)}\n${expires(0)}</LifecycleConfiguration>`,
  )
  await tab.click('button', 'Save lifecycle rules', 'Another program has changed this meanwhile')
  await tab.click('button', 'Read it again')
  await tab.untilTrue(`document.querySelector('.editor textarea').value.includes('DaysAfterInitiation')`)
  await tab.fill(
    'Lifecycle rules, XML',
    `<LifecycleConfiguration>\n${expires(1)}\n${expires(0)}</LifecycleConfiguration>`,
  )
  await tab.click(
    'button',
    'Save lifecycle rules',
    "Line 10 Error: 'Days' for Expiration action must be a positive integer",
  )
  await accessible('a rule that the server refuses')
}
