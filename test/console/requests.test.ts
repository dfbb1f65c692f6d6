import t from 'tap'
import { open, type Sending, send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startConsole } from './browser.js'

const HOSTILE = 'img/<img src=x onerror=alert(1)>\u202egpj.exe'
const AGENT = '</td><script>alert(1)</script>'

/** Of S3 Control and S3, as documents. */
const INVENTORY =
  '<InventoryConfiguration><Id>all</Id><IsEnabled>true</IsEnabled><IncludedObjectVersions>Current</IncludedObjectVersions><Schedule><Frequency>Daily</Frequency></Schedule><Destination><S3BucketDestination><Bucket>arn:aws:s3:::reports</Bucket><Format>CSV</Format><Prefix>inv</Prefix></S3BucketDestination></Destination></InventoryConfiguration>'
const LOGGING =
  '<BucketLoggingStatus><LoggingEnabled><TargetBucket>logs</TargetBucket><TargetPrefix>photos/</TargetPrefix></LoggingEnabled></BucketLoggingStatus>'
const LIFECYCLE =
  '<LifecycleConfiguration><Rule><ID>old</ID><Status>Enabled</Status><Filter><Prefix>img/</Prefix></Filter><Expiration><Days>5</Days></Expiration></Rule></LifecycleConfiguration>'
const POLICY = {
  Version: '2012-10-17',
  Statement: [
    {
      Sid: '<b>NoImages',
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:GetObject',
      Resource: 'arn:aws:s3:::photos/img/*',
    },
  ],
}

t.test('live requests, batch jobs, inventories, access logs and lifecycle', async (t) => {
  const scene = await startConsole(t, { args: ['--bucket-log-interval-seconds', '2'] })
  if (!scene) return
  const { server, tab, accessible } = scene
  const request = async (sending: Sending) => {
    const answer = await send(server, sending)
    t.ok(answer.status < 300, `${sending.target}: ${answer.body}`)
  }
  const put = (target: string, body?: string) =>
    request({ method: 'PUT', target, ...(body && { body: Buffer.from(body) }) })
  for (const bucket of ['photos', 'reports', 'logs', 'empty']) await put(`/${bucket}`)
  await put('/photos?logging', LOGGING)
  await put('/photos?inventory&id=all', INVENTORY)
  await put('/photos?lifecycle', LIFECYCLE)
  for (const key of [HOSTILE, 'img/b', 'other/c']) await put(targetOf('photos', key), 'content')
  await put('/photos?policy', JSON.stringify(POLICY).replace('<b>', ''))
  await tab.signIn()

  await t.test('a request appears while the screen is open, with why it was refused', async (t) => {
    await tab.goTo('#/requests?bucket=photos', 'Live requests', 'PutBucketLogging', '200 done', 'img/<img')
    await accessible('live requests')
    open(server, 'GET', targetOf('photos', HOSTILE), { 'user-agent': AGENT }).end()
    await tab.sees('403 AccessDenied', 'explicit deny', 'NoImages', 'unsigned')
    t.equal(await tab.page.evaluate(`document.querySelectorAll('td img, td script').length`), 0)
    await tab.click('button', 'Pause', 'Paused')
    open(server, 'GET', '/photos/img/paused', {}).end()
    await until('the server has it', async () => {
      const { body } = await send(server, { method: 'GET', target: '/-/requests/v1?prefix=img/paused' })
      return body.includes('img/paused') || undefined
    })
    t.notMatch(await tab.text(), /img\/paused/)
    await tab.click('button', 'Go on', 'img/paused')
    await tab.page.locator('td button[aria-haspopup=menu]').click()
    await tab.page.locator('::-p-text(Details…)').click()
    await tab.sees('Refused action', 's3:GetObject', 'no valid signature')
    await accessible('the details of a request')
    await tab.click('button', 'Close')
    await tab.click('link', 'unsigned')
    await tab.untilTrue(`location.hash.includes('caller=-')`)
    await tab.sees('img/paused')
    t.notMatch(await tab.text(), /PutBucketLogging/)
    await tab.page.locator('td a[title="Ask who may"]').click()
    await tab.untilTrue(`document.querySelector('input[name=action]')?.value === 's3:GetObject'`)
    await tab.click('button', 'Send', 'Refused', 'NoImages')
    await tab.goTo('#/requests?status=5xx', 'No such request has come')
  })

  await t.test('a batch job of a selection is counted, confirmed, done and reported', async (t) => {
    await tab.goTo('#/buckets/photos/objects', 'img')
    await tab.click('checkbox', 'Select img/')
    await tab.click('button', 'Batch job…', 'all below 1 selected folder')
    await accessible('a new batch job')
    await tab.fill('Tags', 'kind=image')
    await tab.fill('Bucket of the report', 'reports')
    await tab.click('button', 'Find the objects…', 'Waits')
    await tab.sees('2 objects were found. Nothing has been done yet')
    await accessible('a batch job that waits')
    await tab.click('button', 'Run it…', 'The job sets tags of each object: 2 objects')
    await tab.click('button', 'Run it', '2 of 2 objects', 'Report')
    await tab.page.locator('::-p-text(Tasks that succeeded)').click()
    await tab.sees('photos/img/b', '200')
    await accessible('a report')
    const { body } = await send(server, { method: 'GET', target: `${targetOf('photos', HOSTILE)}?tagging` })
    t.match(body.toString(), /<Value>image<\/Value>/)
    await tab.goTo('#/batch', '2\u00a0of\u00a02', 'Complete')

    await tab.goTo('#/batch/new?bucket=photos&prefix=other/')
    await tab.choose('Operation', 'Delete')
    await tab.click('checkbox', 'Only count (dry run)')
    await tab.click('button', 'Find the objects…', 'This was a dry run')
    await tab.sees('Would fail', '0 objects')
    await tab.goTo('#/batch/new?bucket=photos&prefix=other/')
    await tab.choose('Operation', 'Delete')
    await tab.click('button', 'Find the objects…', 'Waits')
    await tab.click('button', 'Run it…', 'This cannot be undone', 'Type 1 to confirm')
    await tab.click('button', 'Cancel')
    await tab.click('button', 'Cancel…', 'What was done stays done')
    await tab.click('button', 'Cancel the job', 'Cancelled')
    t.equal((await send(server, { method: 'HEAD', target: '/photos/other/c' })).status, 200)
  })

  await t.test('inventories have their last run and its files, and are written at once', async () => {
    await tab.goTo('#/buckets/photos/inventories', 'Inventories of photos', 'every day, CSV, current versions')
    await tab.click('button', 'Write it now… all', 'The schedule stays as it is')
    await tab.click('button', 'Write it', 'is being written by the job')
    await tab.sees('Complete')
    await tab.page.locator('::-p-text(1 file of the last run)').click()
    await tab.sees('manifest.json', '.csv.gz')
    await accessible('inventories')
    await tab.click('link', 'Batch job of its objects', 'Those of the inventory')
    await tab.goTo('#/buckets/empty/inventories', 'This bucket has no inventory')
  })

  await t.test('the access log is a table, the newest line first', async (t) => {
    await tab.goTo('#/buckets/photos/access-log', 'Access log of photos')
    await until('the log has arrived', async () => {
      const { body } = await send(server, { method: 'GET', target: '/logs?list-type=2' })
      return body.includes('<Key>photos/2') || undefined
    })
    await tab.click('button', 'Refresh', 'REST.GET.OBJECT', '403 AccessDenied', 'U+202Egpj.exe')
    await accessible('an access log')
    await tab.fill('Filter the lines', 'accessdenied')
    await tab.untilTrue(`!document.body.innerText.includes('REST.PUT.OBJECT')`)
    t.match(await tab.text(), /REST\.GET\.OBJECT/)
    await tab.goTo('#/buckets/empty/access-log', 'This bucket has no access log')
  })

  await t.test('lifecycle says what is due', async () => {
    await tab.goTo(
      '#/buckets/photos/settings/lifecycle',
      'The 1 rule is applied',
      '7 days',
      'of 3 objects in the bucket',
    )
    await accessible('lifecycle')
    await tab.goTo('#/buckets/empty/settings/lifecycle', 'No rule of this bucket is on')
  })
  t.same(tab.complaints, [])
})
