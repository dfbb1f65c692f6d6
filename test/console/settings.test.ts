import t, { type Test } from 'tap'
import { send } from '../support/sign/send.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'
import { type ConsoleScene, forward, intercept, respond, startConsole, type Tab } from './browser.js'

t.test('who has access to a bucket, and what it costs and sends', async (t) => {
  const receiver = await WebhookReceiver.start(t)
  const scene = await startConsole(t, { args: ['--webhook', `hook=${receiver.url}`] })
  if (!scene) return
  const { server, tab, accessible } = scene
  const read = async (target: string) => (await send(server, { method: 'GET', target })).body.toString()
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a.txt', body: Buffer.from('content') })
  const headers = { 'x-amz-storage-class': 'STANDARD_IA' }
  await send(server, { method: 'PUT', target: '/photos/b.txt', headers, body: Buffer.from('more') })
  const json = { 'content-type': 'application/json' }
  const ofClass = { StorageClass: 'GLACIER', MinerId: 't01001' }
  const body = Buffer.from(JSON.stringify({ Terms: [ofClass], ReadThrough: true }))
  const set = await send(server, { method: 'POST', target: '/photos?x-deal-config=', headers: json, body })
  t.equal(set.status, 200)
  const quota = Buffer.from('{"Bytes":1234567}')
  await send(server, { method: 'POST', target: '/photos?x-quota=', headers: json, body: quota })
  await tab.signIn()

  await tab.sees('○ Not public')
  await tab.goTo('#/buckets/photos/settings', 'Not public')
  await tab.click('button', 'Count objects and bytes')
  for (const shown of ['2 objects, 11 B', '1 object, 7 B', 'STANDARD_IA\n1 object, 4 B', 'Quota of Bytes\n1.2 MiB'])
    await tab.sees(shown)
  await tab.click('button', 'Add grant')
  await tab.click('button', 'Save ACL', 'AccessControlListNotSupported')
  const ownership =
    '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>'
  await tab.fill('Ownership of objects', ownership)
  await tab.click('button', 'Save Ownership of objects', 'Ownership of objects: saved')
  await tab.click('button', 'Save ACL', 'The ACL was saved')
  t.match(await read('/photos?acl'), /AuthenticatedUsers[\s\S]*<Permission>READ</)
  await tab.sees('opens it to everybody')
  await accessible('a bucket with an ACL')
  await tab.goTo('#/buckets', '◉ Public')
  await tab.goTo('#/buckets/photos/settings')
  await tab.click('button', 'Remove grant 1')
  await tab.click('button', 'Save ACL', 'Not public')
  t.notMatch(await read('/photos?acl'), /AuthenticatedUsers/)
  await tab.click('checkbox', 'Refuse policies that open something to everybody')
  await tab.click('button', 'Save public access block', 'The public access block was saved')
  t.match(await read('/photos?publicAccessBlock'), /<BlockPublicPolicy>true/)

  await tab.fill('Provider', 't01000')
  await tab.fill('Price', '0.0000000005')
  await tab.fill('Epochs', '518400')
  await tab.fill('Most that deals of this bucket may cost per day', '5')
  await tab.fill('Renew deals so many days before they end', '14')
  await tab.choose('Deals of objects that are not encrypted', 'encrypted-only')
  await tab.click('button', 'Save defaults', 'The defaults for deals were saved')
  const Terms = [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400 }, ofClass]
  const expected = {
    Terms,
    MaxSpendPerDay: '5',
    RenewBeforeDays: 14,
    ReadThrough: true,
    PublicNetwork: 'encrypted-only',
  }
  t.same(JSON.parse(await read('/photos?format=json&x-deal-config=')), expected)
  await tab.fill('Price', 'cheap')
  await tab.click('button', 'Save defaults', 'This failed')

  await rules(t, scene)

  await tab.goTo('#/buckets/photos/object?key=a.txt')
  await tab.click('summary', 'Edit rights (ACL)')
  await tab.click('button', 'Add grant')
  await tab.click('button', 'Save ACL', 'The ACL was saved')
  t.match(await read('/photos/a.txt?acl'), /AuthenticatedUsers/)
  await manyBuckets(t, tab)
  t.same(tab.complaints, [])
})

/** A page of many buckets asks once which of them are public. */
async function manyBuckets(t: Test, tab: Tab): Promise<void> {
  const names = Array.from({ length: 250 }, (_, i) => `bucket-${1000 + i}`)
  const asked: string[] = []
  await intercept(tab, /:\d+\/($|\?|-\/access\/v1\/buckets)/, async (request) => {
    const { pathname, search, searchParams } = new URL(request.url())
    const all = names.map((name) => `<Bucket><Name>${name}</Name></Bucket>`).join('')
    if (pathname === '/')
      return respond(request, `<ListAllMyBucketsResult><Buckets>${all}</Buckets></ListAllMyBucketsResult>`)
    asked.push(search)
    const at = names.indexOf(searchParams.get('from') ?? '')
    const Buckets = names.slice(at, at + 3).map((Bucket, i) => ({ Bucket, ...(i < 2 && { Public: i === 0 }) }))
    return respond(request, { Buckets })
  })
  await tab.goTo('#/buckets', '250 buckets', 'Not known')
  await tab.click('link', 'Next page')
  await tab.untilTrue(`/bucket-1100[^]*◉ Public[^]*bucket-1101[^]*○ Not public/.test(document.body.innerText)`)
  await tab.fill('Names that begin with', 'bucket-12')
  await tab.click('button', 'Filter', '50 buckets')
  const pages = [
    ['bucket-1000', 100],
    ['bucket-1100', 100],
    ['bucket-1200', 50],
  ] as const
  await tab.sees('◉ Public')
  t.same(
    asked,
    pages.map(([from, count]) => `?from=${from}&max-items=${count}`),
  )
}

/** The rules of a bucket by their forms, which keep what they do not know. */
async function rules(t: Test, { tab, server, accessible }: ConsoleScene): Promise<void> {
  const read = async (query: string) =>
    (await send(server, { method: 'GET', target: `/photos?${query}` })).body.toString()
  const write = async (query: string, text: string, headers = {}) => {
    const put = await send(server, { method: 'PUT', target: `/photos?${query}`, headers, body: Buffer.from(text) })
    t.equal(put.status, 200)
  }

  await tab.click('button', 'Add notification')
  await tab.fill('Sent to', 'arn:dealgate:webhook:::none')
  await tab.fill('Keys that begin with', 'in/')
  await tab.click('checkbox', 's3:ObjectCreated:*')
  await accessible('a new notification')
  await tab.click('button', 'Save', 'InvalidArgument')
  await tab.fill('Sent to', 'arn:dealgate:webhook:::hook')
  await tab.click('button', 'Save', 'Notifications: saved', 'in/*')
  t.match(await read('notification'), /webhook:::hook<.*s3:ObjectCreated:\*.*<Name>Prefix<.Name><Value>in\/</)
  await tab.click('button', 'Remove notification 1')
  await tab.click('button', 'Remove', 'Notifications: removed')
  t.notMatch(await read('notification'), /webhook:::hook/)

  const filter = '<Filter><And><Prefix>logs/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>'
  const expiration = '<Expiration><Days>30</Days></Expiration>'
  const document = `<LifecycleConfiguration><Rule><ID>x</ID>${filter}<Status>Enabled</Status>${expiration}</Rule></LifecycleConfiguration>`
  const smallest = { 'x-amz-transition-default-minimum-object-size': 'varies_by_storage_class' }
  await write('lifecycle', document, smallest)
  await tab.page.reload()
  await tab.signIn()
  await tab.goTo('#/buckets/photos/settings', 'logs/*, a=b', 'Delete objects after 30 days')
  const sent: string[] = []
  const unknown = '<NoncurrentVersionExpiration><Days>1</Days></NoncurrentVersionExpiration>'
  const stop = await intercept(tab, /[?&]lifecycle=/, async (request) => {
    if (request.method() === 'PUT') sent.push(request.postData() ?? '')
    const answer = request.method() === 'PUT' ? undefined : await forward(request)
    const body = (await answer?.text())
      ?.replace('</And>', '<Odd u="1">2</Odd></And>')
      .replace('</Rule>', `${unknown}</Rule>`)
    await respond(request, body ?? '')
  })
  await tab.goTo('#/buckets')
  await tab.goTo('#/buckets/photos/settings')
  await tab.click('button', 'Change lifecycle rule 1')
  await tab.fill('Keys that begin with', '')
  await tab.click('button', 'Save', 'Lifecycle rules: saved')
  await tab.goTo('#/buckets', '1 bucket')
  await stop()
  const and = '<Filter><And><Tag><Key>a</Key><Value>b</Value></Tag><Odd u="1">2</Odd></And></Filter>'
  t.match(sent[0], `<ID>x</ID>${and}<Status>Enabled</Status>${expiration}${unknown}</Rule>`, 'what no form knows stays')

  await tab.goTo('#/buckets/photos/settings')
  await tab.click('button', 'Change lifecycle rule 1')
  await tab.click('button', 'Add action')
  await tab.choose('Action 2', 'Transition GLACIER')
  await tab.fill('Time of action 2', '3')
  await tab.fill('More bytes than', '1000')
  await accessible('a lifecycle rule')
  await tab.click('button', 'Save', 'Move objects to GLACIER after 3 days')
  await tab.click('button', 'Add lifecycle rule')
  await tab.choose('Action 1', 'AbortIncompleteMultipartUpload')
  await tab.fill('Time of action 1', '7')
  await tab.click('button', 'Save', 'End unfinished uploads after 7 days')
  const stored = await send(server, { method: 'GET', target: '/photos?lifecycle' })
  const last = '<ObjectSizeGreaterThan>1000</ObjectSizeGreaterThan></And></Filter><Status>Enabled</Status>'
  const actions = [
    `<Transition><Days>3</Days><StorageClass>GLACIER</StorageClass></Transition>${expiration}`,
    'DaysAfterInitiation>7<',
  ]
  for (const part of [last, ...actions]) t.match(stored.body.toString(), part)
  t.match(stored.headers, smallest, 'a header of the rules stays')
  await tab.click('button', 'Change lifecycle rule 1')
  await write('lifecycle', stored.body.toString(), {
    'x-amz-transition-default-minimum-object-size': 'all_storage_classes_128K',
  })
  await tab.click('button', 'Save', 'Another program has changed the rules meanwhile')
}
