import t from 'tap'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { WebhookReceiver } from '../support/webhook-receiver.js'
import { startBrowser, Tab } from './browser.js'

t.test('who has access to a bucket, and what it costs and sends', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const receiver = await WebhookReceiver.start(t)
  const args = ['--console-port', '0', '--webhook', `hook=${receiver.url}`]
  const server = await startDealgate(t, { args })
  const tab = await Tab.open(t, browser, server)
  const accessible = async (screen: string) => t.same(await tab.accessibility(), [], `${screen} breaks no rule of axe`)
  const read = async (target: string) => (await send(server, { method: 'GET', target })).body.toString()
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a.txt', body: Buffer.from('content') })
  const json = { 'content-type': 'application/json' }
  const ofClass = { StorageClass: 'GLACIER', MinerId: 't01001' }
  const body = Buffer.from(JSON.stringify({ Terms: [ofClass], ReadThrough: true }))
  const set = await send(server, { method: 'POST', target: '/photos?x-deal-config=', headers: json, body })
  t.equal(set.status, 200)
  await tab.signIn()

  await tab.goTo('#/buckets/photos/settings')
  await tab.sees('Not public')
  await tab.click('button', 'Count objects and bytes')
  await tab.sees('1 object, 7 B')
  await tab.click('button', 'Add grant')
  await tab.click('button', 'Save ACL')
  await tab.sees('AccessControlListNotSupported')
  const ownership =
    '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>'
  await tab.fill('Ownership of objects', ownership)
  await tab.click('button', 'Save Ownership of objects')
  await tab.sees('Ownership of objects: saved')
  await tab.click('button', 'Save ACL')
  await tab.sees('The ACL was saved')
  t.match(await read('/photos?acl'), /AuthenticatedUsers[\s\S]*<Permission>READ</)
  await tab.sees('opens it to everybody')
  await accessible('a bucket with an ACL')
  await tab.click('button', 'Remove grant 1')
  await tab.click('button', 'Save ACL')
  await tab.sees('Not public')
  t.notMatch(await read('/photos?acl'), /AuthenticatedUsers/)
  await tab.click('checkbox', 'Refuse policies that open something to everybody')
  await tab.click('button', 'Save public access block')
  await tab.sees('The public access block was saved')
  t.match(await read('/photos?publicAccessBlock'), /<BlockPublicPolicy>true/)

  await tab.fill('Provider', 't01000')
  await tab.fill('Price', '0.0000000005')
  await tab.fill('Epochs', '518400')
  await tab.fill('Most that deals of this bucket may cost per day', '5')
  await tab.fill('Renew deals so many days before they end', '14')
  await tab.click('button', 'Save defaults')
  await tab.sees('The defaults for deals were saved')
  const Terms = [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400 }, ofClass]
  const expected = { Terms, MaxSpendPerDay: '5', RenewBeforeDays: 14, ReadThrough: true }
  t.same(JSON.parse(await read('/photos?format=json&x-deal-config=')), expected)
  await tab.fill('Price', 'cheap')
  await tab.click('button', 'Save defaults')
  await tab.sees('This failed')

  const topic = '<Topic>arn:dealgate:webhook:::hook</Topic><Event>s3:ObjectCreated:*</Event>'
  const rule = `<TopicConfiguration><Id>all</Id>${topic}</TopicConfiguration>`
  const document = `<NotificationConfiguration>${rule}</NotificationConfiguration>`
  await tab.fill('Notifications (there is none)', document.replace(':::hook', ':::none'))
  await tab.click('button', 'Save Notifications')
  await tab.sees('InvalidArgument')
  await tab.fill('Notifications (there is none)', document)
  await tab.click('button', 'Save Notifications')
  await tab.sees('Notifications: saved')
  t.match(await read('/photos?notification'), /webhook:::hook/)
  await tab.click('button', 'Remove Notifications')
  await tab.click('button', 'Remove')
  await tab.sees('Notifications: removed')
  t.notMatch(await read('/photos?notification'), /webhook:::hook/)

  await tab.goTo('#/buckets/photos/object?key=a.txt')
  await tab.click('button', 'Add grant')
  await tab.click('button', 'Save ACL')
  await tab.sees('The ACL was saved')
  t.match(await read('/photos/a.txt?acl'), /AuthenticatedUsers/)
  await accessible('an object with an ACL')
  t.same(tab.complaints, [])
})
