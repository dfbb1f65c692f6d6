import { pathToFileURL } from 'node:url'
import type { HTTPRequest } from 'puppeteer-core'
import t, { type Test } from 'tap'
import { send } from '../support/sign/send.js'
import { startConsole, type Tab } from './browser.js'

t.test('buckets and objects', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { server, tab, accessible } = scene

  await tab.sees('Sign in to dealgate')
  await accessible('sign-in')
  await tab.signIn()
  await tab.sees('There is no bucket yet')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'photos')
  await tab.click('button', 'Create', 'The bucket photos was created')

  for (const key of ['a.txt', 'b.json', 'folder/c.txt', 'folder/d%2520.txt', 'it%27s%20%3Cb%3E.txt']) {
    const headers = { 'content-type': 'text/plain', 'x-amz-meta-colour': 'red', 'x-amz-tagging': 'kind=test' }
    await send(server, { method: 'PUT', target: `/photos/${key}`, body: Buffer.from('{"a":1}'), headers })
  }
  await tab.click('link', 'photos', '1 folder and 3 objects on this page')

  await tab.click('link', 'b.json')
  await tab.click('summary', 'Checksums and metadata', 'Metadata')
  await tab.click('summary', 'Edit tags', 'Save tags', 'There is no deal for this object')
  await tab.untilTrue(`document.querySelector('.life') !== null`, 'there is no history')
  await tab.sees('"a": 1')
  await tab.click('button', 'Share…')
  await tab.click('button', 'Make the link', 'Copy link')
  await tab.untilTrue(`document.querySelector('svg.qr path')`, 'there is no QR code')
  await accessible('an object')
  await linked(t, tab)
  await tab.click('button', 'Close')
  await tab.page.evaluate('history.back()')

  await tab.click('checkbox', "Select it's <b>.txt")
  await tab.click('checkbox', 'Select folder/')
  await tab.click('button', 'Restore…', 'The gateway retrieves the bytes of 2 selected entries')
  await tab.fill('Days', '2')
  await tab.click('button', 'Restore', 'The restore of 2 selected entries was requested; 1 of them need none')
  t.match((await send(server, { method: 'GET', target: '/-/jobs/v1' })).body.toString(), /deal:RetrieveBucket/)
  await tab.click('checkbox', "Select it's <b>.txt")
  await tab.click('checkbox', 'Select folder/')
  await tab.click('button', 'Delete…', '3 objects of the bucket')
  await accessible('a dialog')
  await tab.click('button', 'Delete 3 objects', '3 objects deleted', '0 folders and 2 objects')
  t.notMatch((await send(server, { method: 'GET', target: '/photos' })).body.toString(), /folder/)

  await tab.goTo('#/buckets/photos/pending', 'There is none')
  await tab.goTo('#/buckets/photos/settings/access', 'There is no statement')
  await tab.click('button', 'Bucket policy as JSON', 'There is none yet')
  const policy = { Version: '2012-10-17', Statement: [] as object[] }
  policy.Statement.push({ Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::photos/*' })
  await tab.fill('Bucket policy, JSON', '{"Version":"2012-10-17",\n"Statement":[\n{"Effect":"Permit"}]}')
  await tab.click('button', 'Save bucket policy', 'Line 3 Error: ')
  await accessible('the findings about a policy')
  await tab.fill('Bucket policy, JSON', JSON.stringify(policy))
  await tab.click('button', 'Save bucket policy', 'It gives access to everybody')
  t.equal((await send(server, { method: 'GET', target: '/photos?policy' })).code, 'NoSuchBucketPolicy')
  await tab.click('button', 'Save it all the same', 'Bucket policy: saved')
  await tab.fill('Key', 'a.txt')
  await tab.click('button', 'Ask', 'statement 1 allows it (everybody)')
  await tab.fill('Action', 's3:DeleteObject')
  await tab.click('button', 'Ask', 'Refused')
  t.match(JSON.parse((await send(server, { method: 'GET', target: '/photos?policy' })).body.toString()), policy)
  await tab.click('button', 'Remove bucket policy…')
  await tab.click('button', 'Remove', 'Bucket policy: removed')
  t.equal((await send(server, { method: 'GET', target: '/photos?policy' })).code, 'NoSuchBucketPolicy')

  await lost(t, tab)

  await tab.goTo('#/buckets')
  await tab.pick('Actions on photos', 'Delete')
  const mayDelete = `[...document.querySelectorAll('dialog button')].some((button) =>
    button.textContent === 'Delete bucket' && !button.disabled)`
  await tab.fill('Type photos to confirm', 'photo')
  t.equal(await tab.page.evaluate(mayDelete), false, 'its whole name has to be typed')
  await tab.fill('Type photos to confirm', 'photos')
  await tab.untilTrue(mayDelete)
  await tab.click(
    'button',
    'Delete bucket',
    '“Show versions and deleted” on its list shows all that is in it. (BucketNotEmpty)',
  )
  t.equal((await send(server, { method: 'HEAD', target: '/photos' })).status, 200)
  t.same(tab.complaints, [])
})

/** The link works, and its code is that of the link. */
async function linked(t: Test, { page }: Tab): Promise<void> {
  const shown = `[document.querySelector('input[readonly]').value, document.querySelector('svg.qr path').getAttribute('d'), document.querySelector('svg.qr title').textContent]`
  const [url, path, title] = (await page.evaluate(shown)) as [string, string, string]
  t.equal(await (await fetch(url)).text(), '{"a":1}')
  const { qrCode, qrPath } = await import(pathToFileURL('console/parts/qr.js').href)
  t.equal(path, qrPath(qrCode(url)))
  t.match(title, /^QR code of the link, valid until .*\d/)
}

/** The file of a screen that does not come is asked for again. */
async function lost(t: Test, tab: Tab): Promise<void> {
  let asked = 0
  const lose = (request: HTTPRequest) => {
    if (!request.url().endsWith('/screens/server.js')) request.continue()
    else if (asked++ === 0) request.abort()
    else request.continue()
  }
  tab.page.on('request', lose)
  await tab.page.setRequestInterception(true)
  await tab.goTo('#/server', 'This screen did not load')
  await tab.click('button', 'Try again', 'Options in force')
  await tab.goTo('#/deals', 'There is no deal yet')
  await tab.goTo('#/server', 'Options in force')
  tab.page.off('request', lose)
  await tab.page.setRequestInterception(false)
  t.equal(asked, 2, 'and loaded once')
}
