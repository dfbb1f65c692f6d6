import t from 'tap'
import { account } from '../cli/account-commands.js'
import type { Dealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { startConsole, Tab } from './browser.js'

/** Fills in the key pair by which a change is signed. */
async function signBy(tab: Tab, { accessKey, secretKey }: Pick<Dealgate, 'accessKey' | 'secretKey'>): Promise<void> {
  await tab.fill('Your access key id', accessKey)
  await tab.fill('Your secret access key', secretKey)
}

/** The secret that a dialog shows, and its facts by their names. */
async function shown(tab: Tab): Promise<Record<string, string>> {
  await tab.sees('The secret is shown now, and never again')
  const facts = `Object.fromEntries([...document.querySelectorAll('dialog dl div')].map((fact) =>
    [fact.querySelector('dt').textContent, fact.querySelector('code').textContent]))`
  return (await tab.page.evaluate(facts)) as Record<string, string>
}

t.test('keys and accounts', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { browser, server, tab, accessible } = scene
  for (const target of ['/photos', '/photos/a/1.txt', '/photos/b/2.txt']) await send(server, { method: 'PUT', target })
  await tab.signIn()

  await tab.goTo('#/keys', 'There is no key pair besides that of the owner')
  await tab.click('button', 'Add key pair')
  await tab.fill('Access key id', 'reader<b>')
  await tab.fill('Bucket of right 1', 'photos')
  await tab.fill('Prefix of right 1', 'a/')
  await accessible('a new key pair')
  await signBy(tab, { accessKey: server.accessKey, secretKey: 'another-secret' })
  await tab.click('button', 'Add', 'SignatureDoesNotMatch')
  await signBy(tab, server)
  const posted: string[] = []
  tab.page.on('request', (request) => request.method() === 'POST' && posted.push(new URL(request.url()).pathname))
  await tab.page.evaluate(`(() => {
    const button = [...document.querySelectorAll('dialog button')].find(({ textContent }) => textContent.trim() === 'Add')
    button.click()
    button.click()
  })()`)
  const { AWS_ACCESS_KEY_ID: id = '', AWS_SECRET_ACCESS_KEY: secret = '' } = await shown(tab)
  t.same(posted, ['/-/keys/v1/reader%3Cb%3E'], 'a double click adds it once')
  t.same([id, secret.length], ['reader<b>', 40])
  await accessible('a secret that is shown')
  await tab.click('button', 'I have stored it', 'read photos/a/')
  const everything = `document.documentElement.outerHTML + JSON.stringify(sessionStorage) + location.href`
  for (const word of [secret, server.secretKey])
    t.notMatch(String(await tab.page.evaluate(everything)), word, 'no secret stays in the page')
  await accessible('key pairs')

  const reader = await Tab.open(t, browser, server)
  await reader.signIn({ pair: { id, secret } })
  await reader.goTo('#/buckets/photos/objects?prefix=a/', '1 object on this page')
  for (const screen of ['keys', 'accounts', 'changes']) {
    await reader.goTo(`#/${screen}`)
    await reader.untilTrue(`document.querySelector('.problem')?.innerText.startsWith('Not allowed')`, screen)
  }
  await reader.goTo('#/keys')
  await reader.click('button', 'Add key pair')
  await reader.click('checkbox', 'All that its account may')
  await signBy(reader, { accessKey: id, secretKey: secret })
  await reader.click('button', 'Add')
  await reader.untilTrue(`document.querySelector('dialog .problem')?.innerText.startsWith('Not allowed')`)
  await reader.click('button', 'Cancel')

  await tab.click('button', `Rights of ${id}`)
  await tab.fill('Prefix of right 1', '')
  await tab.click('button', 'Add right')
  await tab.fill('Bucket of right 2', 'films*')
  await tab.fill('Calls', 'deal:ListDeals pay:*')
  await signBy(tab, server)
  await tab.click('button', 'Change', 'read films*/', 'call pay:*')
  await reader.goTo('#/buckets/photos/objects?prefix=b/', '1 object on this page')
  await tab.click('button', `New secret of ${id}`)
  await signBy(tab, server)
  await tab.click('button', 'Replace the secret')
  t.not((await shown(tab)).AWS_SECRET_ACCESS_KEY, secret)
  await tab.page.keyboard.press('Escape')
  await reader.goTo('#/buckets/photos/objects?prefix=a/', 'The session has ended')
  await tab.click('button', `Removal of ${id}`)
  await signBy(tab, server)
  await tab.click('button', 'Remove', 'There is no key pair besides that of the owner')

  await tab.click('link', 'Accounts', '(of the server)')
  await tab.click('button', 'Add account')
  await tab.fill('Access key', 'tenant')
  await tab.fill('Name', 'Ten\u202eant')
  await signBy(tab, server)
  await tab.click('button', 'Add')
  t.equal((await shown(tab)).ACCESS_KEY, 'tenant')
  await tab.click('button', 'I have stored it', 'TenU+202Eant')
  await accessible('accounts')
  await tab.click('button', 'Quota of tenant')
  await tab.fill('Bytes', '2048')
  await signBy(tab, server)
  await accessible('a quota')
  const quota = tab.page.waitForRequest((request) => request.method() === 'POST' && request.url().includes('/quota'))
  await tab.click('button', 'Save')
  t.equal((await quota).postData(), '{"Bytes":2048}', 'what another program has changed meanwhile stays')
  await tab.sees('0 B, 0 objects; at most 2.0 KiB')
  t.equal((await account<{ accessKey: string }[]>(server.data, 'list')).length, 2)
  await tab.click('button', 'Removal of tenant')
  await signBy(tab, server)
  await tab.click('button', 'Remove')
  await tab.untilTrue(`!document.querySelector('main table').innerText.includes('tenant')`)

  await tab.click('link', 'Who changed what', '7 changes, the newest first')
  for (const call of [
    'AddKey',
    'SetKeyRights',
    'RotateKey',
    'RemoveKey',
    'AddAccount',
    'SetAccountQuota',
    'RemoveAccount',
  ])
    await tab.sees(call)
  await accessible('changes')
  await tab.page.select('main select', 'buckets')
  await tab.sees('CreateBucket')
  t.same([tab.complaints, reader.complaints], [[], []])
})
